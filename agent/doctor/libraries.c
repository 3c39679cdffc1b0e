/* SPDX-License-Identifier: MIT */
/* The copies of libnccl that programs here may load, and whether they are of one version. */
#include "checks.h"

#include "../sysfile.h"

#include <glob.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <fcntl.h>
#include <sys/stat.h>

#define COPIES_MAX 32
#define CACHE_BYTES (8u << 20)
#define MARK "NCCL version " /* its banner, "NCCL version 2.28.9+cuda13.0" */

struct copy {
    char path[PATH_MAX]; /* without sysroot, real */
    char version[32];    /* "2.28.9"; empty: not told */
    const char *who;     /* loads it */
};

struct copies {
    unsigned n;
    struct copy of[COPIES_MAX];
};

/* ---- the version of one ---- */

/* "2.28.9" at the text, up to the first that belongs to no version. */
static bool take_version(char version[32], const char *text, size_t n)
{
    size_t k = 0;
    while (k < n && k < 31 && text[k] && strchr("0123456789.", text[k]))
        k++;
    while (k && text[k - 1] == '.')
        k--;
    if (k < 3 || text[0] < '1' || text[0] > '9' || !memchr(text, '.', k))
        return false;
    snprintf(version, 32, "%.*s", (int)k, text);
    return true;
}

/* The package's directory beside it: nvidia_nccl_cu13-2.28.9.dist-info. */
static bool ask_package(const char *full, char version[32])
{
    static const char inside[] = "/nvidia/nccl/lib/";
    char pattern[PATH_MAX + 64];
    glob_t found;
    const char *at = strstr(full, inside);
    if (!at)
        return false;
    snprintf(pattern, sizeof pattern, "%.*s/nvidia_nccl_cu*-*.dist-info", (int)(at - full), full);
    if (glob(pattern, 0, NULL, &found) != 0)
        return false;
    const char *dash = strrchr(found.gl_pathv[0], '/');
    dash = dash ? strchr(dash, '-') : NULL;
    bool told = dash && take_version(version, dash + 1, strlen(dash + 1));
    globfree(&found);
    return told;
}

/* The library carries its banner; it is large, so that this comes last. */
static bool ask_content(const char *full, char version[32])
{
    struct stat st;
    AUTO_FD fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
        return false;
    size_t n = (size_t)st.st_size;
    const char *text = mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
    if (text == MAP_FAILED)
        return false;
    bool told = false;
    const char *end = text + n;
    for (const char *at = text;
         !told && (at = memmem(at, (size_t)(end - at), MARK, strlen(MARK)));) {
        at += strlen(MARK);
        told = take_version(version, at, (size_t)(end - at));
    }
    munmap((void *)(uintptr_t)text, n);
    return told;
}

/* ---- finding them ---- */

/* path: with sysroot. One that is found twice is told once, for whoever came first. */
static void add(const struct doctor *d, struct copies *all, const char *path, const char *who)
{
    char real[PATH_MAX], root[PATH_MAX] = "";
    if (all->n == COPIES_MAX || !realpath(path, real) ||
        (*d->sysroot && !realpath(d->sysroot, root)))
        return;
    size_t n = strlen(root);
    const char *inside = strncmp(real, root, n) == 0 ? real + n : real;
    for (unsigned i = 0; i < all->n; i++)
        if (strcmp(all->of[i].path, inside) == 0)
            return;
    struct copy *c = &all->of[all->n++];
    *c = (struct copy){.who = who};
    snprintf(c->path, sizeof c->path, "%s", inside);
    const char *so = strstr(inside, ".so.");
    /* ".so.2" alone names the interface. */
    if ((!so || !strchr(so + 4, '.') || !take_version(c->version, so + 4, strlen(so + 4))) &&
        !ask_package(real, c->version))
        ask_content(real, c->version);
}

