/* SPDX-License-Identifier: MIT */
#include "program.h"

#include "../proto/env.h"
#include "../proto/status.h"
#include "macro.h"

#include <assert.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define HEAD_BYTES 256 /* the kernel looks at as much of a "#!" line (BINPRM_BUF_SIZE) */

int program_exit_code(int exec_errno)
{
    return exec_errno == ENOENT || exec_errno == ENOTDIR ? EXIT_CODE_NOT_FOUND
                                                         : EXIT_CODE_NOT_EXECUTABLE;
}

/* A file that execve() might take: 0, or why not. */
static int check_file(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return -errno;
    if (S_ISDIR(st.st_mode))
        return -EISDIR;
    return access(path, X_OK) < 0 ? -errno : 0;
}

/* The first executable of that name in the PATH. Like execvp(): a hit that may not be executed is
 * remembered (EACCES) while the search goes on. */
static int search_path(const char *name, char **ret_path)
{
    const char *dirs = getenv("PATH");
    if (!dirs)
        dirs = "/usr/local/bin:/usr/bin:/bin";
    int failure = -ENOENT;
    for (const char *dir = dirs;; dir++) {
        size_t n = strcspn(dir, ":");
        char path[PATH_MAX];
        int len = n ? snprintf(path, sizeof path, "%.*s/%s", (int)n, dir, name)
                    : snprintf(path, sizeof path, "./%s", name);
        int rc = len < (int)sizeof path ? check_file(path) : -ENAMETOOLONG;
        if (rc == 0) {
            *ret_path = strdup(path);
            return *ret_path ? 0 : -ENOMEM;
        }
        if (rc == -EACCES)
            failure = rc;
        dir += n;
        if (*dir == '\0')
            return failure;
    }
}

static bool has_suffix(const char *path, const char *suffix)
{
    size_t n = strlen(path), k = strlen(suffix);
    return n > k && strcmp(path + n - k, suffix) == 0;
}

/* In the PATH, or where the name says. */
static int look_up(const char *name, char **ret_path)
{
    if (!strchr(name, '/'))
        return search_path(name, ret_path);
    int rc = check_file(name);
    /* A library need not be executable: launch-run loads it. */
    if (rc == -EACCES && has_suffix(name, ".so") && access(name, R_OK) == 0)
        rc = 0;
    if (rc == 0 && !(*ret_path = strdup(name)))
        rc = -ENOMEM;
    return rc;
}

static int explain_missing(const char *name, int code, struct err *err)
{
    struct stat st;
    bool searched = !strchr(name, '/'), here = searched && stat(name, &st) == 0;
    if (code == -ENOENT && here && S_ISDIR(st.st_mode))
        code = -EISDIR;
    if (code == -EISDIR)
        return err_set(err, code, "'%s' is a directory, not a program", name);
    if (code == -EACCES)
        return err_set(
            err, code,
            "'%s' may not be executed (permission denied; chmod +x? or, if it is Python, "
            "--run-path?)",
            name);
    if (code == -ENOENT && here)
        return err_set(err, code, "'%s' was not found in the PATH; did you mean ./%s?", name, name);
    if (code == -ENOENT && searched)
        return err_set(err, code, "'%s' was not found in the PATH", name);
    return err_set_errno(err, code, "'%s'", name);
}

/* The interpreter of a "#!" line, or what env shall find; a carriage return is made visible, since a terminal hides it. */
static int check_interpreter(const char *name, char *line, struct err *err)
{
    char *word = line + strspn(line, " \t");
    word[strcspn(word, "\n")] = '\0';
    bool env = strncmp(word, "/usr/bin/env ", 13) == 0 && word[strlen(word) - 1] == '\r';
    if (!env)
        word[strcspn(word, " \t")] = '\0';
    int rc = env ? -ENOENT : check_file(word);
    if (rc == 0)
        return 0;
    size_t n = strlen(word);
    if (n > 0 && word[n - 1] == '\r') {
        word[n - 1] = '\0';
        return err_set(err, rc,
                       "'%s' names the interpreter '%s\\r': its #! line ends in a carriage return "
                       "(DOS line ends; dos2unix helps)",
                       name, word);
    }
    return err_set_errno(err, rc, "'%s' names the interpreter '%s' in its #! line", name, word);
}

