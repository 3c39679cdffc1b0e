/* SPDX-License-Identifier: MIT */
#include "cgroup.h"

#include "sysfile.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#ifndef CGROUP2_SUPER_MAGIC
#define CGROUP2_SUPER_MAGIC 0x63677270
#endif

#define DEPTH_MAX 8      /* of what workers made below the leaf */
#define REMOVE_TRIES 100 /* a process that was reaped may count for a moment longer */
#define REMOVE_PAUSE_MS 2

/* ---- where we are ---- */

static bool names(const char *controllers, const char *wanted)
{
    size_t wanted_n = strlen(wanted);
    for (const char *c = controllers; *c; c += *c == ',') {
        size_t n = strcspn(c, ",");
        if (n == wanted_n && memcmp(c, wanted, n) == 0)
            return true;
        c += n;
    }
    return false;
}

/* The group of a line of /proc/self/cgroup, "id:controllers:/group", if it is the hierarchy that is wanted; v2 has no
 * controllers. NULL also for a group outside of our cgroup namespace. */
static char *group_of_line(char *line, const char *controller)
{
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return NULL;
    *group++ = '\0';
    controllers++;
    if (controller ? !names(controllers, controller) : *controllers != '\0')
        return NULL;
    if (group[0] != '/' || strstr(group, "/.."))
        return NULL;
    return group;
}

static bool is_group(const char *path, bool v2, bool real)
{
    char procs[PATH_MAX];
    if (snprintf(procs, sizeof procs, "%s/cgroup.procs", path) >= (int)sizeof procs ||
        access(procs, F_OK) < 0)
        return false;
    struct statfs fs;
    return !v2 || !real || (statfs(path, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC);
}

/* Looks for our pid in a file that any number of other processes are in. */
static bool lists_us(const char *path)
{
    char file[PATH_MAX], line[32];
    long pid = (long)getpid();
    if (snprintf(file, sizeof file, "%s/cgroup.procs", path) >= (int)sizeof file)
        return false;
    FILE *procs = fopen(file, "re");
    bool found = false;
    while (procs && !found && fgets(line, sizeof line, procs))
        found = strtol(line, NULL, 10) == pid;
    if (procs)
        fclose(procs);
    return found;
}

/* In a container without a cgroup namespace the group's path is the host's and leads nowhere below our mount, which
 * then mostly is our group itself. */
static bool find_mounted(char path[PATH_MAX], const char *sysroot, const char *controller,
                         const char *group)
{
    static const char *const v2[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    char v1[64];
    size_t n = controller ? 1 : ARRAY_LEN(v2);
    snprintf(v1, sizeof v1, "/sys/fs/cgroup/%s", controller ? controller : "");
    for (size_t i = 0; i < n; i++) {
        const char *mount = controller ? v1 : v2[i];
        int bytes = snprintf(path, PATH_MAX, "%s%s%s", sysroot, mount,
                             strcmp(group, "/") == 0 ? "" : group);
        if (bytes > 0 && bytes < PATH_MAX && is_group(path, !controller, !sysroot[0]))
            return true;
        bytes = snprintf(path, PATH_MAX, "%s%s", sysroot, mount);
        if (bytes > 0 && bytes < PATH_MAX && is_group(path, !controller, !sysroot[0]) &&
            lists_us(path))
            return true;
    }
    return false;
}

bool cgroup_own(char path[PATH_MAX], const char *sysroot, const char *controller)
{
    char text[16384];
    if (sysfile_read(text, sizeof text, sysroot, "/proc/self/cgroup") < 0)
        return false;
    char *rest;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        const char *group = group_of_line(line, controller);
        if (group)
            return find_mounted(path, sysroot, controller, group);
    }
    return false;
}

/* ---- the leaf ---- */

void cgroup_none(struct cgroup *c)
{
    *c = (struct cgroup){.parent_fd = -1, .fd = -1};
}

void cgroup_find(struct cgroup *c, const char *sysroot, const char *run_id)
{
    uint32_t digits;
    cgroup_none(c);
    if (!cgroup_own(c->parent_path, sysroot, NULL) ||
        getrandom(&digits, sizeof digits, GRND_NONBLOCK) != (ssize_t)sizeof digits)
        return;
    snprintf(c->name, sizeof c->name, "launch-%.63s-%08" PRIx32, run_id, digits);
    AUTO_FD fd = open(c->parent_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* Delegated to us: a place for the leaf, and the right to move processes from here. */
    if (fd >= 0 && faccessat(fd, ".", W_OK, AT_EACCESS) == 0 &&
        faccessat(fd, "cgroup.procs", W_OK, AT_EACCESS) == 0)
        c->parent_fd = take_fd(&fd);
}

void cgroup_create(struct cgroup *c)
{
    if (c->parent_fd < 0 || mkdirat(c->parent_fd, c->name, 0755) < 0)
        return;
    c->fd = openat(c->parent_fd, c->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

bool cgroup_kill(const struct cgroup *c)
{
    char path[CGROUP_NAME_BYTES + 16];
    if (c->parent_fd < 0)
        return false;
    snprintf(path, sizeof path, "%s/cgroup.kill", c->name);
    AUTO_FD fd = openat(c->parent_fd, path, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, "1", 1) == 1;
}

/* Removes the directories in a group, deepest first; errors are met again by the caller. */
static void remove_below(int parent_fd, const char *name, unsigned depth)
{
    int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        close_fd(&fd);
        return;
    }
    struct dirent *entry;
    while ((entry = readdir(dir))) {
        if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
            continue;
        if (depth < DEPTH_MAX)
            remove_below(fd, entry->d_name, depth + 1);
        unlinkat(fd, entry->d_name, AT_REMOVEDIR);
    }
    closedir(dir);
}

bool cgroup_remove(const struct cgroup *c)
{
    if (c->parent_fd < 0)
        return true;
    for (unsigned i = 0; i < REMOVE_TRIES; i++) {
        if (unlinkat(c->parent_fd, c->name, AT_REMOVEDIR) == 0 || errno == ENOENT)
            return true;
        if (errno != EBUSY && errno != ENOTEMPTY)
            return false;
        remove_below(c->parent_fd, c->name, 0);
        poll(NULL, 0, i ? REMOVE_PAUSE_MS : 0);
    }
    return false;
}

void cgroup_renew(struct cgroup *c)
{
    close_fd(&c->fd);
    if (cgroup_remove(c))
        cgroup_create(c);
}

void cgroup_close(struct cgroup *c)
{
    close_fd(&c->parent_fd);
    close_fd(&c->fd);
}
