/* SPDX-License-Identifier: MIT */
#include "room.h"

#include "../proto/status.h"
#include "log.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

/* The deepest path takes about 200 KiB (a look at all leases of a large server); what libraries take below is theirs. The kernel
 * gives a stack page by page, and so does it here. */
#define STACK_BYTES ((size_t)1 << 20)
#define GUARD_BYTES ((size_t)64 << 10) /* more than a page, whatever size those have */

/* A new context gets nothing but numbers. */
static struct {
    int (*entry)(int argc, char **argv);
    int argc;
    char **argv;
    ucontext_t context;
} there;

static void run_there(void)
{
    exit(there.entry(there.argc, there.argv));
}

/* Returns if there is no memory. */
static void go_there(void)
{
    size_t bytes = GUARD_BYTES + STACK_BYTES;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED)
        return;
    mprotect(memory, GUARD_BYTES, PROT_NONE);
    pthread_attr_t threads;
    if (pthread_attr_init(&threads) == 0) {
        pthread_attr_setstacksize(&threads, STACK_BYTES);
        pthread_setattr_default_np(&threads);
        pthread_attr_destroy(&threads);
    }
    getcontext(&there.context);
    there.context.uc_stack = (stack_t){.ss_sp = memory, .ss_size = bytes};
    makecontext(&there.context, run_there, 0);
    setcontext(&there.context);
}

void room_run(int (*entry)(int argc, char **argv), int argc, char **argv)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) < 0 || limit.rlim_cur >= STACK_BYTES)
        exit(entry(argc, argv));
    there.entry = entry;
    there.argc = argc;
    there.argv = argv;
    go_there();
    log_error("ulimit -s is %llu KiB, and there is no memory for a stack elsewhere",
              (unsigned long long)limit.rlim_cur / 1024);
    exit(EXIT_CODE_OURS);
}
