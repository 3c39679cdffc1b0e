/* SPDX-License-Identifier: MIT */
/* See logdir.h. Must never know runs, attempts or ranks. */
#include "logdir.h"

#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#define SHOWN_BYTES 300

/* As much of a path as leaves room for the reason behind it. */
static const char *shown(const char *path, char text[SHOWN_BYTES])
{
    snprintf(text, SHOWN_BYTES, "%s", path);
    return text;
}

static int refuse(struct err *err, int error, const char *path)
{
    char text[SHOWN_BYTES];
    struct stat link, target;
    if (error == ENOENT && lstat(path, &link) == 0 && S_ISLNK(link.st_mode) &&
        stat(path, &target) < 0)
        return err_set(err, -error, "%s: it is a link to something that is not there",
                       shown(path, text));
    return err_set_errno(err, -error, "%s", shown(path, text));
}

/* Heap; NULL with errno. */
static char *make_absolute(const char *path)
{
    char here[PATH_MAX], *whole = NULL;
    if (path[0] != '/' && !getcwd(here, sizeof here))
        return NULL;
    int n = path[0] == '/' ? asprintf(&whole, "%s", path) : asprintf(&whole, "%s/%s", here, path);
    if (n >= 0)
        return whole;
    errno = ENOMEM;
    return NULL;
}

/* mkdir, content with a directory that is there already. */
static int make_one(const char *path)
{
    struct stat st;
    if (mkdir(path, 0777) == 0 || errno == EEXIST)
        return 0;
    int error = errno;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? 0 : -error;
}

static int make_parents(char *path)
{
    for (char *slash = path + strspn(path, "/"); (slash = strchr(slash, '/'));) {
        *slash = '\0';
        int rc = make_one(path);
        *slash = '/';
        if (rc < 0)
            return rc;
        slash += strspn(slash, "/");
    }
    return make_one(path);
}

int logdir_open(const char *path, char **ret_path, int *ret_fd, struct err *err)
{
    AUTO_FREE char *whole = make_absolute(path);
    if (!whole)
        return refuse(err, errno, path);
    int rc = make_parents(whole);
    AUTO_FD fd = rc < 0 ? -1 : open(whole, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return refuse(err, rc < 0 ? -rc : errno, whole);
    *ret_path = whole;
    whole = NULL;
    *ret_fd = take_fd(&fd);
    return 0;
}

static void random_name(char name[LOGDIR_RANDOM_CHARS + 1])
{
    static const char CHARS[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    uint8_t bytes[LOGDIR_RANDOM_CHARS] = {0};
    /* A name that is taken already is only tried again. */
    if (getrandom(bytes, sizeof bytes, GRND_NONBLOCK) < 0)
        memcpy(bytes, &(uint64_t){(uint64_t)getpid() * 0x9e3779b97f4a7c15u}, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++)
        name[i] = CHARS[bytes[i] % (sizeof CHARS - 1)];
    name[sizeof bytes] = '\0';
}

int logdir_create(int parent_fd, const char *path, const char *stem, char **ret_name, int *ret_fd,
                  struct err *err)
{
    char text[SHOWN_BYTES];
    for (int tries = 100;; tries--) {
        char random[LOGDIR_RANDOM_CHARS + 1];
        AUTO_FREE char *name = NULL;
        random_name(random);
        if (asprintf(&name, "%s_%s", stem, random) < 0) {
            name = NULL;
            return err_set_errno(err, -ENOMEM, "%s", shown(path, text));
        }
        if (mkdirat(parent_fd, name, 0700) < 0) {
            if (errno == EEXIST && tries > 0)
                continue;
            return err_set_errno(err, -errno, "%s: a directory in it", shown(path, text));
        }
        int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            return err_set_errno(err, -errno, "%s: %s", shown(path, text), name);
        *ret_name = name;
        name = NULL;
        *ret_fd = fd;
        return 0;
    }
}

int logdir_write_all(int fd, const char *text, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, text, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return -errno;
        text += done;
        n -= (size_t)done;
    }
    return 0;
}

int logdir_write_file(int dir_fd, const char *name, const char *text, size_t n)
{
    char beside[NAME_MAX + 1];
    snprintf(beside, sizeof beside, ".%s", name);
    AUTO_FD fd =
        openat(dir_fd, beside, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    int rc = fd < 0 ? -errno : logdir_write_all(fd, text, n);
    return rc < 0 ? rc : renameat(dir_fd, beside, dir_fd, name) < 0 ? -errno : 0;
}
