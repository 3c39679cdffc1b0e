/* SPDX-License-Identifier: MIT */
/* See stacks.h. Must never know why somebody asks. The few declarations of libdwfl.h that are needed stand here,
 * so that elfutils' headers are not needed to build. */
#include "stacks.h"

#include "../proto/clock.h"
#include "sysfile.h"

#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#define THREADS_MAX 64 /* looked at */
#define FRAMES_MAX 32
#define NAME_SHOWN 48
#define STOP_LOOKS_NS 500000 /* between two looks at a thread that is to stop */

/* ---- libdw ---- */

typedef uint64_t address;
struct dwfl_callbacks {
    int (*find_elf)(void *module, void **user, const char *name, address base, char **file,
                    void **elf);
    int (*find_debuginfo)(void *module, void **user, const char *name, address base,
                          const char *file, const char *link, uint32_t crc, char **debuginfo);
    int (*section_address)(void *module, void **user, const char *name, address base,
                           const char *section, uint32_t index, const void *header, address *ret);
    char **debuginfo_path;
};

static struct {
    void *(*begin)(const struct dwfl_callbacks *callbacks);
    void (*end)(void *dwfl);
    int (*report)(void *dwfl, pid_t pid);
    int (*report_end)(void *dwfl, void *removed, void *arg);
    int (*attach)(void *dwfl, pid_t pid, bool is_stopped);
    int (*thread_frames)(void *dwfl, pid_t tid, int (*callback)(void *frame, void *arg), void *arg);
    bool (*frame_pc)(void *frame, address *pc, bool *is_activation);
    void *(*address_module)(void *dwfl, address pc);
    const char *(*address_name)(void *module, address pc);
    const char *(*module_info)(void *module, void ***user, address *start, address *end,
                               address *dwarf_bias, address *symbol_bias, const char **main_file,
                               const char **debug_file);
    int (*find_elf)(void *module, void **user, const char *name, address base, char **file,
                    void **elf);
    const char *(*message)(int error);
} dw;

static const struct {
    const char *name;
    void **place;
} symbols[] = {
    {"dwfl_begin", (void **)&dw.begin},
    {"dwfl_end", (void **)&dw.end},
    {"dwfl_linux_proc_report", (void **)&dw.report},
    {"dwfl_report_end", (void **)&dw.report_end},
    {"dwfl_linux_proc_attach", (void **)&dw.attach},
    {"dwfl_getthread_frames", (void **)&dw.thread_frames},
    {"dwfl_frame_pc", (void **)&dw.frame_pc},
    {"dwfl_addrmodule", (void **)&dw.address_module},
    {"dwfl_module_addrname", (void **)&dw.address_name},
    {"dwfl_module_info", (void **)&dw.module_info},
    {"dwfl_linux_proc_find_elf", (void **)&dw.find_elf},
    {"dwfl_errmsg", (void **)&dw.message},
};

static const char *load(void)
{
    if (dw.begin)
        return NULL;
    void *library = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return "libdw.so.1 (elfutils) is not installed";
    for (size_t i = ARRAY_LEN(symbols); i-- > 0;) {
        *symbols[i].place = dlsym(library, symbols[i].name);
        if (!*symbols[i].place) {
            dw.begin = NULL;
            return "this libdw.so.1 is too old";
        }
    }
    return NULL;
}

/* The symbol tables of the files themselves have to do: looking for others means search paths and servers. */
static int no_debuginfo(void *module, void **user, const char *name, address base, const char *file,
                        const char *link, uint32_t crc, char **debuginfo)
{
    (void)module, (void)user, (void)name, (void)base, (void)file, (void)link, (void)crc;
    (void)debuginfo;
    return -1;
}

/* ---- stopping the threads ---- */

struct threads {
    unsigned n, total;
    pid_t tid[THREADS_MAX];
    bool stopped[THREADS_MAX];
};

static void list_threads(pid_t pid, struct threads *t)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    *t = (struct threads){.n = 1, .total = 1, .tid = {pid}};
    DIR *tasks = opendir(path);
    if (!tasks)
        return;
    struct dirent *entry;
    while ((entry = readdir(tasks))) {
        pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (!isdigit((unsigned char)entry->d_name[0]) || tid == pid)
            continue;
        t->total++;
        if (t->n < THREADS_MAX)
            t->tid[t->n++] = tid;
    }
    closedir(tasks);
}

/* Seizing leaves no signal behind, whatever becomes of us meanwhile. */
static int stop_thread(pid_t tid, uint64_t deadline_ns)
{
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0)
        return -errno;
    if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0)
        return -errno;
    for (;;) {
        int status;
        pid_t got = waitpid(tid, &status, __WALL | WNOHANG);
        if (got == tid)
            return WIFSTOPPED(status) ? 0 : -ESRCH;
        if (got < 0)
            return -errno;
        if (clock_now_ns() >= deadline_ns)
            return -ETIMEDOUT;
        nanosleep(&(struct timespec){.tv_nsec = STOP_LOOKS_NS}, NULL);
    }
}

/* Result of the main thread, the others are a bonus. */
static int stop_threads(struct threads *t, uint64_t deadline_ns)
{
    int rc = stop_thread(t->tid[0], deadline_ns);
    t->stopped[0] = rc == 0;
    for (unsigned i = 1; rc == 0 && i < t->n; i++)
        t->stopped[i] = stop_thread(t->tid[i], deadline_ns) == 0;
    return rc;
}

