/* SPDX-License-Identifier: MIT */
#include "oom.h"

#include "sysfile.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static bool read_counter(int fd, unsigned long long *ret)
{
    char text[4096], value[32], *end;
    ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof text - 1, 0);
    if (n <= 0)
        return false;
    text[n] = '\0';
    if (!sysfile_field(text, "oom_kill", value, sizeof value))
        return false;
    errno = 0;
    unsigned long long count = strtoull(value, &end, 10);
    if (errno || end == value || *end)
        return false;
    *ret = count;
    return true;
}

/* Takes the file as the counter if it has one. */
static bool try_file(struct oom *oom, int dir, const char *name, const char *group)
{
    AUTO_FD fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (!read_counter(fd, &oom->was) || snprintf(oom->path, PATH_MAX, "%s", group) >= PATH_MAX)
        return false;
    oom->fd = take_fd(&fd);
    return true;
}

/* The kernel adds a kill to the victim's own group and, in v2, to all above it; a group without the controller has no
 * file, and its memory is its parent's. */
static bool try_upwards(struct oom *oom, char *path, const char *mount)
{
    while (strlen(path) >= strlen(mount)) {
        AUTO_FD dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir >= 0 && try_file(oom, dir, "memory.events", path))
            return true;
        *strrchr(path, '/') = '\0';
    }
    return false;
}

void oom_open(struct oom *oom, const char *sysroot, const struct cgroup *leaf)
{
    char path[PATH_MAX], mount[PATH_MAX];
    *oom = (struct oom){.fd = -1};
    if (leaf->fd >= 0 && try_file(oom, leaf->fd, "memory.events", leaf->name))
        return;
    if (snprintf(mount, sizeof mount, "%s/sys/fs/cgroup", sysroot) >= PATH_MAX)
        return;
    if (cgroup_own(path, sysroot, NULL) && try_upwards(oom, path, mount))
        return;
    if (!cgroup_own(path, sysroot, "memory"))
        return;
    AUTO_FD dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir >= 0)
        try_file(oom, dir, "memory.oom_control", path);
}

void oom_rebase(struct oom *oom, const char *sysroot, const struct cgroup *leaf)
{
    oom_close(oom);
    oom_open(oom, sysroot, leaf);
}

bool oom_explain(struct oom *oom, bool killed, char *what, size_t size)
{
    unsigned long long now;
    char proof[320];
    if (!read_counter(oom->fd, &now) || now <= oom->was)
        return false;
    snprintf(proof, sizeof proof, "(oom_kill of %.200s went from %llu to %llu)", oom->path,
             oom->was, now);
    oom->was = now;
    size_t n = strlen(what);
    if (killed)
        snprintf(what, size, "was killed by the kernel's out-of-memory killer, with SIGKILL %s",
                 proof);
    else
        snprintf(what + n, size - n,
                 ", after the kernel's out-of-memory killer had ended a process %s", proof);
    return true;
}

void oom_close(struct oom *oom)
{
    close_fd(&oom->fd);
}
