/* SPDX-License-Identifier: MIT */
#include "rundir.h"

#include "../proto/clock.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#define YOUNG_S 2 /* bind and listen are two system calls */

/* ---- where ---- */

PRINTF_LIKE(2, 3) static bool put_path(char path[PATH_MAX], const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    int n = vsnprintf(path, PATH_MAX, format, ap);
    va_end(ap);
    if (n > 0 && n < PATH_MAX)
        return true;
    path[0] = '\0';
    return false;
}

static bool is_own_directory(const char *path, uid_t owner)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == owner;
}

/* What sudo left there is another user's. */
static bool find_session(char path[PATH_MAX])
{
    const char *xdg = getenv("XDG_RUNTIME_DIR");
    return xdg && xdg[0] == '/' && is_own_directory(xdg, geteuid()) &&
           put_path(path, "%s/launch", xdg);
}

/* parent: "/dev/shm" or "/tmp". */
static void find_own(char path[PATH_MAX], const char *sysroot, const char *parent)
{
    put_path(path, "%s%s/launch-%u", sysroot, parent, (unsigned)geteuid());
}

void rundir_choose(struct rundir_place *ret, const char *sysroot, const char *run_id,
                   bool outlives_session)
{
    uint32_t dice = 0;
    if (getrandom(&dice, sizeof dice, GRND_NONBLOCK) < 0)
        dice = (uint32_t)clock_now_ns();
    ret->owner = geteuid();
    snprintf(ret->name, sizeof ret->name, "%s.%08" PRIx32, run_id, dice);
    if (outlives_session)
        find_own(ret->dir, sysroot, "/tmp");
    else if (!find_session(ret->dir))
        find_own(ret->dir, sysroot, "/dev/shm");
}

/* ---- made and removed ---- */

/* Nobody else may enter it, or somebody could put a socket of his own in the place of one of ours. Returns the directory
 * that was looked at, opened with O_PATH, as its name may stand for another one in a moment; or a negative errno. */
static int open_directory(const char *path, uid_t owner, struct err *err)
{
    struct stat st;
    AUTO_FD fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set_errno(err, -errno, "%s", path);
    if (!S_ISDIR(st.st_mode))
        return err_set(err, -EPERM, "%s is no directory: remove it", path);
    if (st.st_uid != owner)
        return err_set(err, -EPERM, "%s belongs to uid %u, not to %u", path, (unsigned)st.st_uid,
                       (unsigned)owner);
    if (st.st_mode & 077)
        return err_set(err, -EPERM, "%s may be entered by others (mode %03o): chmod 700", path,
                       (unsigned)st.st_mode & 0777);
    return take_fd(&fd);
}

int rundir_make(const struct rundir_place *place, struct err *err)
{
    if (!place->dir[0])
        return err_set(err, -ENAMETOOLONG, "no directory for control sockets");
    if (mkdir(place->dir, 0700) < 0 && errno != EEXIST)
        return err_set_errno(err, -errno, "%s", place->dir);
    AUTO_FD fd = open_directory(place->dir, place->owner, err);
    return fd < 0 ? fd : 0;
}

void rundir_remove(const struct rundir_place *place)
{
    char path[PATH_MAX];
    struct err err;
    if (!place->dir[0] || !put_path(path, "%s/%s", place->dir, place->name))
        return;
    /* Who was to make the socket may have come no further than its directory; one that can't be used is not ours. */
    bool ours = unlink(path) == 0;
    if (!ours && errno == ENOENT) {
        AUTO_FD fd = open_directory(place->dir, place->owner, &err);
        ours = fd >= 0;
    }
    if (ours)
        rmdir(place->dir); /* refused while it holds others */
}

