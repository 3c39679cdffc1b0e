/* SPDX-License-Identifier: MIT */
/* agent/spawn.c with real children: the gate, what they inherit, and forks that fail. */
#include "../../agent/bitset.h"
#include "../../agent/spawn.h"
#include "procs.h"

#include <linux/mempolicy.h>
#include <sched.h>

static struct spawn_group *group_of(unsigned n)
{
    struct spawn_group *group;
    struct err err;
    CHECK_INT(spawn_group_create(&group, n, &err), ==, 0);
    return group;
}

static pid_t start(struct spawn_group *group, unsigned index, const struct spawn_request *request)
{
    pid_t pid = 0;
    int pidfd = -1;
    struct err err;
    if (spawn_start(group, index, request, &pid, &pidfd, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    CHECK(pid > 0 && pidfd > 2);
    CHECK_INT(fcntl(pidfd, F_GETFD), ==, FD_CLOEXEC);
    close(pidfd);
    return pid;
}

/* Runs one child to its end; returns how it ended. */
static int run(const struct spawn_request *request, struct spawn_record *record)
{
    struct spawn_group *group = group_of(1);
    pid_t pid = start(group, 0, request);
    spawn_open_gate(group);
    int end = ended(pid);
    if (record)
        *record = spawn_result(group, 0);
    spawn_group_destroy(group);
    return end;
}

TEST(all_wait_at_the_gate_until_it_is_opened)
{
    struct spawn_group *group = group_of(3);
    struct spawn_request *request = shell("echo ran");
    pid_t pid[3];
    for (unsigned i = 0; i < 3; i++)
        pid[i] = start(group, i, request);
    CHECK_STR(written(request->stdio[1]), "");
    CHECK_INT(waitpid(-1, NULL, WNOHANG), ==, 0);
    spawn_open_gate(group);
    for (unsigned i = 0; i < 3; i++) {
        CHECK_INT(ended(pid[i]), ==, 0);
        CHECK_INT(spawn_result(group, i).stage, ==, SPAWN_OK);
    }
    CHECK_STR(written(request->stdio[1]), "ran\nran\nran");
    spawn_group_destroy(group);
    spawn_group_destroy(NULL);
}

/* "/autogroup-NUMBER nice N". */
static int autogroup_nice(const char *text)
{
    const char *at = strstr(text, " nice ");
    return at ? (int)strtol(at + 6, NULL, 10) : -100;
}

TEST(a_child_in_the_background_is_of_low_priority_until_it_is_called_and_we_are_not)
{
    char ours[64] = "";
    AUTO_FD fd = open("/proc/self/autogroup", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, ours, sizeof ours - 1) <= 0)
        test_skip("no autogroups in this kernel");
    int was = autogroup_nice(ours);
    struct spawn_group *group = group_of(1);
    struct spawn_request *request =
        shell("cat /proc/$$/autogroup; kill -STOP $$; cat /proc/$$/autogroup");
    request->background = true;
    pid_t pid = start(group, 0, request);
    spawn_open_gate(group);
    siginfo_t info;
    CHECK_INT(waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOWAIT), ==, 0);
    int low = autogroup_nice(written(request->stdio[1]));
    CHECK(low > was || geteuid() != 0); /* another may have changed one less than 100 ms ago */
    while (spawn_foreground(pid) == -EAGAIN)
        poll(NULL, 0, 10);
    kill(pid, SIGCONT);
    CHECK_INT(ended(pid), ==, 0);
    CHECK_INT(autogroup_nice(strchr(written(request->stdio[1]), '\n')), ==, 0);
    CHECK(pread(fd, ours, sizeof ours - 1, 0) > 0);
    CHECK_INT(autogroup_nice(ours), ==, was);
    spawn_group_destroy(group);
}

TEST(those_sent_away_end_well_without_having_run_anything)
{
    struct spawn_group *group = group_of(2);
    struct spawn_request *request = shell("echo ran");
    pid_t first = start(group, 0, request), second = start(group, 1, request);
    spawn_group_dismiss(group);
    CHECK_INT(ended(first), ==, 0);
    CHECK_INT(ended(second), ==, 0);
    CHECK_STR(written(request->stdio[1]), "");
    spawn_group_destroy(group);
}

TEST(a_child_leads_a_session_and_has_only_the_descriptors_it_shall_keep)
{
    int kept = fcntl(0, F_DUPFD_CLOEXEC, 60), other = fcntl(0, F_DUPFD, 61);
    CHECK(kept >= 60 && other >= 61);
    struct spawn_request *request = shell(
        "set -- $(sed 's/.*) //' /proc/$$/stat); [ $$ = $3 ] && [ $$ = $4 ] && echo leader; "
        "for fd in 3 4 5 6 7 8 9 10 60 61; do [ ! -e /proc/$$/fd/$fd ] || echo has $fd; done");
    request->keep_fd[1] = kept;
    CHECK_INT(run(request, NULL), ==, 0);
    CHECK_STR(written(request->stdio[1]), "leader\nhas 60");
}

