/* SPDX-License-Identifier: MIT */
#include "nccl_shm.h"

#include "../proto/base.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "nccl-"
#define SUFFIX_BYTES 6

static bool is_name(const char *name)
{
    static const char *const LETTERS = "abcdefghijklmnopqrstuvwxyz"
                                       "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    const char *suffix = name + strlen(PREFIX);
    return strncmp(name, PREFIX, strlen(PREFIX)) == 0 && strlen(suffix) == SUFFIX_BYTES &&
           strspn(suffix, LETTERS) == SUFFIX_BYTES;
}

/* What mkstemp() makes, of ours, and since then: nobody changes the file itself later, but through the mapping. */
static bool is_recent_file(int fd, const struct timespec *since)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || st.st_uid != geteuid() || st.st_nlink != 1 ||
        (st.st_mode & ~(mode_t)S_IFMT) != (S_IRUSR | S_IWUSR) || !S_ISREG(st.st_mode))
        return false;
    return st.st_ctim.tv_sec != since->tv_sec ? st.st_ctim.tv_sec > since->tv_sec
                                              : st.st_ctim.tv_nsec >= since->tv_nsec;
}

/* A lease for writing is given to whom nobody shares the file with: a mapping counts, and so does what /proc does not show. It
 * lasts until the descriptor is closed: whoever comes now waits, and finds no name. */
static bool remove_idle(int dir, const char *name, const struct timespec *since)
{
    AUTO_FD fd = openat(dir, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    return fd >= 0 && is_recent_file(fd, since) && fcntl(fd, F_SETLEASE, F_WRLCK) == 0 &&
           unlinkat(dir, name, 0) == 0;
}

unsigned nccl_shm_sweep(const char *sysroot, const struct timespec *since)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/dev/shm", sysroot);
    DIR *dir = opendir(path);
    if (!dir)
        return 0;
    /* By which the kernel tells that somebody wants the file; it would end us. */
    sigset_t io, before;
    sigemptyset(&io);
    sigaddset(&io, SIGIO);
    sigprocmask(SIG_BLOCK, &io, &before);
    unsigned n = 0;
    struct dirent *entry;
    while ((entry = readdir(dir)))
        n += is_name(entry->d_name) && remove_idle(dirfd(dir), entry->d_name, since);
    closedir(dir);
    sigtimedwait(&io, NULL, &(struct timespec){0});
    sigprocmask(SIG_SETMASK, &before, NULL);
    return n;
}
