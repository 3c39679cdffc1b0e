/* SPDX-License-Identifier: MIT */
#include "baseline_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#define FILE_BYTES_MAX (32 << 20) /* more than the most points need */
#define FOLDER "/launch/baselines"

/* ---- where ---- */

/* Ours from FOLDER on; what is before it is the system's, or the user's, links and all. */
static int choose_directory(char ret[PATH_MAX], const char *sysroot, struct err *err)
{
    char root[PATH_MAX];
    const char *xdg = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int n = snprintf(root, sizeof root, "%s/var/lib", sysroot);
    if (xdg && xdg[0] == '/')
        n = snprintf(ret, PATH_MAX, "%s" FOLDER, xdg);
    else if (geteuid() == 0 && n < (int)sizeof root && access(root, W_OK) == 0)
        n = snprintf(ret, PATH_MAX, "%s" FOLDER, root);
    else if (home && home[0] == '/')
        n = snprintf(ret, PATH_MAX, "%s/.local/state" FOLDER, home);
    else
        return err_set(
            err, -EINVAL,
            "no place for baselines: neither HOME nor XDG_STATE_HOME is set; name a file");
    return n < PATH_MAX ? 0 : err_set(err, -ENAMETOOLONG, "the directory of baselines");
}

int baseline_store_path(char ret[PATH_MAX], const struct baseline *b, const char *sysroot,
                        struct err *err)
{
    char dir[PATH_MAX];
    int rc = choose_directory(dir, sysroot, err);
    if (rc < 0)
        return rc;
    int n =
        snprintf(ret, PATH_MAX, "%s/%s-%d-%016llx.json", dir, bench_collective_name(b->collective),
                 b->ranks, (unsigned long long)baseline_key(b));
    return n < PATH_MAX ? 0 : err_set(err, -ENAMETOOLONG, "the directory of baselines");
}

/* ---- read ---- */

/* What there is, n bytes at most. */
static int read_all(int fd, char *text, size_t n, size_t *ret_n)
{
    size_t used = 0;
    while (used < n) {
        ssize_t got = read(fd, text + used, n - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        used += (size_t)got;
    }
    *ret_n = used;
    return 0;
}

/* Reads all of a regular file; *ret is the caller's to free(). */
static int read_file(int dir_fd, const char *name, char **ret, size_t *ret_n, struct err *err)
{
    struct stat st;
    AUTO_FD fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ELOOP)
        return err_set(err, -EINVAL, "it is a symbolic link: name the file itself");
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set(err, -errno, "%s", strerror(errno));
    if (!S_ISREG(st.st_mode))
        return err_set(err, -EINVAL, "it is no regular file");
    if (st.st_size > FILE_BYTES_MAX)
        return err_set(err, -EINVAL, "it is too large for a baseline: %lld bytes",
                       (long long)st.st_size);
    char *text = malloc((size_t)st.st_size + 1);
    if (!text)
        return err_set_errno(err, -ENOMEM, "baseline");
    int rc = read_all(fd, text, (size_t)st.st_size, ret_n);
    if (rc < 0) {
        free(text);
        return err_set(err, rc, "%s", strerror(-rc));
    }
    *ret = text;
    return 0;
}

static int load_at(struct baseline *ret, int dir_fd, const char *name, struct err *err)
{
    char *text = NULL;
    size_t n = 0;
    int rc = read_file(dir_fd, name, &text, &n, err);
    if (rc == 0)
        rc = baseline_parse(ret, text, n, err);
    free(text);
    return rc;
}

int baseline_store_load(struct baseline *ret, const char *path, struct err *err)
{
    int rc = load_at(ret, AT_FDCWD, path, err);
    return rc < 0 ? err_wrap(err, rc, "baseline %s", path) : 0;
}

/* ---- written ---- */

/* Opens the directory of a path, made if it is not there, for our own part of the way. */
static int enter(int parent, const char *name, const char *path, struct err *err)
{
    struct stat st;
    if (mkdirat(parent, name, 0755) < 0 && errno != EEXIST)
        return err_set_errno(err, -errno, "baseline %s: directory %s", path, name);
    AUTO_FD fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return err_set_errno(err, -errno, "baseline %s: directory %s", path, name);
    if (fstat(fd, &st) < 0 || (st.st_uid != geteuid() && st.st_uid != 0) || st.st_mode & S_IWOTH)
        return err_set(err, -EPERM, "baseline %s: others may write to its directory %s", path,
                       name);
    return take_fd(&fd);
}

/* mkdir -p of what is the user's; a failure shows when it is opened. */
static void make_parents(const char *path)
{
    char part[PATH_MAX];
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        mkdir(part, 0700);
    }
}