static void resume_threads(const struct threads *t)
{
    for (unsigned i = 0; i < t->n; i++)
        if (t->stopped[i])
            ptrace(PTRACE_DETACH, t->tid[i], NULL, NULL);
}

/* ---- one stack ---- */

struct walk {
    void *dwfl;
    unsigned frames;
    char *text;
    size_t used;
    char last[NAME_SHOWN + 1];
};

static void name_module(void *module, char *name, size_t size)
{
    const char *path = NULL;
    if (module)
        path = dw.module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    const char *slash = path ? strrchr(path, '/') : NULL;
    snprintf(name, size, "[%s]", slash ? slash + 1 : path ? path : "?");
}

/* Names come from files that may hold anything; our separator and controls are replaced. */
static void make_printable(char *text)
{
    for (char *c = text; *c; c++)
        if (*c < '!' || *c > '~')
            *c = '?';
}

/* What called main(), or a thread's function, is the same everywhere. */
static bool is_start(const char *name)
{
    static const char *const starts[] = {
        "__libc_start_main", "__libc_start_call_main", "_start", "start_thread", "clone", "clone3"};
    for (size_t i = 0; i < ARRAY_LEN(starts); i++)
        if (strncmp(name, starts[i], strlen(starts[i])) == 0)
            return true;
    return false;
}

/* A C library without its symbol table has a nameless function in between. */
static void cut_entry(struct walk *w)
{
    static const char entry[] = " < [libc.so.6]";
    size_t n = sizeof entry - 1;
    if (w->used > n && w->used < STACKS_TEXT_BYTES && strcmp(w->text + w->used - n, entry) == 0) {
        w->used -= n;
        w->text[w->used] = '\0';
    }
}

static int on_frame(void *frame, void *user)
{
    struct walk *w = user;
    address pc;
    bool is_activation;
    char name[NAME_SHOWN + 1];
    if (w->frames++ >= FRAMES_MAX || !dw.frame_pc(frame, &pc, &is_activation))
        return 1;
    if (!is_activation)
        pc--; /* a return address may lie behind its function's end */
    void *module = dw.address_module(w->dwfl, pc);
    const char *known = module ? dw.address_name(module, pc) : NULL;
    if (known)
        snprintf(name, sizeof name, "%s", known);
    else
        name_module(module, name, sizeof name);
    make_printable(name);
    if (is_start(name)) {
        cut_entry(w);
        return 1;
    }
    if (strcmp(name, w->last) == 0) /* recursion, or a library without names */
        return 0;
    memcpy(w->last, name, sizeof name);
    if (w->used < STACKS_TEXT_BYTES)
        w->used += (size_t)snprintf(w->text + w->used, STACKS_TEXT_BYTES - w->used, "%s%s",
                                    w->used ? " < " : "", name);
    return strcmp(name, "main") == 0;
}

/* Counts it if it is known already. False: no room for another one. */
static bool keep(struct stacks *s, const char *text)
{
    for (uint32_t i = 0; i < s->n; i++) {
        if (strcmp(s->stack[i].text, text) == 0) {
            s->stack[i].threads++;
            return true;
        }
    }
    if (s->n == STACKS_MAX)
        return false;
    s->stack[s->n].threads = 1;
    snprintf(s->stack[s->n].text, STACKS_TEXT_BYTES, "%s", text);
    s->n++;
    return true;
}

static int walk_threads(void *dwfl, const struct threads *t, struct stacks *ret)
{
    for (unsigned i = 0; i < t->n; i++) {
        char text[STACKS_TEXT_BYTES] = "";
        struct walk w = {.dwfl = dwfl, .text = text};
        if (!t->stopped[i])
            continue;
        /* Ends with an error where a stack can't be followed further: what was found so far counts. */
        dw.thread_frames(dwfl, t->tid[i], on_frame, &w);
        cut_entry(&w);
        if (w.used)
            keep(ret, text);
        else if (i == 0)
            return -1;
    }
    return 0;
}

/* ---- the whole ---- */

static void PRINTF_LIKE(2, 3) give_up(struct stacks *s, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(s->why, sizeof s->why, format, ap);
    va_end(ap);
    s->n = 0;
}

static void walk_process(pid_t pid, const struct threads *t, struct stacks *ret)
{
    const struct dwfl_callbacks callbacks = {.find_elf = dw.find_elf,
                                             .find_debuginfo = no_debuginfo};
    void *dwfl = dw.begin(&callbacks);
    if (!dwfl) {
        give_up(ret, "libdw: %s", dw.message(-1));
        return;
    }
    int rc = dw.report(dwfl, pid);
    if (rc == 0)
        rc = dw.report_end(dwfl, NULL, NULL);
    if (rc == 0)
        rc = dw.attach(dwfl, pid, true);
    if (rc == 0)
        rc = walk_threads(dwfl, t, ret);
    if (rc != 0)
        give_up(ret, "libdw: %s", rc > 0 ? strerror(rc) : dw.message(-1));
    dw.end(dwfl);
}

void stacks_take(pid_t pid, uint64_t deadline_ns, struct stacks *ret)
{
    *ret = (struct stacks){0};
    struct threads threads;
    list_threads(pid, &threads);
    ret->threads = threads.total;
    const char *why = load();
    if (why) {
        give_up(ret, "%s", why);
        return;
    }
    int rc = stop_threads(&threads, deadline_ns);
    if (rc == -ETIMEDOUT)
        give_up(ret, "its main thread does not stop (state D?)");
    else if (rc < 0)
        give_up(ret, "ptrace: %s", strerror(-rc));
    else
        walk_process(pid, &threads, ret);
    resume_threads(&threads);
}
