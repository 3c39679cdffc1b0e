/* SPDX-License-Identifier: MIT */
#include "exposed.h"

#include "log.h"

#include <sys/stat.h>
#include <unistd.h>

void exposed_warn(int dir_fd, const char *path, const char *what, const char *risk)
{
    struct stat st;
    if (geteuid() == 0 && fstatat(dir_fd, path, &st, 0) == 0 && (st.st_mode & S_IWOTH) &&
        !(st.st_mode & S_ISVTX))
        log_warn("this runs as root, and all users may write to %s: %s (chmod o-w, or +t)", what,
                 risk);
}
