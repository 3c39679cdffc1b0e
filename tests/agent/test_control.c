/* SPDX-License-Identifier: MIT */
/* agent/control.[ch] and client.[ch]: the two ends of a control socket, and what neither may do to the other. */
#include "../../agent/client.h"
#include "../../agent/control.h"
#include "../harness.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define RANKS 4096u
#define STANDBYS 3u

static uv_loop_t loop;
static struct control *control;
static struct rundir_place place;
static struct wire_request acted; /* the last one */
static unsigned acted_n;

/* ---- a job ---- */

static void describe(void *user, struct wire_job *job)
{
    (void)user;
    job->world_size = RANKS;
    job->age_ms = 77;
    snprintf(job->run_id, sizeof job->run_id, "night");
    snprintf(job->name, sizeof job->name, "mine\x1b[2J");
}

static void describe_rank(void *user, uint32_t index, struct wire_rank *rank)
{
    (void)user;
    rank->pid = (int32_t)index + 1;
}

static void show_output(void *user, uint32_t index, unsigned stream, struct wire_output *output)
{
    (void)user;
    output->n = (uint32_t)snprintf(output->text, sizeof output->text, "%u/%u", index, stream);
}

static int act(void *user, const struct wire_request *request, pid_t who, struct err *err)
{
    (void)user;
    CHECK_INT(who, >, 0);
    acted = *request;
    acted_n++;
    return request->verb == WIRE_RESTART ? err_set(err, -EBUSY, "not now") : 0;
}