/* path: that of a file of the store; the last two directories are ours. */
static int open_store(const char *path, struct err *err)
{
    char base[PATH_MAX];
    size_t n = strlen(path) - strlen(strrchr(path, '/')) - strlen(FOLDER);
    snprintf(base, sizeof base, "%.*s/", (int)n, path);
    make_parents(base);
    AUTO_FD fd = open(base, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_set_errno(err, -errno, "baseline %s: directory %s", path, base);
    AUTO_FD ours = enter(fd, "launch", path, err);
    return ours < 0 ? ours : enter(ours, "baselines", path, err);
}

static int open_directory_of(const char *path, struct err *err)
{
    char dir[PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(dir, sizeof dir, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    int fd = open(slash == path ? "/" : dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? err_set_errno(err, -errno, "baseline %s", path) : fd;
}

/* Somebody's notes are not overwritten; what was a baseline and is damaged, is. */
static int check_replaced(int dir_fd, const char *name, const char *path, struct err *err)
{
    AUTO_FREE char *text = NULL;
    size_t n = 0;
    int rc = read_file(dir_fd, name, &text, &n, err);
    if (rc == -ENOENT)
        return 0;
    if (rc < 0)
        return err_wrap(err, rc, "baseline %s", path);
    return n == 0 || baseline_is_ours(text, n)
               ? 0
               : err_set(err, -EEXIST,
                         "baseline %s: there is a file that is no baseline: not overwritten", path);
}

/* On the disk before it has its name. */
static int write_new(int dir_fd, const char *name, const struct baseline *b)
{
    AUTO_FD fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return -errno;
    FILE *out = fdopen(fd, "w");
    if (!out)
        return -errno;
    take_fd(&fd); /* out's */
    baseline_write(out, b);
    int rc = fflush(out) != 0 || fsync(fileno(out)) < 0 ? -errno : 0;
    if (fclose(out) != 0 && rc == 0)
        rc = -errno;
    return rc;
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

int baseline_store_check(const char *path, struct err *err)
{
    if (!*name_of(path))
        return err_set(err, -EINVAL, "baseline %s: name a file, not a directory", path);
    AUTO_FD dir_fd = open_directory_of(path, err);
    if (dir_fd < 0)
        return dir_fd;
    if (faccessat(dir_fd, ".", W_OK, AT_EACCESS) < 0)
        return err_set_errno(err, -errno, "baseline %s", path);
    return check_replaced(dir_fd, name_of(path), path, err);
}

int baseline_store_save(const struct baseline *b, const char *path, bool kept, struct err *err)
{
    const char *name = name_of(path);
    uint32_t dice = 0;
    char beside[32];
    if (!*name)
        return err_set(err, -EINVAL, "baseline %s: name a file, not a directory", path);
    AUTO_FD dir_fd = kept ? open_store(path, err) : open_directory_of(path, err);
    if (dir_fd < 0)
        return dir_fd;
    int rc = check_replaced(dir_fd, name, path, err);
    if (rc < 0)
        return rc;
    if (getrandom(&dice, sizeof dice, GRND_NONBLOCK) < 0)
        dice = (uint32_t)getpid();
    snprintf(beside, sizeof beside, ".baseline.%08x", dice);
    rc = write_new(dir_fd, beside, b);
    if (rc == 0 && renameat(dir_fd, beside, dir_fd, name) < 0)
        rc = -errno;
    if (rc < 0) {
        unlinkat(dir_fd, beside, 0);
        return err_set_errno(err, rc, "baseline %s", path);
    }
    (void)!fsync(dir_fd); /* not every file system can; the file is whole in any case */
    return 0;
}

/* ---- all of them ---- */

static int is_baseline_name(const struct dirent *entry)
{
    size_t n = strlen(entry->d_name);
    return entry->d_name[0] != '.' && n > 5 && strcmp(entry->d_name + n - 5, ".json") == 0;
}

int baseline_store_walk(const char *sysroot,
                        void (*visit)(void *user, const char *name, const struct baseline *b,
                                      const struct err *err),
                        void *user, struct err *err)
{
    char dir[PATH_MAX];
    struct dirent **names = NULL;
    int rc = choose_directory(dir, sysroot, err);
    if (rc < 0)
        return rc;
    AUTO_FD fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int n = fd < 0 ? -1 : scandirat(fd, ".", &names, is_baseline_name, alphasort);
    if (n < 0)
        return err_set_errno(err, -errno, "baselines in %s", dir);
    for (int i = 0; i < n; i++) {
        struct err why = {0};
        struct baseline b;
        bool readable = load_at(&b, fd, names[i]->d_name, &why) == 0;
        visit(user, names[i]->d_name, readable ? &b : NULL, &why);
        if (readable)
            baseline_finish(&b);
        free(names[i]);
    }
    free(names);
    return n;
}
