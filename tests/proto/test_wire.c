/* SPDX-License-Identifier: MIT */
/* proto/wire.[ch]: what is taken from a socket, whoever writes to it. */
#include "../../proto/wire.h"
#include "../harness.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static int ends[2];

static void open_ends(void)
{
    CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), ==, 0);
}

/* What wire_receive() says of n bytes. */
static int receive(const void *bytes, size_t n, union wire_packet *ret, struct err *err)
{
    CHECK_INT(send(ends[0], bytes, n, 0), ==, (ssize_t)n);
    return wire_receive(ends[1], ret, err);
}

TEST(every_kind_of_packet_arrives_as_it_was_sent)
{
    open_ends();
    for (unsigned kind = WIRE_REQUEST; kind < WIRE_KINDS_N; kind++) {
        union wire_packet packet, got;
        struct err err;
        memset(&packet, 0xff, sizeof packet);
        wire_begin(&packet, kind);
        if (kind == WIRE_REQUEST)
            packet.request.verb = WIRE_SIGNAL;
        CHECK_INT(wire_send(ends[0], &packet), ==, 0);
        CHECK_INT(wire_receive(ends[1], &got, &err), ==, 0);
        CHECK_INT(memcmp(&packet, &got, wire_size(kind)), ==, 0);
    }
}

TEST(nothing_yet_is_no_error_and_a_closed_end_is_told)
{
    union wire_packet got;
    struct err err = {0};
    open_ends();
    CHECK_INT(wire_receive(ends[1], &got, &err), ==, -EAGAIN);
    CHECK_INT(err.code, ==, 0);
    close(ends[0]);
    CHECK_INT(wire_receive(ends[1], &got, &err), ==, -EPIPE);
}

TEST(another_version_is_named_whatever_the_size_of_its_packets)
{
    union wire_packet packet, got;
    struct err err;
    open_ends();
    wire_begin(&packet, WIRE_END);
    packet.head.version = WIRE_VERSION + 6;
    for (size_t n = sizeof packet.head; n < sizeof packet.end; n += 50) {
        CHECK_INT(receive(&packet, n, &got, &err), ==, -EPROTO);
        CHECK_HAS(err.text, "version 7 of the control protocol");
    }
}

TEST(a_packet_of_any_other_length_is_refused)
{
    open_ends();
    for (unsigned kind = 0; kind < WIRE_KINDS_N + 2; kind++)
        for (size_t n = 1; n < sizeof(union wire_packet) + 200; n += n < 600 ? 1 : 97) {
            static char bytes[sizeof(union wire_packet) + 200];
            union wire_packet got;
            struct err err;
            struct wire_head head = {WIRE_MAGIC, WIRE_VERSION, (uint16_t)kind};
            memcpy(bytes, &head, sizeof head);
            if (n != wire_size(kind))
                CHECK_INT(receive(bytes, n, &got, &err), ==, -EPROTO);
        }
}

TEST(requests_that_ask_for_nothing_known_are_refused)
{
    static const struct {
        uint32_t verb;
        int32_t rank;
    } wrong[] = {
        {0, 0}, {WIRE_VERBS_N, 0}, {UINT32_MAX, 0}, {WIRE_STOP, -2}, {WIRE_STOP, INT32_MIN}};
    open_ends();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        union wire_packet packet, got;
        struct err err;
        wire_begin(&packet, WIRE_REQUEST);
        packet.request.verb = wrong[i].verb;
        packet.request.rank = wrong[i].rank;
        CHECK_INT(receive(&packet, sizeof packet.request, &got, &err), ==, -EPROTO);
    }
}

TEST(after_any_bytes_texts_end_and_counts_are_in_range)
{
    open_ends();
    srand(1);
    for (int round = 0; round < 3000; round++) {
        union wire_packet packet, got;
        struct err err;
        unsigned kind = 1 + (unsigned)round % (WIRE_KINDS_N - 1);
        for (size_t i = 0; i < sizeof packet; i++)
            ((unsigned char *)&packet)[i] = round % 3 ? (unsigned char)(rand() | 1) : 0xff;
        packet.head = (struct wire_head){WIRE_MAGIC, WIRE_VERSION, (uint16_t)kind};
        if (receive(&packet, wire_size(kind), &got, &err) < 0)
            continue;
        if (kind == WIRE_OUTPUT)
            CHECK_INT(got.output.n, <=, WIRE_OUTPUT_BYTES);
        if (kind == WIRE_JOB)
            CHECK(strlen(got.job.state) < sizeof got.job.state &&
                  strlen(got.job.run_id) < sizeof got.job.run_id &&
                  strlen(got.job.name) < sizeof got.job.name &&
                  strlen(got.job.program) < sizeof got.job.program &&
                  strlen(got.job.gpus) < sizeof got.job.gpus &&
                  strlen(got.job.log_dir) < sizeof got.job.log_dir);
        if (kind == WIRE_RANK)
            CHECK(strlen(got.rank.end) < sizeof got.rank.end &&
                  strlen(got.rank.gpu) < sizeof got.rank.gpu &&
                  strlen(got.rank.line) < sizeof got.rank.line);
        if (kind == WIRE_END)
            CHECK(strlen(got.end.text) < sizeof got.end.text);
    }
}

TEST(an_empty_packet_holds_nothing_of_our_memory)
{
    for (unsigned kind = WIRE_REQUEST; kind < WIRE_KINDS_N; kind++) {
        union wire_packet packet;
        memset(&packet, 0xab, sizeof packet);
        wire_begin(&packet, kind);
        for (size_t i = sizeof packet.head; i < wire_size(kind); i++)
            CHECK_INT(((unsigned char *)&packet)[i], ==, 0);
    }
}
