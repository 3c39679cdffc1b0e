/* SPDX-License-Identifier: MIT */
/* What is said on the control socket of a running job (SOCK_SEQPACKET, so that a packet is whole or not there): a client
 * sends a request, the job answers with packets of fixed size, the last of which is a wire_end. Both sides are programs of
 * one machine, perhaps of two releases: every packet begins with its version. Neither side believes the other: what
 * comes in has passed wire_check(). */
#ifndef LAUNCH_PROTO_WIRE_H
#define LAUNCH_PROTO_WIRE_H

#include "err.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define WIRE_MAGIC 0x4c4e4348u
#define WIRE_VERSION 1

#define WIRE_NEVER UINT64_MAX /* an age: it has not happened */
#define WIRE_ALL_RANKS (-1)
#define WIRE_ID_BYTES 64
#define WIRE_OUTPUT_BYTES 4096

/* Requests: number, name, what is answered before the wire_end. */
enum wire_verb {
    WIRE_DESCRIBE = 1, /* a wire_job */
    WIRE_LIST_RANKS, /* a wire_job, a wire_rank for each rank (or `rank`), and of all for each standby */
    WIRE_SHOW_OUTPUT, /* a wire_output for each rank (or `rank`) and stream: its last bytes */
    WIRE_STOP,        /* as SIGTERM to launch */
    WIRE_KILL,        /* as a second one */
    WIRE_RESTART,     /* all ranks again; `rank` is killed at once */
    WIRE_SIGNAL,      /* `number` to the workers, or to `rank` */
    WIRE_WAIT,        /* the wire_end comes when the job is over, with its exit code */
    WIRE_GROW,        /* ranks without which the job goes on, or `rank` of them, come back */
    WIRE_VERBS_N
};

enum wire_kind { WIRE_REQUEST = 1, WIRE_JOB, WIRE_RANK, WIRE_OUTPUT, WIRE_END, WIRE_KINDS_N };

struct wire_head {
    uint32_t magic;
    uint16_t version;
    uint16_t kind;
};

struct wire_request {
    struct wire_head head;
    uint32_t verb;
    int32_t rank; /* or WIRE_ALL_RANKS */
    int32_t number;
    uint32_t pad;
};

#define WIRE_JOB_PIPED 1u    /* workers' output passes through the agent: there are last lines */
#define WIRE_JOB_DETACHED 2u /* launch's own streams are console.log of the log directory */

struct wire_job {
    struct wire_head head;
    int32_t pid; /* of launch (the guard), in the job's own pid namespace */
    uint32_t world_size, alive;
    uint32_t restarts, max_restarts;
    uint32_t flags;
    uint32_t
        healings; /* ranks were replaced, or the job went on without them, while others kept their processes */
    uint32_t generation; /* grows with each restart, healing and growth */
    uint64_t age_ms;
    uint64_t state_age_ms;
    char state[16];
    char run_id[WIRE_ID_BYTES], name[WIRE_ID_BYTES]; /* name: "" if none was given */
    char program[128];
    char gpus[256];         /* as in CUDA_VISIBLE_DEVICES; "" for none */
    char log_dir[PATH_MAX]; /* "" for none */
};

struct wire_rank {
    struct wire_head head;
    uint32_t rank;
    int32_t pid;                     /* 0: it has none now */
    uint32_t stage;                  /* of a standby: STAGE_JOINED once it is warm */
    uint32_t standby;                /* 1: not a rank but standby number `rank` */
    uint64_t age_ms, cpu_ms, rss_kb; /* of the process */
    uint64_t step;
    uint64_t entered, finished; /* collectives of liblaunch, in this generation */
    uint64_t output_age_ms;     /* WIRE_NEVER: it has written nothing, or not through us */
    char end[64];               /* how it ended; "" while it lives */
    char gpu[80];               /* "" for none */
    char line[160];             /* the last one it wrote; may hold anything */
};

struct wire_output {
    struct wire_head head;
    uint32_t rank;
    uint32_t stream; /* 1 stdout, 2 stderr */
    uint32_t n;
    uint32_t pad;
    char text[WIRE_OUTPUT_BYTES]; /* raw bytes, n of them */
};

struct wire_end {
    struct wire_head head;
    int32_t code; /* 0, or negative errno and a text; WIRE_WAIT: the job's exit code */
    char text[ERR_TEXT_BYTES];
};

union wire_packet {
    struct wire_head head;
    struct wire_request request;
    struct wire_job job;
    struct wire_rank rank;
    struct wire_output output;
    struct wire_end end;
};

/* Bytes of a packet of that kind; 0: there is no such kind. */
size_t wire_size(unsigned kind);

/* An empty packet of that kind. */
void wire_begin(union wire_packet *packet, enum wire_kind kind);

/* What came in, n bytes: afterwards all texts end, and counts and enums are within their range. -EPROTO with one line: it is
 * none of ours, of another version, too short or too long. */
MUST_CHECK int wire_check(union wire_packet *packet, size_t n, struct err *err);

/* Sends a whole packet. 0, -EAGAIN (no room in a non-blocking socket) or another negative errno. No SIGPIPE. */
MUST_CHECK int wire_send(int fd, const union wire_packet *packet);

/* Receives and checks one. 0; -EAGAIN, without a text; -EPIPE: the other side has closed; -EPROTO as above. */
MUST_CHECK int wire_receive(int fd, union wire_packet *ret, struct err *err);

#endif