static void start_job(void)
{
    struct err err;
    struct control_source source = {.describe = describe,
                                    .describe_rank = describe_rank,
                                    .show_output = show_output,
                                    .act = act,
                                    .world_size = RANKS,
                                    .standbys = STANDBYS};
    unsetenv("XDG_RUNTIME_DIR");
    test_write("dev/shm/.keep", "");
    setenv("LAUNCH_SYSROOT", test_dir(), 1);
    rundir_choose(&place, test_dir(), "night", false);
    CHECK_INT(uv_loop_init(&loop), ==, 0);
    if (control_start(&control, &loop, &place, &source, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
}

static void end_job(int exit_code)
{
    control_stop(control, exit_code);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_INT(uv_loop_close(&loop), ==, 0);
}

/* ---- who asks ---- */

static int dial(void)
{
    struct sockaddr_un address;
    int directory, fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK_INT(fd, >=, 0);
    struct rundir_place there = place;
    there.owner = geteuid(); /* the path as it is, whoever we are */
    CHECK_INT(rundir_address(&there, &address, &directory), ==, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        CHECK_INT(errno, ==, EAGAIN); /* the backlog is full */
        close_fd(&fd);
    }
    close_fd(&directory);
    return fd;
}

static void ask(int fd, enum wire_verb verb, int rank)
{
    union wire_packet packet;
    wire_begin(&packet, WIRE_REQUEST);
    packet.request.verb = verb;
    packet.request.rank = rank;
    CHECK_INT(wire_send(fd, &packet), ==, 0);
}

/* The next packet, or the error of receiving it; the job runs meanwhile. */
static int hear(int fd, union wire_packet *ret, struct err *err)
{
    for (int i = 0; i < 10000; i++) {
        uv_run(&loop, UV_RUN_NOWAIT);
        int rc = wire_receive(fd, ret, err);
        if (rc != -EAGAIN)
            return rc;
    }
    return err_set(err, -ETIMEDOUT, "nothing came");
}

/* Packets before the end, whose code is *ret_code. */
static unsigned hear_all(int fd, int *ret_code)
{
    union wire_packet packet;
    struct err err;
    for (unsigned n = 0;; n++) {
        int rc = hear(fd, &packet, &err);
        if (rc < 0)
            test_fail(__FILE__, __LINE__, "after %u packets: %s", n, err.text);
        if (packet.head.kind == WIRE_END) {
            *ret_code = packet.end.code;
            return n;
        }
    }
}

static void still_answers(void)
{
    int code, fd = dial();
    ask(fd, WIRE_DESCRIBE, WIRE_ALL_RANKS);
    CHECK_INT(hear_all(fd, &code), ==, 1);
    CHECK_INT(code, ==, 0);
    close(fd);
}

TEST(one_connection_may_ask_again_and_again)
{
    int code;
    start_job();
    int fd = dial();
    for (int i = 0; i < 3; i++) {
        ask(fd, WIRE_LIST_RANKS, WIRE_ALL_RANKS);
        CHECK_INT(hear_all(fd, &code), ==, 1 + RANKS + STANDBYS);
        ask(fd, WIRE_LIST_RANKS, 7);
        CHECK_INT(hear_all(fd, &code), ==, 2);
        ask(fd, WIRE_SHOW_OUTPUT, 9);
        CHECK_INT(hear_all(fd, &code), ==, 2);
    }
    close(fd);
    end_job(0);
}

TEST(what_is_to_be_done_reaches_the_job_and_a_refusal_comes_back)
{
    int code;
    start_job();
    int fd = dial();
    ask(fd, WIRE_STOP, WIRE_ALL_RANKS);
    CHECK_INT(hear_all(fd, &code), ==, 0);
    CHECK_INT(code, ==, 0);
    CHECK_INT(acted.verb, ==, WIRE_STOP);
    ask(fd, WIRE_RESTART, 3);
    CHECK_INT(hear_all(fd, &code), ==, 0);
    CHECK_INT(code, ==, -EBUSY);
    CHECK_INT(acted.rank, ==, 3);
    ask(fd, WIRE_RESTART, RANKS);
    CHECK_INT(hear_all(fd, &code), ==, 0);
    CHECK_INT(code, ==, -ERANGE);
    CHECK_INT(acted_n, ==, 2);
    close(fd);
    end_job(0);
}

TEST(who_waits_for_the_end_hears_the_exit_code)
{
    union wire_packet packet;
    struct err err;
    start_job();
    int fd = dial();
    ask(fd, WIRE_WAIT, WIRE_ALL_RANKS);
    still_answers();
    CHECK_INT(wire_receive(fd, &packet, &err), ==, -EAGAIN);
    end_job(42);
    CHECK_INT(wire_receive(fd, &packet, &err), ==, 0);
    CHECK_INT(packet.head.kind, ==, WIRE_END);
    CHECK_INT(packet.end.code, ==, 42);
    CHECK_INT(wire_receive(fd, &packet, &err), ==, -EPIPE);
}

TEST(after_the_end_nothing_is_left_in_the_directory)
{
    start_job();
    int fd = dial();
    CHECK_INT(access(place.dir, F_OK), ==, 0);
    end_job(0);
    CHECK_INT(access(place.dir, F_OK), ==, -1);
    close(fd);
}

TEST(bytes_that_are_no_request_are_refused_and_harm_nobody)
{
    start_job();
    srand(2);
    for (int i = 0; i < 500; i++) {
        union wire_packet packet, got;
        struct err err;
        int fd = dial(), n = 1 + rand() % (int)sizeof packet;
        for (size_t k = 0; k < sizeof packet; k++)
            ((unsigned char *)&packet)[k] = (unsigned char)rand();
        if (i % 2)
            packet.head = (struct wire_head){WIRE_MAGIC, WIRE_VERSION, (uint16_t)(rand() % 8)};
        if (i % 8 == 7)
            n = (int)sizeof packet.request;
        CHECK_INT(send(fd, &packet, (size_t)n, 0), ==, n);
        if (hear(fd, &got, &err) == 0)
            CHECK_INT(got.head.kind, ==, WIRE_END);
        close(fd);
    }
    CHECK_INT(acted_n, ==, 0);
    still_answers();
    end_job(0);
}

TEST(another_version_gets_an_answer_that_names_ours)
{
    union wire_packet packet;
    struct err err;
    start_job();
    int fd = dial();
    wire_begin(&packet, WIRE_REQUEST);
    packet.head.version++;
    CHECK_INT(wire_send(fd, &packet), ==, 0);
    CHECK_INT(hear(fd, &packet, &err), ==, 0);
    CHECK_INT(packet.end.code, ==, -EPROTO);
    CHECK_HAS(packet.end.text, "version 2 of the control protocol");
    close(fd);
    end_job(0);
}

TEST(a_client_that_never_reads_holds_nobody_up)
{
    int code;
    start_job();
    int slow = dial();
    ask(slow, WIRE_SHOW_OUTPUT, WIRE_ALL_RANKS); /* 34 MB */
    for (int i = 0; i < 100; i++)
        uv_run(&loop, UV_RUN_NOWAIT);
    still_answers();
    CHECK_INT(hear_all(slow, &code), ==, 2 * RANKS); /* and gets it all when it does */
    close(slow);
    end_job(0);
}

TEST(clients_that_wait_or_are_full_cause_no_wakeups)
{
    start_job();
    int slow = dial(), waits = dial(), silent = dial();
    ask(slow, WIRE_SHOW_OUTPUT, WIRE_ALL_RANKS);
    ask(waits, WIRE_WAIT, WIRE_ALL_RANKS);
    for (int i = 0; i < 100; i++)
        uv_run(&loop, UV_RUN_NOWAIT);
    struct pollfd p = {.fd = uv_backend_fd(&loop), .events = POLLIN};
    CHECK_INT(poll(&p, 1, 0), ==, 0);
    CHECK_INT(uv_backend_timeout(&loop), ==, -1);
    close(slow);
    close(waits);
    close(silent);
    end_job(0);
}

TEST(a_thousand_connections_cost_sixteen_descriptors)
{
    static int fds[1000];
    struct rlimit limit = {4096, 4096};
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), ==, 0);
    start_job();
    for (int i = 0; i < 1000; i++) {
        fds[i] = dial();
        if (i % 50 == 0)
            uv_run(&loop, UV_RUN_NOWAIT);
    }
    for (int i = 0; i < 100; i++)
        uv_run(&loop, UV_RUN_NOWAIT);
    unsigned open_n = 0;
    union wire_packet packet;
    struct err err;
    for (int i = 0; i < 1000; i++)
        open_n += fds[i] >= 0 && wire_receive(fds[i], &packet, &err) == -EAGAIN;
    CHECK_INT(open_n, <=, CONTROL_CLIENTS);
    still_answers();
    for (int i = 0; i < 1000; i++)
        close_fd(&fds[i]);
    end_job(0);
}

