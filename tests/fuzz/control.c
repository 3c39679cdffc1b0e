/* SPDX-License-Identifier: MIT */
/* Clients of all kinds on a job's control socket: each step of the input connects, sends any bytes or any request, reads, or
 * goes away. The job is asked for nothing that it has not, every answer is well-formed, and afterwards it still answers. */
#include "../../agent/control.h"

#include "fuzz.h"

#include <sys/socket.h>
#include <sys/stat.h>

#define RANKS 40u
#define STANDBYS 2u
#define CLIENTS 4

static uv_loop_t loop;
static struct control *control;
static struct rundir_place place;
static char root[] = "/tmp/fuzz-control-XXXXXX";

/* ---- the job ---- */

static void describe(void *user, struct wire_job *job)
{
    (void)user;
    job->world_size = RANKS;
}

static void describe_rank(void *user, uint32_t index, struct wire_rank *rank)
{
    (void)user, (void)rank;
    must(index < RANKS + STANDBYS, "a rank that there is not");
}

static void show_output(void *user, uint32_t index, unsigned stream, struct wire_output *output)
{
    (void)user;
    must(index < RANKS && (stream == 1 || stream == 2), "a stream that there is not");
    output->n = 3;
}

static int act(void *user, const struct wire_request *r, pid_t who, struct err *err)
{
    (void)user;
    must(r->verb >= WIRE_STOP && r->verb < WIRE_VERBS_N && r->verb != WIRE_WAIT && who == getpid(),
         "an unknown request");
    must(r->rank >= WIRE_ALL_RANKS && r->rank < (int)RANKS, "a rank that there is not");
    return r->number % 2 ? err_set(err, -EBUSY, "not now") : 0;
}

static void stop(void)
{
    control_stop(control, 3);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    char path[64];
    snprintf(path, sizeof path, "%s/dev/shm", root);
    rmdir(path);
    *strrchr(path, '/') = '\0';
    rmdir(path);
    rmdir(root);
}

static void start(void)
{
    struct control_source source = {.describe = describe,
                                    .describe_rank = describe_rank,
                                    .show_output = show_output,
                                    .act = act,
                                    .world_size = RANKS,
                                    .standbys = STANDBYS};
    struct err err;
    char path[64];
    must(mkdtemp(root) != NULL, "no directory");
    snprintf(path, sizeof path, "%s/dev", root);
    must(mkdir(path, 0700) == 0 && mkdir(strcat(path, "/shm"), 0700) == 0, "no directory");
    unsetenv("XDG_RUNTIME_DIR");
    rundir_choose(&place, root, "night", false);
    uv_loop_init(&loop);
    must(control_start(&control, &loop, &place, &source, &err) == 0, err.text);
    atexit(stop);
}

/* ---- its clients ---- */

static int dial(void)
{
    struct sockaddr_un address;
    int directory = -1, fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    must(fd >= 0 && rundir_address(&place, &address, &directory) == 0, "no socket");
    must(connect(fd, (struct sockaddr *)&address, sizeof address) == 0, "nobody listens");
    close_fd(&directory);
    return fd;
}

static void run(unsigned rounds)
{
    while (rounds--)
        uv_run(&loop, UV_RUN_NOWAIT);
}

/* False: nothing is there now. */
static bool hear(int fd)
{
    union wire_packet packet;
    struct err err;
    int rc = wire_receive(fd, &packet, &err);
    must(rc != -EPROTO, "an answer that is none");
    return rc == 0;
}

static void say(int fd, struct fuzz_in *in, bool request)
{
    union wire_packet packet = {0};
    size_t n = in_u8(in) * 24u;
    n = n < in_left(in) ? n : in_left(in);
    if (request) {
        wire_begin(&packet, WIRE_REQUEST);
        packet.request.verb = in_u8(in);
        packet.request.rank = (int8_t)in_u8(in);
        packet.request.number = in_u8(in);
        n = sizeof packet.request;
    } else {
        memcpy(&packet, in_bytes(in, n), n < sizeof packet ? n : sizeof packet);
    }
    (void)!send(fd, &packet, n < sizeof packet ? n : sizeof packet, MSG_NOSIGNAL);
}

static void step(struct fuzz_in *in, int *fd)
{
    switch (in_u8(in) % 6) {
    case 0:
        if (*fd >= 0)
            say(*fd, in, false);
        break;
    case 1:
        if (*fd >= 0)
            say(*fd, in, true);
        break;
    case 2:
        run(1);
        break;
    case 3:
        for (int i = 0; *fd >= 0 && i < 8 && hear(*fd); i++)
            ;
        break;
    case 4:
        if (*fd >= 0)
            shutdown(*fd, SHUT_WR);
        break;
    default:
        close_fd(fd);
        *fd = dial();
        run(1);
        break;
    }
}

static void still_answers(void)
{
    union wire_packet packet;
    struct err err;
    int fd = dial(), rc = -EAGAIN;
    wire_begin(&packet, WIRE_REQUEST);
    packet.request.verb = WIRE_DESCRIBE;
    packet.request.rank = WIRE_ALL_RANKS;
    must(wire_send(fd, &packet) == 0, "it does not listen");
    for (int i = 0; rc == -EAGAIN && i < 100; i++) {
        run(1);
        rc = wire_receive(fd, &packet, &err);
    }
    must(rc == 0 && packet.head.kind == WIRE_JOB, "it does not answer any more");
    close_fd(&fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct fuzz_in in = {data, data + n};
    int fd[CLIENTS] = {-1, -1, -1, -1};
    if (!control)
        start();
    for (unsigned steps = 0; in_left(&in) && steps < 256; steps++)
        step(&in, &fd[in_u8(&in) % CLIENTS]);
    still_answers();
    for (int i = 0; i < CLIENTS; i++)
        close_fd(&fd[i]);
    run(3);
    return 0;
}
