/* SPDX-License-Identifier: MIT */
#include "lockdir.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_MODE 0666
#define TRIES 10 /* somebody may make or remove the file at the same moment */

/* NULL, or why files in it are not safe from others. */
static const char *why_unsafe(const struct stat *st, bool chosen)
{
    if (!S_ISDIR(st->st_mode))
        return "it is no directory";
    if (st->st_uid != 0 && st->st_uid != geteuid())
        return "it belongs to another user, who could remove the locks in it";
    if (!chosen && st->st_uid != 0 && geteuid() == 0)
        return "it does not belong to root";
    if ((st->st_mode & (S_IWGRP | S_IWOTH)) && !(st->st_mode & S_ISVTX))
        return "others may remove the locks in it: it needs the sticky bit (chmod +t)";
    return NULL;
}

static int try_open(struct lockdir *dir, const char *path, bool chosen, struct err *err)
{
    struct stat st;
    AUTO_FD fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set_errno(err, -errno, "directory of GPU leases %s", path);
    const char *why = why_unsafe(&st, chosen);
    if (why)
        return err_set(err, -EPERM, "directory of GPU leases %s: %s", path, why);
    if (snprintf(dir->path, sizeof dir->path, "%s", path) >= (int)sizeof dir->path)
        return err_set_errno(err, -ENAMETOOLONG, "directory of GPU leases");
    dir->fd = take_fd(&fd);
    return 0;
}

/* /run/lock of some distributions is root's alone: no place that all users share. Where an administrator has made
 * /run/launch, he has decided who may. */
static bool for_everybody(const struct lockdir *dir)
{
    struct stat st;
    return fstat(dir->fd, &st) == 0 && (st.st_mode & S_IWOTH);
}

int lockdir_open(struct lockdir *dir, const char *chosen, const char *sysroot, struct err *err)
{
    static const char *const PLACES[] = {"/run/launch", "/run/lock", "/tmp"};
    *dir = (struct lockdir){.fd = -1};
    if (chosen)
        return try_open(dir, chosen, true, err);
    char path[PATH_MAX];
    for (size_t i = 0; i < ARRAY_LEN(PLACES); i++) {
        if (snprintf(path, sizeof path, "%s%s", sysroot, PLACES[i]) >= (int)sizeof path)
            return err_set_errno(err, -ENAMETOOLONG, "directory of GPU leases");
        bool last = i + 1 == ARRAY_LEN(PLACES);
        if (last && *sysroot)
            mkdir(path, 0777); /* a described machine may have none */
        if (try_open(dir, path, false, err) == 0) {
            if (i == 0 || *sysroot || for_everybody(dir))
                return 0;
            lockdir_close(dir);
        }
    }
    return err_set(
        err, -ENOENT,
        "no directory for GPU leases: make /run/launch, owned by root and with mode 1777, "
        "or name another one with --lease-dir");
}

void lockdir_close(struct lockdir *dir)
{
    close_fd(&dir->fd);
    dir->path[0] = '\0';
}

static const char *why_foreign(const struct stat *st)
{
    if (!S_ISREG(st->st_mode))
        return "it is no plain file";
    if (st->st_nlink > 1)
        return "it has a second name (a hard link)";
    if ((st->st_mode & 07777) != FILE_MODE)
        return "its mode is not 0666";
    return NULL;
}

/* A negative errno. No O_CREAT for what is there: where fs.protected_regular is set, that would be refused for another
 * user's file. O_NONBLOCK: of a FIFO. */
static int open_or_make(const struct lockdir *dir, const char *name)
{
    const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
    for (int i = 0; i < TRIES; i++) {
        int fd = openat(dir->fd, name, flags);
        if (fd < 0 && errno == ENOENT) {
            mode_t mask = umask(0);
            fd = openat(dir->fd, name, flags | O_CREAT | O_EXCL, FILE_MODE);
            umask(mask);
        }
        if (fd >= 0 || (errno != EEXIST && errno != ENOENT))
            return fd < 0 ? -errno : fd;
    }
    return -EBUSY;
}

int lockdir_file(const struct lockdir *dir, const char *name, int *ret_fd, struct err *err)
{
    AUTO_FD fd = open_or_make(dir, name);
    struct stat st;
    if (fd == -ELOOP)
        return err_set(err, -EPERM, "%s/%s is not our lock file: it is a symbolic link; remove it",
                       dir->path, name);
    if (fd < 0)
        return err_set_errno(err, fd, "lock file %s/%s", dir->path, name);
    if (fstat(fd, &st) < 0)
        return err_set_errno(err, -errno, "lock file %s/%s", dir->path, name);
    const char *why = why_foreign(&st);
    if (why)
        return err_set(err, -EPERM, "%s/%s is not our lock file: %s; remove it", dir->path, name,
                       why);
    *ret_fd = take_fd(&fd);
    return 0;
}

bool lockdir_is_current(const struct lockdir *dir, const char *name, int fd)
{
    struct stat ours, there;
    return fstat(fd, &ours) == 0 && fstatat(dir->fd, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}
