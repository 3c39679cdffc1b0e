/* SPDX-License-Identifier: MIT */
/* The test runner: runs every unit test, then every end-to-end script it is given, each in a process group and a
 * directory of its own, under a time limit, JOBS of them at a time.
 *
 *     unit [-j JOBS] [-t PATTERN] [SCRIPT...]        PATTERN: a part of the printed name, may hold * and ?
 *
 * A test that fails beside others has the machine for itself in a second try, and both are shown: many of them need a process to
 * be faster than a time limit, which a crowded machine cannot promise. If more than AGAIN_MAX fail, it is not the crowd.
 *
 * Whoever runs a test is a subreaper: what the test leaves behind becomes its child, is named, killed, and fails the test. Output
 * is held back and shown only for tests that fail. Must never know what it tests. */
#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <ftw.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define UNIT_LIMIT_S 30
#define SCRIPT_LIMIT_S 60
#define GRACE_MS 1000 /* for children that are on their way out when the test ends */
#define EXIT_SKIP 77
#define NAME_BYTES 512
#define JOBS_MAX 16u
#define AGAIN_MAX 3u
#define REASON_BYTES 512

extern const struct test __start_launch_tests[] __attribute__((weak));
extern const struct test __stop_launch_tests[] __attribute__((weak));

enum verdict { PASSED, FAILED, SKIPPED, VERDICTS_N };

struct attempt {
    char name[NAME_BYTES];
    const struct test *test; /* one of these two */
    const char *script;
    double limit_s;
    pid_t pid;
    int output; /* memfd: what it wrote */
    char reason[REASON_BYTES];
};

static char dir[PATH_MAX];
static volatile sig_atomic_t interrupted;
static int printing; /* locked by whoever prints: one test at a time */

/* ---- inside a test ---- */

void test_fail(const char *file, int line, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    fflush(stdout);
    fprintf(stderr, "%s:%d: ", file, line);
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
    va_end(ap);
    _exit(1);
}

void test_skip(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    fflush(stdout);
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
    va_end(ap);
    _exit(EXIT_SKIP);
}

const char *test_dir(void)
{
    return dir;
}

static void make_parents(char *whole)
{
    for (char *slash = whole + strlen(dir) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        if (mkdir(whole, 0755) < 0 && errno != EEXIST)
            test_fail(__FILE__, __LINE__, "mkdir %s: %s", whole, strerror(errno));
        *slash = '/';
    }
}

void test_write(const char *path, const char *content)
{
    char whole[2 * PATH_MAX];
    snprintf(whole, sizeof whole, "%s/%s", dir, path);
    FILE *f = fopen(whole, "w");
    if (!f && errno == ENOENT) {
        make_parents(whole);
        f = fopen(whole, "w");
    }
    if (!f || fputs(content, f) < 0 || fclose(f) != 0)
        test_fail(__FILE__, __LINE__, "write %s: %s", whole, strerror(errno));
}

/* ---- the runner ---- */

