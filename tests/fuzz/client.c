/* SPDX-License-Identifier: MIT */
/* Whatever may answer on the other side of a control socket: packets of any kind with any content, then silence. What is
 * asked comes to an end, and what is kept is fit for a terminal. */
#include "../../agent/client.h"

#include "fuzz.h"

#include <poll.h>
#include <sys/socket.h>

static struct client_jobs jobs;

/* In the place of the C library's. All has been said, and the other side has gone, before anything is asked. */
int poll(struct pollfd *fds, nfds_t n, int ms)
{
    (void)fds, (void)n, (void)ms;
    must(false, "it waits for somebody who has gone");
    return 0;
}

static void check_job(const struct wire_job *job)
{
    check_clean(job->state);
    check_clean(job->run_id);
    check_clean(job->name);
    check_clean(job->program);
    check_clean(job->gpus);
    must(memchr(job->log_dir, '\0', sizeof job->log_dir) != NULL, "a text without an end");
}

static void check_look(const struct client_look *look)
{
    must(look->n + look->standbys <= look->room, "more ranks than there is room for");
    for (uint32_t i = 0; i < look->n + look->standbys; i++) {
        const struct wire_rank *rank = &look->ranks[i];
        must(memchr(rank->end, '\0', sizeof rank->end) &&
                 memchr(rank->gpu, '\0', sizeof rank->gpu) &&
                 memchr(rank->line, '\0', sizeof rank->line),
             "a text without an end");
        must(!rank->standby == (i < look->n), "a standby among the ranks");
    }
}

static void on_output(void *user, const union wire_packet *packet)
{
    (void)user;
    must(packet->head.kind != WIRE_OUTPUT || packet->output.n <= WIRE_OUTPUT_BYTES,
         "more bytes than there are");
}

/* One packet: of a known kind and its right size, filled with bytes of the input again and again; or raw. */
static void put(int fd, struct fuzz_in *in)
{
    union wire_packet packet = {0};
    unsigned kind = in_u8(in) % (WIRE_KINDS_N + 2);
    size_t n = in_u8(in), size = wire_size(kind) ? wire_size(kind) : n;
    n = n < in_left(in) ? n : in_left(in);
    const uint8_t *bytes = in_bytes(in, n);
    for (size_t i = 0; n && i < size; i++)
        ((unsigned char *)&packet)[i] = bytes[i % n];
    if (wire_size(kind))
        packet.head = (struct wire_head){WIRE_MAGIC, WIRE_VERSION, (uint16_t)kind};
    (void)!send(fd, &packet, size, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* A job whose descriptor hears n packets of the input. */
static struct client_job answering(struct fuzz_in *in)
{
    int pair[2];
    must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0,
         "no sockets");
    for (unsigned n = in_u8(in) % 8; n && in_left(in); n--)
        put(pair[1], in);
    shutdown(pair[1], SHUT_WR);
    struct client_job job = {.fd = pair[0]};
    struct client_look look = {0};
    struct err err;
    if (client_look(&job, WIRE_ALL_RANKS, &look, &err) < 0)
        must(err.text[0] != '\0', "an error without words");
    check_look(&look);
    check_job(&job.job);
    free(look.ranks);
    (void)!client_ask(&job, WIRE_SHOW_OUTPUT, WIRE_ALL_RANKS, 0, on_output, NULL, &err);
    (void)!client_take_end(&job, &err);
    close_fd(&pair[1]);
    return job;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct fuzz_in in = {data, data + n};
    struct client_job job[3], picked;
    struct err err;
    for (unsigned i = 0; i < ARRAY_LEN(job); i++)
        job[i] = answering(&in);
    jobs = (struct client_jobs){.job = job, .n = ARRAY_LEN(job)};
    char *wanted = in_text(&in);
    int rc = client_pick(&jobs, wanted, &picked, &err);
    if (rc == 0)
        client_close(&picked);
    else
        must(err.text[0] != '\0', "an error without words");
    for (unsigned i = 0; i < ARRAY_LEN(job); i++)
        client_close(&job[i]);
    free(wanted);
    return 0;
}
