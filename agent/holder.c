/* SPDX-License-Identifier: MIT */
#include "holder.h"

#include "clean.h"
#include "sysfile.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Bytes that are locked: the file's own, and one for each page. */
#define WHOLE 0
#define PAGE_LOCK(page) (1 + (off_t)(page))

static int lock_range(int fd, int how, int type, off_t at, off_t n, struct flock *ret)
{
    struct flock l = {.l_type = (short)type, .l_whence = SEEK_SET, .l_start = at, .l_len = n};
    int rc;
    do
        rc = fcntl(fd, how, &l);
    while (rc < 0 && errno == EINTR);
    if (ret)
        *ret = l;
    return rc < 0 ? (errno == EACCES ? -EAGAIN : -errno) : 0;
}

static int lock(int fd, int how, int type, off_t at, struct flock *ret)
{
    return lock_range(fd, how, type, at, 1, ret);
}

int holder_state(int fd)
{
    struct flock found;
    int rc = lock(fd, F_OFD_GETLK, F_WRLCK, WHOLE, &found);
    if (rc < 0)
        return rc;
    return found.l_type == F_UNLCK   ? HOLDER_FREE
           : found.l_type == F_RDLCK ? HOLDER_SHARED
                                     : HOLDER_EXCLUSIVE;
}

int holder_lock(int fd, bool exclusive)
{
    return lock(fd, F_OFD_SETLK, exclusive ? F_WRLCK : F_RDLCK, WHOLE, NULL);
}

void holder_unlock(int fd)
{
    (void)!lock(fd, F_OFD_SETLK, F_UNLCK, WHOLE, NULL);
}

int holder_sign(int fd, const struct holder *who)
{
    char text[HOLDER_PAGE_BYTES] = "";
    int n = snprintf(text, sizeof text,
                     "run %s\nprogram %s\nuid %u\npid %d\nstarted %" PRId64 "\nticket %" PRIu64
                     "\nwants %u\nunits %s\n",
                     who->run, who->program, who->uid, (int)who->pid, who->started, who->ticket,
                     who->wants, who->units);
    for (unsigned page = 0; n > 0 && page < HOLDER_PAGES; page++) {
        int rc = lock(fd, F_OFD_SETLK, F_WRLCK, PAGE_LOCK(page), NULL);
        if (rc == -EAGAIN)
            continue;
        if (rc < 0)
            return rc;
        ssize_t written = pwrite(fd, text, sizeof text, (off_t)page * HOLDER_PAGE_BYTES);
        return written < 0 ? -errno : 0;
    }
    return -ENOSPC;
}

void holder_unsign(int fd)
{
    (void)!lock_range(fd, F_OFD_SETLK, F_UNLCK, PAGE_LOCK(0), HOLDER_PAGES, NULL);
}

/* Foreign text on its way to a terminal. */
static void take_text(const char *page, const char *key, char *ret, size_t bytes)
{
    if (!sysfile_field(page, key, ret, bytes))
        ret[0] = '\0';
    clean(ret, bytes, ret);
}

static uint64_t take_number(const char *page, const char *key, uint64_t max)
{
    char digits[24];
    take_text(page, key, digits, sizeof digits);
    char *end;
    errno = 0;
    unsigned long long number = strtoull(digits, &end, 10);
    return errno || *end || number > max ? 0 : number;
}

static void parse(const char *page, struct holder *ret)
{
    *ret = (struct holder){0};
    take_text(page, "run", ret->run, sizeof ret->run);
    take_text(page, "program", ret->program, sizeof ret->program);
    take_text(page, "units", ret->units, sizeof ret->units);
    ret->uid = (unsigned)take_number(page, "uid", UINT32_MAX);
    ret->pid = (pid_t)take_number(page, "pid", INT32_MAX);
    ret->started = (int64_t)take_number(page, "started", INT64_MAX / 2);
    ret->ticket = take_number(page, "ticket", UINT64_MAX / 2);
    ret->wants = (unsigned)take_number(page, "wants", HOLDER_PAGES);
}

bool holder_next(int fd, unsigned *page, struct holder *ret)
{
    char text[HOLDER_PAGE_BYTES + 1];
    struct flock found;
    struct stat st;
    off_t end = fstat(fd, &st) == 0 ? st.st_size : 0;
    for (; *page < HOLDER_PAGES && (off_t)*page * HOLDER_PAGE_BYTES < end; ++*page) {
        if (lock(fd, F_OFD_GETLK, F_WRLCK, PAGE_LOCK(*page), &found) < 0 || found.l_type == F_UNLCK)
            continue;
        ssize_t n = pread(fd, text, HOLDER_PAGE_BYTES, (off_t)*page * HOLDER_PAGE_BYTES);
        text[n > 0 ? n : 0] = '\0';
        parse(text, ret);
        ++*page;
        return true;
    }
    return false;
}

bool holder_same(const struct holder *a, const struct holder *b)
{
    return a->uid == b->uid && a->pid == b->pid && a->started == b->started &&
           strcmp(a->run, b->run) == 0;
}