TEST(a_stranger_is_sent_away)
{
    if (getuid() != 0)
        test_skip("needs root to become somebody else");
    start_job();
    char file[PATH_MAX + 100];
    snprintf(file, sizeof file, "%s/%s", place.dir, place.name);
    CHECK_INT(chmod(test_dir(), 0755), ==, 0);
    CHECK_INT(chmod(place.dir, 0755), ==, 0); /* he gets that far */
    CHECK_INT(chmod(file, 0666), ==, 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (setresuid(4242, 4242, 4242) < 0)
            _exit(2);
        int fd = dial();
        union wire_packet packet;
        struct err err;
        wire_begin(&packet, WIRE_REQUEST);
        packet.request.verb = WIRE_STOP;
        (void)!wire_send(fd, &packet);
        int rc;
        while ((rc = wire_receive(fd, &packet, &err)) == -EAGAIN)
            continue;
        _exit(rc == 0 ? 1 : 0);
    }
    int status;
    while (waitpid(pid, &status, WNOHANG) == 0)
        uv_run(&loop, UV_RUN_NOWAIT);
    CHECK_INT(status, ==, 0);
    CHECK_INT(acted_n, ==, 0);
    end_job(0);
}

/* What client_list() finds, in a process of its own: 0 as wanted. */
static void list_in_child(bool (*as_wanted)(const struct client_jobs *jobs))
{
    pid_t pid = fork();
    if (pid == 0) {
        struct client_jobs jobs;
        client_list(&jobs);
        _exit(as_wanted(&jobs) ? 0 : 1);
    }
    int status;
    while (waitpid(pid, &status, WNOHANG) == 0)
        uv_run(&loop, UV_RUN_NOWAIT);
    CHECK_INT(status, ==, 0);
}

static bool is_refused(const struct client_jobs *jobs)
{
    return jobs->n == 1 && jobs->job[0].fd < 0 && jobs->job[0].trouble.code == -EPERM;
}

TEST(a_client_does_not_speak_to_a_socket_of_somebody_else)
{
    if (getuid() != 0)
        test_skip("needs root to be two users");
    start_job();
    struct sockaddr_un address;
    int directory, fd = -1;
    /* 4242 has a directory in which 4343 listens. */
    CHECK_INT(chmod(test_dir(), 0755), ==, 0);
    CHECK_INT(chmod(place.dir, 0777), ==, 0);
    CHECK_INT(seteuid(4343), ==, 0);
    struct rundir_place theirs = place;
    snprintf(theirs.name, sizeof theirs.name, "trap.0");
    theirs.owner = 4343;
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    CHECK_INT(rundir_address(&theirs, &address, &directory), ==, 0);
    CHECK_INT(bind(fd, (struct sockaddr *)&address, sizeof address), ==, 0);
    CHECK_INT(listen(fd, 5), ==, 0);
    CHECK_INT(seteuid(0), ==, 0);
    rundir_remove(&place);
    CHECK_INT(chmod(place.dir, 0700), ==, 0);
    list_in_child(is_refused);
    rundir_remove(&theirs);
    close(fd);
    end_job(0);
}