static void add_all(const struct doctor *d, struct copies *all, const char *pattern,
                    const char *who)
{
    char full[PATH_MAX];
    glob_t found;
    if (snprintf(full, sizeof full, "%s%s", d->sysroot, pattern) >= (int)sizeof full ||
        glob(full, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        add(d, all, found.gl_pathv[i], who);
    globfree(&found);
}

static void add_below(const struct doctor *d, struct copies *all, const char *dir, size_t n,
                      const char *rest, const char *who)
{
    char pattern[PATH_MAX];
    if (n && snprintf(pattern, sizeof pattern, "%.*s%s", (int)n, dir, rest) < (int)sizeof pattern)
        add_all(d, all, pattern, who);
}

static void add_library_path(const struct doctor *d, struct copies *all)
{
    for (const char *at = doctor_variable(d, "LD_LIBRARY_PATH"); at && *at;) {
        size_t n = strcspn(at, ":;");
        add_below(d, all, at, n, "/libnccl.so.2", "LD_LIBRARY_PATH");
        at += n + (at[n] != '\0');
    }
}

/* /etc/ld.so.cache: a header of 48 bytes, entries of 24, and the strings that they point at from the start of the header;
 * an old cache may stand before it. */
static void add_cached(const struct doctor *d, struct copies *all)
{
    static const char magic[] = "glibc-ld.so.cache1.1";
    AUTO_FREE char *text = malloc(CACHE_BYTES);
    ssize_t bytes = text ? sysfile_read(text, CACHE_BYTES, d->sysroot, "/etc/ld.so.cache") : -1;
    const char *head = bytes > 0 ? memmem(text, (size_t)bytes, magic, strlen(magic)) : NULL;
    if (!head)
        return;
    size_t n = (size_t)(text + bytes - head);
    uint32_t count = 0;
    if (n >= 48)
        memcpy(&count, head + 20, sizeof count);
    for (size_t i = 0; i < count && 48 + 24 * (i + 1) <= n; i++) {
        uint32_t key, value;
        memcpy(&key, head + 48 + 24 * i + 4, sizeof key);
        memcpy(&value, head + 48 + 24 * i + 8, sizeof value);
        /* The text ends in a NUL, behind all offsets that are inside. */
        if (key < n && value < n && strcmp(head + key, "libnccl.so.2") == 0)
            add_below(d, all, head + value, strlen(head + value), "", "/etc/ld.so.cache");
    }
}

/* Where the python of the PATH has its packages: beside it in a virtual environment, else below /usr. */
static void add_python(const struct doctor *d, struct copies *all)
{
    static const char *const places[] = {
        "/lib/python3*/site-packages/nvidia/nccl/lib/libnccl.so.2",
        "/lib/python3*/dist-packages/nvidia/nccl/lib/libnccl.so.2",
        "/local/lib/python3*/dist-packages/nvidia/nccl/lib/libnccl.so.2",
        "/lib/python3*/site-packages/torch/lib/libnccl.so.2",
    };
    char path[PATH_MAX];
    for (const char *at = doctor_variable(d, "PATH"); at && *at;) {
        size_t n = strcspn(at, ":");
        snprintf(path, sizeof path, "%s%.*s/python3", d->sysroot, (int)n, at);
        if (n > 4 && access(path, X_OK) == 0) {
            size_t prefix = n;
            while (prefix && at[prefix - 1] != '/')
                prefix--;
            for (size_t i = 0; i < ARRAY_LEN(places); i++)
                add_below(d, all, at, prefix ? prefix - 1 : 0, places[i], "python3");
            break;
        }
        at += n + (at[n] == ':');
    }
    if (d->home)
        add_below(d, all, d->home, strlen(d->home),
                  "/.local/lib/python3*/site-packages/nvidia/nccl/lib/libnccl.so.2", "python3");
}

/* ---- the check ---- */

static void judge_copies(struct doctor *d, const struct copies *all)
{
    struct doctor_list list = {0};
    const char *version = "";
    bool differ = false;
    for (unsigned i = 0; i < all->n; i++) {
        const struct copy *c = &all->of[i];
        doctor_list_add(&list, "%s: %s (%s)", c->path,
                        *c->version ? c->version : "version not told", c->who);
        differ |= *version && *c->version && strcmp(version, c->version) != 0;
        version = *c->version ? c->version : version;
    }
    if (differ)
        doctor_find(
            d, VERDICT_WARNING,
            "ranks that load different ones can't meet (\"Mismatched NCCL version\"), and what "
            "is measured with one does not hold for the other",
            "keep one, or know which: LD_LIBRARY_PATH goes before the cache; PyTorch takes its "
            "own package's",
            "%s", list.text);
    else
        doctor_ok(d, "%s",
                  list.n ? list.text
                         : "no libnccl.so.2 in LD_LIBRARY_PATH, /etc/ld.so.cache, "
                           "/usr/local/cuda/lib64 or python3's packages");
}

void libraries_check_nccl(struct doctor *d)
{
    struct copies *all = calloc(1, sizeof *all);
    if (!all) {
        doctor_blind(d, "no memory");
        return;
    }
    add_library_path(d, all);
    add_cached(d, all);
    add_all(d, all, "/usr/local/cuda/lib64/libnccl.so.2", "CUDA's directory");
    add_python(d, all);
    judge_copies(d, all);
    free(all);
}
