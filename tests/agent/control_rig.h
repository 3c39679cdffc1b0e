/* SPDX-License-Identifier: MIT */
/* A job that may be asked, and who asks it, in one process: the loop turns while an answer is waited for. */
#ifndef LAUNCH_TESTS_CONTROL_RIG_H
#define LAUNCH_TESTS_CONTROL_RIG_H

#include "../../agent/control.h"
#include "../harness.h"

#include <fcntl.h>
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

static inline void describe(void *user, struct wire_job *job)
{
    (void)user;
    job->world_size = RANKS;
    job->age_ms = 77;
    snprintf(job->run_id, sizeof job->run_id, "night");
    snprintf(job->name, sizeof job->name, "mine\x1b[2J");
}

static inline void describe_rank(void *user, uint32_t index, struct wire_rank *rank)
{
    (void)user;
    rank->pid = (int32_t)index + 1;
}

static inline void show_output(void *user, uint32_t index, unsigned stream,
                               struct wire_output *output)
{
    (void)user;
    output->n = (uint32_t)snprintf(output->text, sizeof output->text, "%u/%u", index, stream);
}

static inline int act(void *user, const struct wire_request *request, pid_t who, struct err *err)
{
    (void)user;
    CHECK_INT(who, >, 0);
    acted = *request;
    acted_n++;
    return request->verb == WIRE_RESTART ? err_set(err, -EBUSY, "not now") : 0;
}

static inline void start_job(void)
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

static inline void end_job(int exit_code)
{
    control_stop(control, exit_code);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_INT(uv_loop_close(&loop), ==, 0);
}

/* ---- who asks ---- */

static inline int dial(void)
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

static inline void ask(int fd, enum wire_verb verb, int rank)
{
    union wire_packet packet;
    wire_begin(&packet, WIRE_REQUEST);
    packet.request.verb = verb;
    packet.request.rank = rank;
    CHECK_INT(wire_send(fd, &packet), ==, 0);
}

/* The next packet, or the error of receiving it; the job runs meanwhile. */
static inline int hear(int fd, union wire_packet *ret, struct err *err)
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
static inline unsigned hear_all(int fd, int *ret_code)
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

static inline void still_answers(void)
{
    int code, fd = dial();
    ask(fd, WIRE_DESCRIBE, WIRE_ALL_RANKS);
    CHECK_INT(hear_all(fd, &code), ==, 1);
    CHECK_INT(code, ==, 0);
    close(fd);
}
/* A packet with as many of our descriptors as the kernel takes. */
static inline void send_descriptors(int to, const union wire_packet *packet)
{
    int fds[253];
    _Alignas(struct cmsghdr) char rights[CMSG_SPACE(sizeof fds)] = {0};
    struct iovec iov = {(void *)packet, wire_size(packet->head.kind)};
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = rights, .msg_controllen = sizeof rights};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        fds[i] = to;
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    *c = (struct cmsghdr){CMSG_LEN(sizeof fds), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(c), fds, sizeof fds);
    CHECK_INT(sendmsg(to, &message, 0), ==, iov.iov_len);
}

static inline unsigned open_files(void)
{
    unsigned n = 0;
    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

#endif
