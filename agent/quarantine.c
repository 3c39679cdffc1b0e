/* SPDX-License-Identifier: MIT */
#include "quarantine.h"

#include "clean.h"
#include "sysfile.h"
#include "units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>

#define RECORD_AT ((off_t)HOLDER_PAGES * HOLDER_PAGE_BYTES)
#define RECORD_BYTES 512
#define MAGIC "launch quarantine\n"
#define BOOT_BYTES 48

/* Of the running kernel; "?" where it does not tell: then a record holds until it is cleared. */
static void read_boot(const char *sysroot, char ret[BOOT_BYTES])
{
    ssize_t n = sysfile_read(ret, BOOT_BYTES, sysroot, "/proc/sys/kernel/random/boot_id");
    if (n > 0)
        ret[strcspn(ret, " \n")] = '\0';
    if (n <= 0 || !*ret)
        snprintf(ret, BOOT_BYTES, "?");
}

/* Foreign text on its way to a terminal. */
static bool take(const char *text, const char *key, char *ret, size_t bytes)
{
    bool found = sysfile_field(text, key, ret, bytes);
    if (!found)
        ret[0] = '\0';
    clean(ret, bytes, ret);
    return found;
}

bool quarantine_read(int fd, const char *sysroot, struct quarantine *ret)
{
    char text[RECORD_BYTES + 1], boot[BOOT_BYTES], now[BOOT_BYTES], since[24];
    ssize_t n = pread(fd, text, RECORD_BYTES, RECORD_AT);
    if (n < (ssize_t)strlen(MAGIC) || memcmp(text, MAGIC, strlen(MAGIC)) != 0)
        return false;
    text[n] = '\0';
    read_boot(sysroot, now);
    if (!take(text, "boot", boot, sizeof boot) || strcmp(boot, now) != 0)
        return false;
    char *end;
    take(text, "since", since, sizeof since);
    ret->since = strtoll(since, &end, 10);
    if (*end || ret->since < 0 || ret->since > INT64_MAX / 2)
        ret->since = 0;
    take(text, "run", ret->run, sizeof ret->run);
    if (!take(text, "reason", ret->reason, sizeof ret->reason))
        snprintf(ret->reason, sizeof ret->reason, "?");
    return true;
}

static int write_record(int fd, const char text[RECORD_BYTES])
{
    ssize_t n = pwrite(fd, text, RECORD_BYTES, RECORD_AT);
    return n < 0 ? -errno : n < RECORD_BYTES ? -ENOSPC : 0;
}

int quarantine_write(int fd, const char *sysroot, const struct quarantine *q)
{
    char text[RECORD_BYTES] = "", boot[BOOT_BYTES];
    read_boot(sysroot, boot);
    snprintf(text, sizeof text, MAGIC "boot %s\nsince %" PRId64 "\nrun %s\nreason %s\n", boot,
             q->since, q->run, q->reason);
    return write_record(fd, text);
}

int quarantine_erase(int fd)
{
    char nothing[RECORD_BYTES] = "";
    return write_record(fd, nothing);
}

bool quarantine_of(const struct units *u, unsigned unit, struct quarantine *ret)
{
    for (int at = (int)unit; at >= 0; at = u->parent[at])
        if (quarantine_read(u->fd[at], u->sysroot, ret))
            return true;
    return false;
}

/* ---- lock files that are not open ---- */

static int open_file(struct units *u, const char *lease_dir, const char *sysroot,
                     const struct gpu *gpu, struct err *err)
{
    struct gpu_list one = {.vendor = GPU_NVIDIA, .n = 1, .gpu = {*gpu}};
    int rc = units_open(u, lease_dir, sysroot, &one, NULL, err);
    return rc < 0 ? rc : units_open_one(u, 0, err);
}

bool quarantine_holds(const char *lease_dir, const char *sysroot, const struct gpu *gpu,
                      struct quarantine *ret)
{
    struct units u = {0};
    struct err err;
    bool holds = open_file(&u, lease_dir, sysroot, gpu, &err) == 0 && quarantine_of(&u, 0, ret);
    units_close(&u);
    return holds;
}

int quarantine_put(const char *lease_dir, const char *sysroot, const struct gpu *gpu,
                   const struct quarantine *q, struct err *err)
{
    struct units u = {0};
    int rc = open_file(&u, lease_dir, sysroot, gpu, err);
    if (rc == 0) {
        rc = quarantine_write(u.fd[0], sysroot, q);
        if (rc < 0)
            err_set_errno(err, rc, "lock file %s/%s", u.dir.path, u.name[0]);
    }
    units_close(&u);
    return rc;
}

int quarantine_watch(const char *lease_dir, const char *sysroot)
{
    struct lockdir dir;
    struct err err;
    int rc = lockdir_open(&dir, lease_dir, sysroot, &err);
    if (rc < 0)
        return rc;
    AUTO_FD fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd >= 0)
        rc = inotify_add_watch(fd, dir.path, IN_CLOSE_WRITE);
    if (fd < 0 || rc < 0)
        rc = -errno;
    lockdir_close(&dir);
    return rc < 0 ? rc : take_fd(&fd);
}