void rundir_sweep(const struct rundir_place *place)
{
    struct stat st;
    struct err err;
    AUTO_FD fd = open_directory(place->dir, place->owner, &err);
    if (fd >= 0 && fstatat(fd, place->name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISSOCK(st.st_mode) && time(NULL) - st.st_mtime > YOUNG_S &&
        unlinkat(fd, place->name, 0) == 0)
        rmdir(place->dir);
}

int rundir_address(const struct rundir_place *place, struct sockaddr_un *ret, int *ret_fd)
{
    struct err err;
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    *ret_fd = -1;
    int n = snprintf(ret->sun_path, sizeof ret->sun_path, "%s/%s", place->dir, place->name);
    if (place->owner == geteuid() && n > 0 && (size_t)n < sizeof ret->sun_path)
        return 0;
    int fd = open_directory(place->dir, place->owner, &err);
    if (fd < 0)
        return fd;
    snprintf(ret->sun_path, sizeof ret->sun_path, "/proc/self/fd/%d/%s", fd, place->name);
    *ret_fd = fd;
    return 0;
}

/* ---- found ---- */

struct walk {
    const char *sysroot;
    void (*visit)(void *user, const struct rundir_place *place);
    void *user;
    struct seen {
        dev_t dev;
        ino_t ino;
    } * seen; /* owned: one directory may have two names */
    size_t seen_n;
    struct err *err; /* the first trouble */
    int rc;
};

static bool is_new(struct walk *w, int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return false;
    for (size_t i = 0; i < w->seen_n; i++)
        if (w->seen[i].dev == st.st_dev && w->seen[i].ino == st.st_ino)
            return false;
    struct seen *more = realloc(w->seen, (w->seen_n + 1) * sizeof *more);
    if (!more)
        return false;
    w->seen = more;
    w->seen[w->seen_n++] = (struct seen){st.st_dev, st.st_ino};
    return true;
}

/* A stranger, who may put there as much as he likes, shall use up neither the caller's time nor his descriptors. */
static int walk_one(struct walk *w, const char *path, uid_t owner, struct err *err)
{
    bool strange = owner != geteuid();
    int rc = 0, left = RUNDIR_STRANGERS_MAX + 2; /* "." and ".." */
    struct rundir_place place = {.owner = owner};
    struct err why;
    AUTO_FD fd = open_directory(path, owner, &why);
    if (fd == -ENOENT || fd == -ENOTDIR)
        return 0;
    if (fd < 0)
        return strange ? 0 : err_set(err, fd, "%s", why.text);
    AUTO_FD inside = is_new(w, fd) ? openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    DIR *dir = inside >= 0 ? fdopendir(inside) : NULL;
    struct dirent *entry;
    if (dir)
        take_fd(&inside);
    while (dir && rc == 0 && (entry = readdir(dir))) {
        size_t n = strlen(entry->d_name);
        if (strange && left-- == 0)
            rc = err_set(err, -E2BIG, "%s holds more than %d files: jobs of uid %u may be missing",
                         path, RUNDIR_STRANGERS_MAX, (unsigned)owner);
        if (rc < 0 || entry->d_name[0] == '.' || entry->d_type != DT_SOCK || n >= sizeof place.name)
            continue;
        put_path(place.dir, "%s", path);
        memcpy(place.name, entry->d_name, n + 1);
        w->visit(w->user, &place);
    }
    if (dir)
        closedir(dir);
    return rc;
}

static void walk_and_tell(struct walk *w, const char *path, uid_t owner)
{
    int rc = walk_one(w, path, owner, w->rc < 0 ? NULL : w->err);
    if (w->rc == 0)
        w->rc = rc;
}

/* Directories "<parent>/<prefix><uid><suffix>" of all others. Each has one: no zeros before the number, and none that would
 * have to be cut to become his. */
static void walk_users(struct walk *w, const char *parent, const char *prefix, const char *suffix)
{
    char path[PATH_MAX], name[64];
    if (!put_path(path, "%s%s", w->sysroot, parent))
        return;
    DIR *dir = opendir(path);
    struct dirent *entry;
    size_t n = strlen(prefix);
    while (dir && (entry = readdir(dir))) {
        if (strncmp(entry->d_name, prefix, n) != 0)
            continue;
        uid_t uid = (uid_t)strtoul(entry->d_name + n, NULL, 10);
        snprintf(name, sizeof name, "%s%u", prefix, (unsigned)uid);
        if (uid != geteuid() && strcmp(entry->d_name, name) == 0 &&
            put_path(path, "%s%s/%s%s", w->sysroot, parent, name, suffix))
            walk_and_tell(w, path, uid);
    }
    if (dir)
        closedir(dir);
}

int rundir_walk(const char *sysroot, void (*visit)(void *user, const struct rundir_place *place),
                void *user, struct err *err)
{
    struct walk w = {.sysroot = sysroot, .visit = visit, .user = user, .err = err};
    static const char *const parents[] = {"/dev/shm", "/tmp"};
    char path[PATH_MAX];
    if (find_session(path))
        walk_and_tell(&w, path, geteuid());
    for (size_t i = 0; i < ARRAY_LEN(parents); i++) {
        find_own(path, sysroot, parents[i]);
        walk_and_tell(&w, path, geteuid());
    }
    /* A shell without the variable has the same user. */
    if (put_path(path, "%s/run/user/%u/launch", sysroot, (unsigned)geteuid()))
        (void)walk_one(&w, path, geteuid(), NULL);
    if (geteuid() == 0) {
        walk_users(&w, "/run/user", "", "/launch");
        walk_users(&w, "/dev/shm", "launch-", "");
        walk_users(&w, "/tmp", "launch-", "");
    }
    free(w.seen);
    return w.rc;
}
