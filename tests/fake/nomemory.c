/* SPDX-License-Identifier: MIT */
/* Preloaded, it lets the n-th allocation of a program, or of what it forks, fail, n from NOMEMORY_AT; all others, and those
 * of the programs that it starts, succeed; with NOMEMORY_ON=1 all that follow it fail, too. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

static atomic_long left; /* 1: the next one fails */
static _Bool on;         /* and whatever comes then */

__attribute__((constructor)) static void begin(void)
{
    const char *at = getenv("NOMEMORY_AT");
    left = at ? atol(at) : 0;
    on = getenv("NOMEMORY_ON") != NULL;
    unsetenv("NOMEMORY_AT");
}

static _Bool fails(void)
{
    if (left == 0 || atomic_fetch_sub(&left, 1) != 1)
        return 0;
    if (on)
        left = 1; /* the next one as well */
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails() ? NULL : __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    return fails() ? NULL : __libc_realloc(old, size);
}