/* A shared object that is no program: ET_DYN without PT_INTERP (so is a static-pie program, hence the
 * suffix is asked for as well). */
static bool is_plain_shared_object(int fd, const char *head, ssize_t n)
{
    const Elf64_Ehdr *elf = (const void *)head;
    if (n < (ssize_t)sizeof *elf || memcmp(elf->e_ident, ELFMAG, SELFMAG) != 0 ||
        elf->e_ident[EI_CLASS] != ELFCLASS64 || elf->e_type != ET_DYN ||
        elf->e_phentsize != sizeof(Elf64_Phdr))
        return false;
    for (unsigned i = 0; i < elf->e_phnum; i++) {
        Elf64_Phdr ph;
        off_t at = (off_t)(elf->e_phoff + i * sizeof ph);
        if (pread(fd, &ph, sizeof ph, at) != (ssize_t)sizeof ph)
            return false;
        if (ph.p_type == PT_INTERP)
            return false;
    }
    return true;
}

int program_find_ours(const char *name, const char *what, char **ret_path, struct err *err)
{
    static const char *const places[] = {"", "../libexec/launch/"};
    char self[PATH_MAX], path[PATH_MAX + 64];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n < 0)
        return err_set_errno(err, -errno, "/proc/self/exe");
    self[n] = '\0';
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        snprintf(path, sizeof path, "%s/%s%s", self, places[i], name);
        if (check_file(path) == 0) {
            *ret_path = strdup(path);
            return *ret_path ? 0 : err_set_errno(err, -ENOMEM, "%s", name);
        }
    }
    return err_set(err, -ENOENT, "%s, which %s, is neither in %s nor in %s/../libexec/launch", name,
                   what, self, self);
}

/* argv as it is, or with a helper and its own options in front of the user's word. */
static int build_argv(struct program *p, char **argv, char *const options[2])
{
    size_t n = 0;
    while (argv[p->argc])
        p->argc++;
    p->argv = calloc(p->argc + 4, sizeof *p->argv);
    if (!p->argv)
        return -ENOMEM;
    p->file = p->helper ? p->helper : p->path;
    if (p->helper)
        p->argv[n++] = p->helper;
    for (size_t i = 0; i < 2 && options[i]; i++)
        p->argv[n++] = options[i];
    p->argv[n++] = p->helper && p->path ? p->path : argv[0];
    p->lead = n;
    for (size_t i = 1; i < p->argc; i++)
        p->argv[n++] = argv[i];
    p->argc = n;
    return 0;
}