static void die(const char *what)
{
    fprintf(stderr, "tests: %s: %s\n", what, strerror(errno));
    exit(2);
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Slow machines and sanitizers: every limit is multiplied by TEST_TIMEOUT_SCALE. */
static double scale(void)
{
    const char *text = getenv("TEST_TIMEOUT_SCALE");
    double factor = text ? strtod(text, NULL) : 1;
    return factor > 0 ? factor : 1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    remove(path);
    return 0;
}

static void make_dir(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(dir, sizeof dir, "%s/launch-test.XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(dir))
        die(dir);
}

static void drop_dir(void)
{
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void on_interrupt(int signo)
{
    interrupted = signo;
}

/* The child's side, before it becomes the test. */
static void enter(int output)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int null = open("/dev/null", O_RDONLY);
    if (null < 0 || dup2(null, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0)
        _exit(2);
    close(null);
    close(output);
    /* As after a login, whatever nohup or a shell's & left ignored or blocked: tests send these signals. Handlers stay
     * that sanitizers have. */
    struct sigaction fresh = {.sa_handler = SIG_DFL}, now;
    for (int sig = 1; sig < NSIG; sig++)
        if (sigaction(sig, NULL, &now) == 0 &&
            (now.sa_handler == SIG_IGN || now.sa_handler == on_interrupt))
            sigaction(sig, &fresh, NULL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void start(struct attempt *a)
{
    a->output = memfd_create("test-output", MFD_CLOEXEC);
    if (a->output < 0)
        die("memfd_create");
    fflush(NULL);
    a->pid = fork();
    if (a->pid < 0)
        die("fork");
    if (a->pid > 0) {
        setpgid(a->pid, a->pid);
        return;
    }
    enter(a->output);
    if (a->test) {
        a->test->run();
        exit(0); /* not _exit: the leak check runs at exit */
    }
    if (chdir(dir) == 0)
        execl(a->script, a->script, (char *)NULL);
    fprintf(stderr, "%s: %s\n", a->script, strerror(errno));
    _exit(2);
}

/* Waits until the process has ended, without reaping it. False: it did not, by the limit. */
static bool ended_in_time(pid_t pid, double limit_s)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        die("pidfd_open");
    double deadline = now_s() + limit_s, left;
    int ready = 0;
    while (!ready && !interrupted && (left = deadline - now_s()) > 0) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ready = poll(&p, 1, (int)(left * 1000) + 1) > 0;
    }
    close(fd);
    return ready;
}

/* Calls back for each live child of this process; afterwards returns how many there were. /proc/PID/stat reads
 * "pid (name) state parent ...", and the name may hold anything. */
static unsigned each_child(void (*call)(pid_t pid, const char *name, void *user), void *user)
{
    DIR *proc = opendir("/proc");
    if (!proc)
        die("/proc");
    unsigned n = 0;
    for (struct dirent *entry; (entry = readdir(proc));) {
        char path[NAME_MAX + 16], text[512];
        snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
        FILE *f = *entry->d_name >= '1' && *entry->d_name <= '9' ? fopen(path, "re") : NULL;
        if (!f)
            continue;
        text[fread(text, 1, sizeof text - 1, f)] = '\0';
        fclose(f);
        char *open = strchr(text, '('), *close = strrchr(text, ')'), state;
        int parent;
        if (!open || !close || sscanf(close + 1, " %c %d", &state, &parent) != 2 ||
            parent != getpid() || state == 'Z')
            continue;
        *close = '\0';
        call((pid_t)strtol(entry->d_name, NULL, 10), open + 1, user);
        n++;
    }
    closedir(proc);
    return n;
}

static void name_child(pid_t pid, const char *name, void *reason)
{
    size_t used = strlen(reason);
    snprintf((char *)reason + used, REASON_BYTES - used, " %s (%d)", name, (int)pid);
}

static void kill_child(pid_t pid, const char *name, void *user)
{
    (void)name, (void)user;
    kill(pid, SIGKILL);
}

/* Reaps dead children. True: none, dead or alive, is left. */
static bool reap(void)
{
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
        ;
    return pid < 0;
}

/* Nobody is left, or leaves by itself at once. Otherwise the reason names who stays. */
static bool left_nothing(struct attempt *a)
{
    sigset_t child, old;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, &old);
    double deadline = now_s() + GRACE_MS / 1e3 * scale(), left;
    while (!reap() && (left = deadline - now_s()) > 0) {
        struct timespec t = {.tv_sec = (time_t)left};
        t.tv_nsec = (long)((left - (double)t.tv_sec) * 1e9);
        sigtimedwait(&child, NULL, &t);
    }
    sigprocmask(SIG_SETMASK, &old, NULL);
    if (reap())
        return true;
    snprintf(a->reason, sizeof a->reason, "left behind:");
    each_child(name_child, a->reason);
    return false;
}

/* The children of whom we kill become ours: again, until there are none. */
static void kill_the_rest(pid_t group)
{
    while (!reap()) {
        kill(-group, SIGKILL);
        if (each_child(kill_child, NULL))
            waitpid(-1, NULL, 0);
    }
}

/* Last line of what the test wrote: the reason for a skip. */
static void last_line(const struct attempt *a, char *line, size_t size)
{
    char tail[REASON_BYTES];
    off_t end = lseek(a->output, 0, SEEK_END);
    off_t from = end > (off_t)sizeof tail - 1 ? end - (off_t)sizeof tail + 1 : 0;
    ssize_t n = pread(a->output, tail, sizeof tail - 1, from);
    while (n > 0 && tail[n - 1] == '\n')
        n--;
    tail[n > 0 ? n : 0] = '\0';
    char *newline = strrchr(tail, '\n');
    snprintf(line, size, "%s", newline ? newline + 1 : tail);
}

static enum verdict judge(struct attempt *a, bool in_time)
{
    int status = 0;
    if (!in_time)
        kill(a->pid, SIGKILL);
    waitpid(a->pid, &status, 0);
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (!in_time)
        snprintf(a->reason, sizeof a->reason, "not ended after %g s", a->limit_s);
    else if (code < 0)
        snprintf(a->reason, sizeof a->reason, "killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else if (code != 0 && code != EXIT_SKIP)
        snprintf(a->reason, sizeof a->reason, "exit code %d", code);
    if (*a->reason || !left_nothing(a))
        return FAILED;
    if (code == 0)
        return PASSED;
    last_line(a, a->reason, sizeof a->reason);
    const char *strict = getenv("STRICT");
    return strict && strcmp(strict, "1") == 0 ? FAILED : SKIPPED;
}

static void show_output(int fd)
{
    char chunk[4096];
    ssize_t n;
    lseek(fd, 0, SEEK_SET);
    while ((n = read(fd, chunk, sizeof chunk)) > 0)
        fwrite(chunk, 1, (size_t)n, stdout);
}

static enum verdict attempt(struct attempt *a)
{
    static const char *const words[VERDICTS_N] = {"ok  ", "FAIL", "skip"};
    make_dir();
    double since = now_s();
    start(a);
    enum verdict verdict = judge(a, ended_in_time(a->pid, a->limit_s));
    kill_the_rest(a->pid);
    double took_s = now_s() - since;
    (void)!lockf(printing, F_LOCK, 0);
    printf("%s %s", words[verdict], a->name);
    if (took_s >= 1)
        printf(" [%.1f s]", took_s);
    printf("%s%s\n", *a->reason ? ": " : "", a->reason);
    if (verdict == FAILED)
        show_output(a->output);
    fflush(stdout);
    (void)!lockf(printing, F_ULOCK, 0);
    close(a->output);
    drop_dir();
    return verdict;
}

/* "# limit: N" in the first five lines of a script, else the default. */
static double script_limit_s(const char *script)
{
    double limit_s = SCRIPT_LIMIT_S;
    FILE *f = fopen(script, "re");
    if (!f)
        return limit_s;
    char line[256];
    for (int i = 0; i < 5 && fgets(line, sizeof line, f); i++)
        sscanf(line, "# limit: %lf", &limit_s);
    fclose(f);
    return limit_s;
}

static void spaces(char *text)
{
    while ((text = strchr(text, '_')))
        *text = ' ';
}

/* "proto/test_board.c" + "a_board_..." -> "proto/board: a board ...". */
static void name_unit(char *name, const struct test *t)
{
    char path[PATH_MAX], folder[PATH_MAX];
    snprintf(path, sizeof path, "%s", t->file);
    snprintf(folder, sizeof folder, "%s", t->file);
    char *file = basename(path), *dot = strrchr(file, '.');
    if (dot)
        *dot = '\0';
    if (strncmp(file, "test_", 5) == 0)
        file += 5;
    int n = snprintf(name, NAME_BYTES, "%.100s/%.100s: ", basename(dirname(folder)), file);
    snprintf(name + n, NAME_BYTES - (size_t)n, "%s", t->name);
    spaces(name);
}

static bool wanted(const char *pattern, const char *name)
{
    char glob[NAME_BYTES];
    snprintf(glob, sizeof glob, "*%s*", pattern);
    spaces(glob);
    return fnmatch(glob, name, 0) == 0;
}

static void set_up(void)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        die("subreaper");
    struct sigaction act = {.sa_handler = on_interrupt};
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
}

/* ---- all of them ---- */

/* Shared by those who run them. */
struct work {
    atomic_uint next;
    atomic_uint count[VERDICTS_N];
    atomic_uint again_n; /* failed beside others, also those that are not tried again */
    unsigned again[AGAIN_MAX];
};

/* All that are wanted, in order; *ret_n of them. */
static struct attempt *list(const char *pattern, char **scripts, unsigned *ret_n)
{
    size_t units = (size_t)(__stop_launch_tests - __start_launch_tests), n = units;
    while (scripts[n - units])
        n++;
    struct attempt *all = calloc(n + 1, sizeof *all);
    if (!all)
        die("memory");
    *ret_n = 0;
    for (size_t i = 0; i < n; i++) {
        struct attempt *a = &all[*ret_n];
        if (i < units) {
            *a = (struct attempt){.test = __start_launch_tests + i,
                                  .limit_s = UNIT_LIMIT_S * scale()};
            name_unit(a->name, a->test);
        } else {
            const char *script = scripts[i - units], *slash = strrchr(script, '/');
            *a = (struct attempt){.script = script, .limit_s = script_limit_s(script) * scale()};
            snprintf(a->name, sizeof a->name, "e2e/%s", slash ? slash + 1 : script);
            spaces(a->name);
        }
        *ret_n += wanted(pattern, a->name);
    }
    return all;
}

static void run(struct work *work, struct attempt *all, unsigned n, bool alone)
{
    unsigned i;
    while (!interrupted && (i = atomic_fetch_add(&work->next, 1)) < n) {
        enum verdict verdict = attempt(&all[i]);
        atomic_fetch_add(&work->count[verdict], 1);
        if (verdict != FAILED || alone)
            continue;
        unsigned place = atomic_fetch_add(&work->again_n, 1);
        if (place < AGAIN_MAX)
            work->again[place] = i;
    }
}

static void try_again(struct work *work, struct attempt *all)
{
    if (work->again_n > AGAIN_MAX)
        return;
    for (unsigned i = 0; i < work->again_n && !interrupted; i++) {
        struct attempt *a = &all[work->again[i]];
        printf("again, alone: %s\n", a->name);
        enum verdict verdict = attempt(a);
        work->count[FAILED]--;
        work->count[verdict]++;
    }
}

static void run_beside(struct work *work, struct attempt *all, unsigned n, unsigned jobs)
{
    pid_t pid[JOBS_MAX], parent = getpid();
    for (unsigned i = 0; i < jobs; i++) {
        fflush(NULL);
        pid[i] = fork();
        if (pid[i] < 0)
            die("fork");
        if (pid[i] > 0)
            continue;
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent)
            _exit(2);
        set_up();
        run(work, all, n, false);
        exit(0);
    }
    for (unsigned i = 0; i < jobs; i++) {
        int status;
        while (waitpid(pid[i], &status, 0) < 0 && errno == EINTR)
            for (unsigned j = i; j < jobs; j++)
                kill(pid[j], SIGTERM); /* we were told to end */
        if (status != 0)
            atomic_fetch_add(&work->count[FAILED], 1);
    }
}

int main(int argc, char **argv)
{
    const char *pattern = "";
    unsigned jobs = 1, n;
    for (int option; (option = getopt(argc, argv, "+j:t:")) != -1;) {
        if (option == '?')
            return 2;
        if (option == 't')
            pattern = optarg;
        else
            jobs = (unsigned)strtoul(optarg, NULL, 10);
    }
    set_up();
    printing = memfd_create("printing", MFD_CLOEXEC);
    struct work *work =
        mmap(NULL, sizeof *work, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (printing < 0 || work == MAP_FAILED)
        die("shared memory");
    static struct attempt *all; /* a leak check at the end of a test finds it here */
    all = list(pattern, argv + optind, &n);
    if (jobs > 1 && n > 1) {
        run_beside(work, all, n, jobs < JOBS_MAX ? jobs : JOBS_MAX);
        try_again(work, all);
    } else {
        run(work, all, n, true);
    }
    free(all);
    if (interrupted)
        printf("interrupted\n");
    else if (n == 0)
        printf("no test matches \"%s\"\n", pattern);
    printf("%u passed, %u failed, %u skipped\n", work->count[PASSED], work->count[FAILED],
           work->count[SKIPPED]);
    return interrupted || work->count[FAILED] || !(work->count[PASSED] + work->count[SKIPPED]);
}