static bool is_clean(const struct client_jobs *jobs)
{
    return jobs->n == 1 && strcmp(jobs->job[0].job.run_id, "night") == 0 &&
           strcmp(jobs->job[0].job.name, "mine?[2J") == 0;
}

TEST(a_list_names_jobs_with_clean_texts)
{
    start_job();
    list_in_child(is_clean);
    end_job(0);
}

static bool is_other_version(const struct client_jobs *jobs)
{
    return jobs->n == 1 && strcmp(jobs->job[0].job.run_id, "o?[2Jld") == 0 &&
           strstr(jobs->job[0].trouble.text, "version 9 of the control protocol");
}

/* A job of somebody else's making, which does this with its first client. */
static void list_job_that(const char *name, void (*serves)(int client),
                          bool (*as_wanted)(const struct client_jobs *jobs))
{
    start_job();
    control_stop(control, 0);
    snprintf(place.name, sizeof place.name, "%s", name);
    struct sockaddr_un address;
    struct err err;
    int directory, fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    CHECK_INT(rundir_make(&place, &err), ==, 0);
    CHECK_INT(rundir_address(&place, &address, &directory), ==, 0);
    CHECK_INT(bind(fd, (struct sockaddr *)&address, sizeof address), ==, 0);
    CHECK_INT(listen(fd, 5), ==, 0);
    pid_t pid = fork();
    if (pid == 0) {
        serves(accept(fd, NULL, NULL));
        pause();
    }
    list_in_child(as_wanted);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    rundir_remove(&place);
}

static void speak_version_9(int client)
{
    struct wire_head head = {WIRE_MAGIC, 9, WIRE_END};
    send(client, &head, sizeof head, 0);
}

TEST(a_job_of_another_version_is_listed_by_the_name_of_its_socket)
{
    list_job_that("o\x1b[2Jld.12345678", speak_version_9, is_other_version);
}

static void speak_without_end(int client)
{
    union wire_packet packet;
    wire_begin(&packet, WIRE_RANK);
    while (wire_send(client, &packet) == 0)
        continue;
}

static bool is_endless(const struct client_jobs *jobs)
{
    return jobs->n == 1 && strstr(jobs->job[0].trouble.text, "its answer has no end");
}

TEST(an_answer_without_an_end_is_given_up)
{
    list_job_that("babble.12345678", speak_without_end, is_endless);
}

/* ---- which job is meant ---- */

static struct client_jobs named(const char *const *names, size_t n)
{
    struct client_jobs jobs = {.job = calloc(n, sizeof *jobs.job), .n = n};
    for (size_t i = 0; i < n; i++) {
        jobs.job[i].fd = -1;
        snprintf(jobs.job[i].job.run_id, WIRE_ID_BYTES, "%s", names[2 * i]);
        snprintf(jobs.job[i].job.name, WIRE_ID_BYTES, "%s", names[2 * i + 1]);
    }
    return jobs;
}

TEST(a_job_is_meant_by_its_whole_name_or_by_a_beginning_that_only_it_has)
{
    static const char *const names[] = {"abc1", "", "abc", "train", "xyz", "trial"};
    static const struct {
        const char *wanted, *got, *error;
    } cases[] = {
        {"abc", "abc", NULL}, /* although abc1 begins so, too */
        {"abc1", "abc1", NULL},
        {"x", "xyz", NULL},
        {"trai", "abc", NULL},
        {"ab", NULL, "ab may be any of abc1, abc (train): write more of it"},
        {"tr", NULL, "tr may be any of abc (train), xyz (trial)"},
        {"abd", NULL, "no job abd is running; did you mean: abc1, abc (train)"},
        {"q", NULL, "no job q is running; there are: abc1, abc (train), xyz (trial)"},
        {"", NULL, "no job  is running"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct client_jobs jobs = named(names, 3);
        struct client_job job;
        struct err err = {0};
        int rc = client_pick(&jobs, cases[i].wanted, &job, &err);
        CHECK_INT(rc == 0, ==, cases[i].got != NULL);
        if (cases[i].got)
            CHECK_STR(job.job.run_id, cases[i].got);
        else
            CHECK_HAS(err.text, cases[i].error);
        client_finish(&jobs);
    }
}

TEST(without_any_job_that_is_said)
{
    struct client_jobs jobs = {0};
    struct client_job job;
    struct err err;
    CHECK_INT(client_pick(&jobs, "x", &job, &err), ==, -ENOENT);
    CHECK_STR(err.text, "no job x is running; none is");
}
