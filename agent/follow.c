/* SPDX-License-Identifier: MIT */
#include "follow.h"

#include "clean.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#define CHUNK_BYTES (64u * 1024u)
#define CHANGES (IN_MODIFY | IN_CREATE | IN_MOVED_TO)
#define OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)

int follow_init(struct follow *f, bool forever, struct err *err)
{
    *f = (struct follow){.notify_fd = -1};
    if (forever && (f->notify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) < 0)
        return err_set_errno(err, -errno, "inotify");
    return 0;
}

void follow_finish(struct follow *f)
{
    for (size_t i = 0; i < f->n; i++) {
        free(f->files[i].path);
        free(f->files[i].title);
        close_fd(&f->files[i].fd);
    }
    free(f->files);
    close_fd(&f->notify_fd);
    *f = (struct follow){.notify_fd = -1};
}

void follow_distrust(struct follow *f, uid_t owner)
{
    f->foreign = true;
    f->owner = owner;
}

/* What is opened is what was looked at; a device would notice a real open(). */
static int open_foreign(const char *path, uid_t owner)
{
    struct stat st;
    char again[64];
    AUTO_FD fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || st.st_uid != owner)
        return -EPERM;
    snprintf(again, sizeof again, "/proc/self/fd/%d", fd);
    int rc = open(again, OPEN_FLAGS);
    return rc < 0 ? -errno : rc;
}

/* A negative errno. */
static int open_file(const struct follow *f, const char *path)
{
    if (f->foreign)
        return open_foreign(path, f->owner);
    int fd = open(path, OPEN_FLAGS);
    return fd < 0 ? -errno : fd;
}

void follow_directory(struct follow *f, const char *path)
{
    if (f->notify_fd >= 0)
        inotify_add_watch(f->notify_fd, path, CHANGES | IN_ONLYDIR);
}

/* To the first line within the last bytes. */
static void skip(int fd, off_t bytes)
{
    char text[4096];
    struct stat st;
    if (bytes < 0 || fstat(fd, &st) < 0 || st.st_size <= bytes)
        return;
    off_t at = st.st_size - bytes;
    ssize_t n = pread(fd, text, sizeof text, at - 1);
    const char *newline = n > 0 ? memchr(text, '\n', (size_t)n) : NULL;
    lseek(fd, newline ? at + (newline - text) : at, SEEK_SET);
}

int follow_add(struct follow *f, const char *path, const char *title, off_t tail_bytes)
{
    AUTO_FD fd = open_file(f, path);
    if (fd < 0)
        return fd;
    struct follow_file *more = realloc(f->files, (f->n + 1) * sizeof *more);
    if (!more)
        return -ENOMEM;
    f->files = more;
    struct follow_file file = {.path = strdup(path), .title = title ? strdup(title) : NULL};
    if (!file.path || (title && !file.title)) {
        free(file.path);
        free(file.title);
        return -ENOMEM;
    }
    if (f->notify_fd >= 0)
        inotify_add_watch(f->notify_fd, path, IN_MODIFY | IN_MOVE_SELF);
    skip(fd, tail_bytes);
    file.fd = take_fd(&fd);
    f->files[f->n++] = file;
    return 0;
}

static bool put(const char *text, size_t n)
{
    while (n > 0) {
        ssize_t done = write(STDOUT_FILENO, text, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return false;
        text += done;
        n -= (size_t)done;
    }
    return true;
}

static bool put_title(struct follow *f, size_t index)
{
    char line[160];
    const char *title = f->files[index].title;
    bool change = f->last != index + 1, first = f->last == 0;
    f->last = index + 1;
    if (!title || !change)
        return true;
    int n = snprintf(line, sizeof line, "%s==> %s <==\n", first ? "" : "\n", title);
    return put(line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

/* To the end of the file as it is now. */
static bool copy_file(struct follow *f, size_t index)
{
    static char chunk[CHUNK_BYTES];
    for (;;) {
        ssize_t n = read(f->files[index].fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return true;
        if (f->foreign)
            clean_lines(chunk, (size_t)n);
        if (!put_title(f, index) || !put(chunk, (size_t)n))
            return false;
    }
}

/* The name stands for another file now. */
static bool turn_over(struct follow *f, size_t index)
{
    struct stat old, new;
    struct follow_file *file = &f->files[index];
    if (fstat(file->fd, &old) < 0 || stat(file->path, &new) < 0 ||
        (old.st_dev == new.st_dev &&old.st_ino == new.st_ino))
        return false;
    int fd = open_file(f, file->path);
    if (fd < 0)
        return false;
    close_fd(&file->fd);
    file->fd = fd;
    inotify_add_watch(f->notify_fd, file->path, IN_MODIFY | IN_MOVE_SELF);
    return true;
}

bool follow_copy(struct follow *f)
{
    for (size_t i = 0; i < f->n; i++)
        do {
            if (!copy_file(f, i))
                return false;
        } while (f->notify_fd >= 0 && turn_over(f, i));
    return true;
}

bool follow_wait(const struct follow *f, int end_fd)
{
    char events[4096];
    struct pollfd p[] = {{.fd = end_fd, .events = POLLIN}, {.fd = f->notify_fd, .events = POLLIN}};
    while (poll(p, ARRAY_LEN(p), -1) < 0 && errno == EINTR)
        continue;
    while (read(f->notify_fd, events, sizeof events) > 0)
        continue;
    return p[0].revents != 0;
}