TEST(a_child_has_the_callers_mask_sigpipe_and_descriptor_limit_not_ours)
{
    static const char lines[] = "ulimit -Sn; grep -E 'Sig(Blk|Ign)' /proc/self/status";
    struct spawn_request *request = shell(lines);
    CHECK_INT(run(request, NULL), ==, 0);
    char want[256];
    snprintf(want, sizeof want, "%.250s", written(request->stdio[1]));

    request = shell(lines); /* remembers how things are now */
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur -= 7;
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), ==, 0);
    CHECK_INT(run(request, NULL), ==, 0);
    CHECK_STR(written(request->stdio[1]), want);
}

TEST(what_can_not_be_executed_or_connected_is_recorded_with_its_reason)
{
    struct spawn_record record;
    struct spawn_request *request = shell("");
    request->file = "/no/such/program";
    CHECK_INT(run(request, &record), ==, 127);
    CHECK_INT(record.stage, ==, SPAWN_EXEC);
    CHECK_INT(record.error, ==, ENOENT);
    request->file = "/tmp";
    CHECK_INT(run(request, &record), ==, 126);
    CHECK_INT(record.error, ==, EACCES);
    request = shell("");
    request->stdio[0] = 999;
    CHECK_INT(run(request, &record), ==, 126);
    CHECK_INT(record.stage, ==, SPAWN_STDIO);
    CHECK_INT(record.error, ==, EBADF);
}

TEST(a_child_at_the_gate_dies_with_its_parent)
{
    int ends[2];
    CHECK_INT(pipe2(ends, O_CLOEXEC), ==, 0);
    pid_t parent = fork();
    if (parent == 0) {
        struct spawn_group *group = group_of(1);
        pid_t pid = start(group, 0, shell("exec sleep 300"));
        /* A session of its own: it has looked for its parent, and found it alive. */
        while (getsid(pid) != pid)
            sched_yield();
        _exit(0); /* the gate stays shut */
    }
    close(ends[1]);
    CHECK_INT(ended(parent), ==, 0);
    CHECK_INT(await_byte(ends[0]), ==, 0);
}

static void expect_failure(struct spawn_group *group, int code, const char *part)
{
    pid_t pid = -5;
    int pidfd = -5;
    struct err err;
    CHECK_INT(spawn_start(group, 0, shell(""), &pid, &pidfd, &err), ==, code);
    CHECK_HAS(err.text, part);
    CHECK_INT(pid, ==, -5);
    CHECK_INT(waitpid(-1, NULL, WNOHANG), ==, -1);
}

/* In a process of its own, for the limit can't be lifted again. Root is not bound by it. */
TEST(too_many_processes_is_an_error_that_names_the_limit)
{
    struct spawn_group *group = group_of(1);
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit none = {0};
        if (getuid() == 0 && setresuid(54321, 54321, 54321) < 0)
            _exit(2);
        CHECK_INT(setrlimit(RLIMIT_NPROC, &none), ==, 0);
        expect_failure(group, -EAGAIN, "ulimit -u is 0");
        _exit(0);
    }
    int end = ended(pid);
    if (end == 2)
        test_skip("this root can't become another user");
    CHECK_INT(end, ==, 0);
    spawn_group_destroy(group);
}

TEST(too_many_open_files_is_an_error_that_names_the_limit_and_leaves_no_child)
{
    struct spawn_group *group = group_of(1);
    struct rlimit was, full;
    int next = dup(0);
    close(next);
    getrlimit(RLIMIT_NOFILE, &was);
    full = (struct rlimit){.rlim_cur = (rlim_t)next, .rlim_max = was.rlim_max};
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &full), ==, 0);
    expect_failure(group, -EMFILE, "too many open files (ulimit -Hn is ");
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &was), ==, 0);
    spawn_group_destroy(group);
}

TEST(without_clone3_a_plain_fork_does)
{
    refuse(SYS_clone3, SYS_clone3);
    struct spawn_request *request = shell("echo ran");
    CHECK_INT(run(request, NULL), ==, 0);
    CHECK_STR(written(request->stdio[1]), "ran");
}

TEST(without_clone3_and_pidfds_there_is_an_error_and_no_child)
{
    refuse(SYS_clone3, SYS_pidfd_open);
    struct spawn_group *group = group_of(1);
    expect_failure(group, -ENOSYS, "fork: ");
    spawn_group_destroy(group);
}

/* More than one read of their list, and far up, beside one that is to be kept. */
TEST(without_close_range_descriptors_are_closed_one_by_one)
{
    refuse(SYS_close_range, SYS_close_range);
    for (int fd = 100; fd < 300; fd++)
        CHECK_INT(dup2(0, fd), ==, fd);
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    int last = fcntl(0, F_DUPFD, (int)limit.rlim_cur - 1);
    CHECK_INT(last, ==, (int)limit.rlim_cur - 1);
    struct spawn_request *request =
        shell("cd /proc/$$/fd; for fd in *; do [ $fd -lt 3 ] || [ ! -e $fd ] || echo $fd; done");
    request->keep_fd[0] = 299;
    CHECK_INT(run(request, NULL), ==, 0);
    CHECK_STR(written(request->stdio[1]), "299");
}