/* How a file that was found is run: by itself or by a helper. */
static int decide(struct program *p, char **argv, struct err *err)
{
    /* Room for a whole ELF header, and for a NUL after the "#!" line. */
    _Alignas(Elf64_Ehdr) char head[HEAD_BYTES + 1] = {0};
    AUTO_FD fd = open(p->path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : pread(fd, head, HEAD_BYTES, 0);
    if (n >= 2 && head[0] == '#' && head[1] == '!') {
        int rc = check_interpreter(argv[0], head + 2, err);
        if (rc < 0)
            return rc;
    } else if (has_suffix(p->path, ".so") && is_plain_shared_object(fd, head, n)) {
        int rc = program_find_ours("launch-run", "runs shared objects", &p->helper, err);
        if (rc < 0)
            return rc;
    } else if (fd >= 0 && n >= 0 && !memchr(head, '\0', (size_t)n)) {
        p->helper = strdup("/bin/sh"); /* text: what execvp() does on ENOEXEC */
        if (!p->helper)
            return -ENOMEM;
    }
    return build_argv(p, argv, (char *const[2]){NULL});
}

static int run_directly(struct program *p, char **argv, struct err *err)
{
    int rc = look_up(argv[0], &p->path);
    return rc < 0 ? explain_missing(argv[0], rc, err) : decide(p, argv, err);
}

/* ---- Python ---- */

static int find_python(struct program *p, const char *name, struct err *err)
{
    const char *wanted = getenv(ENV_PYTHON_EXEC);
    if (wanted && *wanted) {
        int rc = look_up(wanted, &p->helper);
        if (rc < 0) {
            explain_missing(wanted, rc, err);
            err_wrap(err, rc, ENV_PYTHON_EXEC);
        }
        return rc;
    }
    int rc = search_path("python", &p->helper);
    if (rc < 0)
        rc = search_path("python3", &p->helper);
    if (rc == -ENOENT || rc == -EACCES)
        err_set(err, rc,
                "'%s' is run by Python, and there is neither python nor python3 in the PATH; "
                "install it or set " ENV_PYTHON_EXEC,
                name);
    return rc;
}

/* Python itself looks at the path as it is given, never in the PATH. */
static int check_script(const char *name, bool may_be_directory, struct err *err)
{
    struct stat st;
    if (stat(name, &st) < 0)
        return err_set_errno(err, -errno, "'%s'", name);
    if (S_ISDIR(st.st_mode) && !may_be_directory)
        return err_set(err, -EISDIR, "'%s' is a directory, not a program", name);
    return access(name, R_OK) < 0 ? err_set_errno(err, -errno, "'%s' may not be read", name) : 0;
}

static int check_module(const char *name, struct err *err)
{
    if (strchr(name, '/'))
        return err_set(err, -EINVAL, "--module: '%s' is no module's name; without -m a file is run",
                       name);
    if (has_suffix(name, ".py") && access(name, F_OK) == 0)
        return err_set(err, -EINVAL,
                       "--module: '%s' is a file, and its module is called '%.*s'; "
                       "without -m the file is run",
                       name, (int)strlen(name) - 3, name);
    return 0;
}

static int run_by_python(struct program *p, char **argv, enum program_how how, struct err *err)
{
    static char unbuffered[] = "-u", module[] = "-m";
    bool is_module = how == PROGRAM_MODULE;
    int rc =
        is_module ? check_module(argv[0], err) : check_script(argv[0], how == PROGRAM_SCRIPT, err);
    if (rc == 0)
        rc = find_python(p, argv[0], err);
    return rc < 0 ? rc
                  : build_argv(p, argv, (char *const[2]){unbuffered, is_module ? module : NULL});
}

int program_resolve(struct program *p, char **argv, enum program_how how, int *ret_exit,
                    struct err *err)
{
    assert(argv[0]);
    *p = (struct program){0};
    bool python = how != PROGRAM_DIRECT && (how != PROGRAM_DETECT || has_suffix(argv[0], ".py"));
    int rc = -ENOENT;
    if (argv[0][0] == '\0')
        err_set(err, rc, "the program's name is empty");
    else
        rc = python ? run_by_python(p, argv, how, err) : run_directly(p, argv, err);
    if (rc == -ENOMEM)
        err_set_errno(err, rc, "'%s'", argv[0]);
    if (rc < 0) {
        *ret_exit = rc == -EINVAL ? EXIT_CODE_USAGE : program_exit_code(-rc);
        program_finish(p);
    }
    return rc;
}

/* ---- one argument vector a worker ---- */

static bool has_macros(const struct program *p)
{
    for (size_t i = p->lead; i < p->argc; i++)
        if (macro_in(p->argv[i]))
            return true;
    return false;
}

int program_expand(struct program *p, uint32_t n, struct err *err)
{
    if (!has_macros(p))
        return 0;
    p->lists = calloc(n, (p->argc + 1) * sizeof *p->lists);
    if (!p->lists)
        return err_set_errno(err, -ENOMEM, "arguments");
    p->lists_n = n;
    for (uint32_t rank = 0; rank < n; rank++) {
        char **list = p->lists + rank * (p->argc + 1);
        for (size_t i = 0; i < p->argc; i++) {
            list[i] = p->argv[i];
            if (i >= p->lead && macro_in(p->argv[i]) && !(list[i] = macro_expand(p->argv[i], rank)))
                return err_set_errno(err, -ENOMEM, "arguments");
        }
    }
    return 0;
}

char *const *program_argv(const struct program *p, uint32_t local_rank)
{
    return p->lists ? p->lists + local_rank * (p->argc + 1) : p->argv;
}

static void free_lists(struct program *p)
{
    for (uint32_t rank = 0; rank < p->lists_n; rank++)
        for (size_t i = p->lead; i < p->argc; i++) {
            char *word = p->lists[rank * (p->argc + 1) + i];
            if (word != p->argv[i])
                free(word);
        }
    free(p->lists);
}

void program_finish(struct program *p)
{
    free_lists(p);
    free(p->path);
    free(p->argv);
    free(p->helper);
    *p = (struct program){0};
}
