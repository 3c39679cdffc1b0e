/* SPDX-License-Identifier: MIT */
#include "cpulock.h"

#include "lockdir.h"

#include <fcntl.h>

#define NAME "launch-cpus.lock"

int cpulock_open(const char *chosen, const char *sysroot, int *ret_fd, struct err *err)
{
    struct lockdir dir;
    int rc = lockdir_open(&dir, chosen, sysroot, err);
    if (rc == 0)
        rc = lockdir_file(&dir, NAME, ret_fd, err);
    lockdir_close(&dir);
    return rc;
}

static struct flock byte_of(short type, int cpu)
{
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = cpu, .l_len = 1};
}

void cpulock_taken(int fd, const struct bitset *among, struct bitset *ret)
{
    *ret = (struct bitset){0};
    for (int i = -1; (i = bitset_next(among, i)) >= 0;) {
        struct flock lock = byte_of(F_WRLCK, i);
        if (fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK)
            bitset_add(ret, i);
    }
}

bool cpulock_take(int fd, const struct bitset *cpus)
{
    for (int i = -1; (i = bitset_next(cpus, i)) >= 0;) {
        struct flock lock = byte_of(F_WRLCK, i);
        if (fcntl(fd, F_OFD_SETLK, &lock) < 0) {
            struct flock all = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
            fcntl(fd, F_OFD_SETLK, &all);
            return false;
        }
    }
    return true;
}