TEST(without_close_range_and_proc_descriptors_are_closed_by_guess)
{
    refuse(SYS_close_range, SYS_getdents64);
    CHECK_INT(dup2(0, 999), ==, 999);
    struct spawn_request *request = shell("[ ! -e /proc/$$/fd/999 ] && echo closed");
    CHECK_INT(run(request, NULL), ==, 0);
    CHECK_STR(written(request->stdio[1]), "closed");
}

/* A child with a place; what it wrote, and whether the kernel refused something. */
static bool run_at(const struct spawn_place *place, struct spawn_request *request,
                   struct spawn_refusal *refusal)
{
    struct spawn_group *group = group_of(1);
    request->place = *place;
    pid_t pid = start(group, 0, request);
    bool refused = spawn_refused(group, 1, refusal);
    spawn_open_gate(group);
    CHECK(ended(pid) == 0 || refused);
    spawn_group_destroy(group);
    return refused;
}

/* The last CPU of ours, and our first node. */
static struct spawn_place some_place(char expected[32])
{
    static struct bitset cpus, nodes;
    cpu_set_t mine;
    int last = 0;
    CHECK_INT(sched_getaffinity(0, sizeof mine, &mine), ==, 0);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &mine))
            last = i;
    cpus = nodes = (struct bitset){0};
    bitset_add(&cpus, last);
    bitset_add(&nodes, 0);
    snprintf(expected, 32, "%d", last);
    return (struct spawn_place){.cpus = &cpus,
                                .cpus_bytes = sizeof cpus,
                                .nodes = &nodes,
                                .nodes_bytes = sizeof nodes,
                                .mem_policy = MPOL_BIND};
}

#define WHERE "sed -n 's/^Cpus_allowed_list:[^0-9]*//p' /proc/self/status"

TEST(a_child_is_at_its_place_before_it_runs_anything)
{
    char cpu[32];
    struct spawn_refusal refusal;
    struct spawn_place place = some_place(cpu), memory = place;
    memory.cpus = NULL;
    place.nodes = NULL;
    struct spawn_request *request = shell(WHERE);
    CHECK(!run_at(&place, request, &refusal));
    CHECK_STR(written(request->stdio[1]), cpu);
    request = shell("grep -q ' bind:0 ' /proc/self/numa_maps && echo bound");
    if (run_at(&memory, request, &refusal))
        test_skip("set_mempolicy() is refused here: %s", strerror(refusal.mempolicy));
    CHECK_STR(written(request->stdio[1]), "bound");
}

TEST(a_place_that_the_kernel_refuses_is_told_and_the_child_runs)
{
    char cpu[32];
    struct spawn_refusal refusal;
    struct spawn_place place = some_place(cpu);
    refuse(SYS_sched_setaffinity, SYS_set_mempolicy);
    struct spawn_request *request = shell("echo ran");
    CHECK(run_at(&place, request, &refusal));
    CHECK_INT(refusal.affinity, ==, ENOSYS);
    CHECK_INT(refusal.mempolicy, ==, ENOSYS);
    CHECK_STR(written(request->stdio[1]), "ran");
}

TEST(the_first_child_that_could_not_go_to_its_place_is_named)
{
    struct spawn_group *group = group_of(2);
    struct spawn_request *request = shell("true");
    struct spawn_refusal refusal;
    struct bitset nowhere = {0};
    bitset_add(&nowhere, BITSET_MAX - 1);
    pid_t first = start(group, 0, request); /* without a place */
    request->place = (struct spawn_place){.cpus = &nowhere, .cpus_bytes = sizeof nowhere};
    pid_t second = start(group, 1, request);
    CHECK(spawn_refused(group, 2, &refusal));
    CHECK_INT(refusal.index, ==, 1);
    CHECK_INT(refusal.affinity, ==, EINVAL);
    CHECK_INT(refusal.mempolicy, ==, 0);
    spawn_open_gate(group);
    CHECK_INT(ended(first), ==, 0);
    CHECK_INT(ended(second), ==, 0);
    spawn_group_destroy(group);
}

TEST(the_soft_limit_is_raised_as_far_as_needed_and_a_low_hard_limit_is_told)
{
    struct rlimit limit = {.rlim_cur = 64, .rlim_max = 200};
    struct err err;
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), ==, 0);
    CHECK_INT(spawn_reserve_descriptors(3, 0, &err), ==, 0);
    getrlimit(RLIMIT_NOFILE, &limit);
    CHECK_INT(limit.rlim_cur, ==, 64); /* enough */
    CHECK_INT(spawn_reserve_descriptors(40, 0, &err), ==, 0);
    getrlimit(RLIMIT_NOFILE, &limit);
    CHECK_INT(limit.rlim_cur, >=, 3 * 40);
    CHECK_INT(spawn_reserve_descriptors(100, 0, &err), ==, -EMFILE);
    CHECK_HAS(err.text, "100 workers");
    CHECK_HAS(err.text, "ulimit -Hn allows 200");
}
