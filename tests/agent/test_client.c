/* SPDX-License-Identifier: MIT */
/* agent/client.c: the other end, and what nobody who listens may do to whoever asks. */
#include "../../agent/client.h"
#include "control_rig.h"

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

static void answer_with_descriptors(int client)
{
    union wire_packet packet;
    wire_begin(&packet, WIRE_JOB);
    send_descriptors(client, &packet);
    wire_begin(&packet, WIRE_END);
    send_descriptors(client, &packet);
}

static bool took_none(const struct client_jobs *jobs)
{
    return jobs->n == 1 && jobs->job[0].fd >= 0 && open_files() < 100;
}

TEST(descriptors_that_come_with_an_answer_are_not_taken)
{
    list_job_that("gift.12345678", answer_with_descriptors, took_none);
}

static void describe_twice(int client)
{
    union wire_packet packet;
    wire_begin(&packet, WIRE_JOB);
    for (int i = 0; i < 2; i++)
        CHECK_INT(wire_send(client, &packet), ==, 0);
}

TEST(whoever_describes_a_job_twice_is_not_listened_to_any_longer)
{
    list_job_that("twice.12345678", describe_twice, is_endless);
}

#define CROWD (RUNDIR_STRANGERS_MAX + 40)

static bool is_seen_beside_a_crowd(const struct client_jobs *jobs)
{
    return jobs->n == 1 && jobs->job[0].fd >= 0 && jobs->trouble.code == -E2BIG &&
           strstr(jobs->trouble.text, "/launch-4242 holds more than 256 files");
}

/* They listen, and close what they accept: as if their jobs ended at that moment. */
TEST(a_user_with_many_sockets_uses_up_neither_root_s_descriptors_nor_those_of_another_job)
{
    if (getuid() != 0)
        test_skip("needs root to be two users");
    static int crowd[CROWD];
    struct err err;
    struct sockaddr_un address;
    struct rlimit limit = {1024, 1024};
    unsigned asked = 0;
    int directory, status;
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), ==, 0);
    start_job();
    struct rundir_place theirs = place;
    snprintf(theirs.dir, sizeof theirs.dir, "%s/dev/shm/launch-4242", test_dir());
    CHECK_INT(rundir_make(&theirs, &err), ==, 0);
    for (int i = 0; i < CROWD; i++) {
        snprintf(theirs.name, sizeof theirs.name, "fake.%08x", (unsigned)i);
        crowd[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        CHECK_INT(rundir_address(&theirs, &address, &directory), ==, 0);
        CHECK_INT(bind(crowd[i], (struct sockaddr *)&address, sizeof address), ==, 0);
        CHECK_INT(listen(crowd[i], 5), ==, 0);
        close_fd(&directory);
    }
    CHECK_INT(chown(theirs.dir, 4242, 4242), ==, 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct client_jobs jobs;
        for (int i = 0; i < CROWD; i++)
            close_fd(&crowd[i]);
        limit.rlim_cur = 64;
        setrlimit(RLIMIT_NOFILE, &limit);
        client_list(&jobs);
        _exit(is_seen_beside_a_crowd(&jobs) ? 0 : 1);
    }
    while (waitpid(pid, &status, WNOHANG) == 0) {
        uv_run(&loop, UV_RUN_NOWAIT);
        for (int i = 0; i < CROWD; i++) {
            int fd = accept(crowd[i], NULL, NULL);
            asked += fd >= 0;
            close_fd(&fd);
        }
    }
    CHECK_INT(status, ==, 0);
    CHECK_INT(asked, ==, RUNDIR_STRANGERS_MAX);
    end_job(0);
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

TEST(healings_are_told_apart_from_restarts)
{
    static struct wire_job job;
    char text[CLIENT_AGAIN_BYTES];
    CHECK_STR(client_again(&job, text), "0 restarts");
    job.restarts = 1;
    CHECK_STR(client_again(&job, text), "1 restart");
    job.healings = 1;
    CHECK_STR(client_again(&job, text), "1 restart, 1 healing");
    job.restarts = job.healings = UINT32_MAX;
    CHECK_STR(client_again(&job, text), "4294967295 restarts, 4294967295 healings");
}
