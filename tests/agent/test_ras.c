/* SPDX-License-Identifier: MIT */
#include "../../agent/doctor/ras.h"
#include "../harness.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct ras r;

static void read_answer(const char *text)
{
    ras_finish(&r);
    ras_read(&r, strdup(text), strlen(text));
}

static void check_note(uint32_t i, const char *want)
{
    char text[200];
    CHECK_INT(i, <, r.notes_n);
    ras_describe(&r.notes[i], text, sizeof text);
    CHECK_STR(text, want);
}

#define HEAD(version)                                                                              \
    "SERVER PROTOCOL 2\nOK\nERROR: Unknown command SET FORMAT json\nNCCL version " version         \
    " compiled with CUDA 12.6\nCUDA runtime version 12060, driver version 12060\n\nJob "           \
    "summary\n===========\n\n  Nodes  Processes         GPUs  Processes     GPUs\n(total)   per "  \
    "node  per process    (total)  (total)\n      1          4            1          4        "    \
    "4\n\nCommunicators... (0.00s)\n=============\n\nGroup     Comms     Nodes     Ranks     "     \
    "Ranks     Ranks    Status  Errors\n    #  in group  per comm  per node  per comm  in group\n"

#define TAIL "\nErrors\n======\n\nWarnings\n========\n\n"

TEST(an_answer_of_2_24_names_the_rank_behind)
{
    read_answer(
        HEAD("2.24.3") "    0         1         1         4         4         4   RUNNING  "
                       "MISMATCH\n" TAIL "#0-0 (27a079b828ff1a75) MISMATCH\n"
                       "  Communicator ranks have different collective operation counts\n"
                       "  3 ranks have launched up to operation 6650\n"
                       "  Rank 2 has launched up to operation 6649 -- GPU 2 managed by process "
                       "483074 on node 127.0.0.1\n\n");
    CHECK(r.understood);
    CHECK_STR(r.version, "2.24.3");
    CHECK_INT(r.comms, ==, 1);
    CHECK_INT(r.notes_n, ==, 1);
    CHECK_INT(r.notes[0].rank, ==, 2);
    CHECK_INT(r.notes[0].pid, ==, 483074);
    check_note(0, "collective of communicator 27a079b828ff1a75: launched 6649, others 6650");
}

TEST(an_answer_of_2_26_tells_operations_apart_and_lists_members)
{
    read_answer(
        HEAD("2.26.2") "    0         1         1         8         8         8   RUNNING  "
                       "MISMATCH\n" TAIL "#0-0 (fa93) MISMATCH\n"
                       "  Communicator ranks have different AllGather operation counts\n"
                       "  6 ranks have launched up to operation 641\n"
                       "  2 ranks have not launched any operations\n"
                       "  Rank 4 -- GPU 4 managed by process 104 on node 127.0.0.1\n"
                       "  Rank 5 -- GPU 5 managed by process 105 on node 127.0.0.1\n\n"
                       "  Communicator ranks have different AllReduce operation counts\n"
                       "  Rank 7 has launched up to operation 9 -- [process information not "
                       "found]\n  7 ranks have launched up to operation 8\n\n");
    CHECK_INT(r.notes_n, ==, 3);
    CHECK_INT(r.notes[0].pid, ==, 104);
    CHECK_INT(r.notes[1].rank, ==, 5);
    check_note(1, "AllGather of communicator fa93: launched 0, others 641");
    /* The many are behind, and not listed one by one. */
    CHECK_INT(r.notes[2].ranks, ==, 7);
    check_note(2, "AllReduce of communicator fa93: launched 8, others 9");
}

TEST(an_answer_names_processes_that_do_not_reply_or_are_dead)
{
    read_answer(
        HEAD("2.27.7") "    0         1         1       3-4         4         4   RUNNING  "
                       "INCOMPLETE\n\nErrors\n======\n\nINCOMPLETE\n"
                       "  Missing communicator data from 1 job process\n"
                       "  Process 3487984 on node 127.0.0.1 managing GPU 5\n\nDEAD\n"
                       "  1 job process is considered dead (unreachable via the RAS network)\n"
                       "  Process 12 on node 127.0.0.1 managing GPU 1\n\n"
                       "#0-0 (cf26) INCOMPLETE\n  Missing communicator data from 1 rank\n"
                       "  The missing rank: 21\n\nWarnings\n========\n\nTIMEOUT\n"
                       "  Encountered 2 communication timeouts while gathering data\n\n");
    CHECK(r.understood);
    CHECK_INT(r.notes_n, ==, 2);
    CHECK_INT(r.notes[0].kind, ==, RAS_SILENT);
    CHECK_INT(r.notes[0].pid, ==, 3487984);
    CHECK_INT(r.notes[1].kind, ==, RAS_DEAD);
    CHECK_INT(r.notes[1].pid, ==, 12);
}

TEST(an_answer_without_trouble_has_no_notes)
{
    read_answer(
        HEAD("2.28.3") "    0         8         4         1         4        32   RUNNING      "
                       "OK\n" TAIL);
    CHECK(r.understood);
    CHECK_INT(r.notes_n, ==, 0);
    read_answer("SERVER PROTOCOL 2\nOK\nNCCL version 2.27.7 compiled\nCommunicators... (0.0s)\n"
                "=============\n\nNo communicator data collected!\n");
    CHECK(r.understood);
    CHECK_INT(r.comms, ==, 0);
}

#define RANK(n, pid, state, reduce)                                                                \
    "{\"rank\": " #n ", \"host\": \"127.0.0.1\", \"pid\": " #pid                                   \
    ", \"cuda_dev\": 0, \"status\": {\"init_state\": " #state ", \"async_error\": 0, "             \
    "\"abort_flag\": false}, \"collective_counts\": {\"Broadcast\": 1, \"AllReduce\": " #reduce    \
    "}}"
#define JSON_HEAD                                                                                  \
    "SERVER PROTOCOL 2\nOK\nOK\n{\n  \"nccl_version\": \"2.28.9\",\n  \"communicators_count\": "   \
    "1,\n  \"communicators\": [{\"hash\": \"0xae94\", \"size\": 4, \"ranks\": ["

TEST(json_of_2_28_tells_counts_states_and_missing_ranks)
{
    read_answer(JSON_HEAD RANK(0, 100, 0, 5) ",\n" RANK(1, 101, 0, 4) ", " RANK(
        2, 102, 7, 5) "], \"missing_ranks\": [{\"rank\": 3, \"pid\": 103, \"status\": "
                      "{\"unresponsive\": true, \"considered_dead\": false}}]}], \"ras\": {}}\n");
    CHECK(r.understood);
    CHECK_STR(r.version, "2.28.9");
    CHECK_INT(r.comms, ==, 1);
    CHECK_INT(r.operations, ==, 17);
    CHECK_INT(r.notes_n, ==, 3);
    check_note(0, "does not answer NCCL of communicator 0xae94: stopped, or gone");
    CHECK_INT(r.notes[0].pid, ==, 103);
    check_note(1, "still inside the initialisation of communicator 0xae94");
    check_note(2, "AllReduce of communicator 0xae94: launched 4, others 5");
    CHECK_INT(r.notes[2].rank, ==, 1);
    CHECK_INT(r.notes[2].pid, ==, 101);
}

TEST(hostile_answers_are_not_understood_or_do_no_harm)
{
    static const char *const EVIL[] = {
        "",
        "\n",
        "hello",
        "{",
        "{}",
        "{\"communicators\": 7}",
        "\n{\"communicators\": [7, {}, {\"ranks\": 3}, {\"ranks\": [1, [], {\"status\": 1}]}]}",
        "{\"communicators\": [{\"hash\": \"\\u001b[2J\", \"ranks\": [{\"rank\": -1, \"pid\": 1e9, "
        "\"status\": {\"init_state\": 99999999999999999999}, \"collective_counts\": "
        "{\"AllReduce\": 1}}, {\"collective_counts\": {\"AllReduce\": 9223372036854775807}}]}]}",
        "#\n#(\n#0-0 (\n  Communicator ranks have different ",
        "#0-0 (a) M\n  Communicator ranks have different X operation counts\n"
        "  Rank 1 -- GPU\n  99999999999 ranks have launched up to operation 99999999999999999999\n"
        "  Rank 99999999999 has launched up to operation 3\n",
        "INCOMPLETE\n  Process -5 on\n  Process x\nDEAD\n  Process 99999999999\n",
    };
    for (size_t i = 0; i < sizeof EVIL / sizeof *EVIL; i++) {
        read_answer(EVIL[i]);
        for (uint32_t k = 0; k < r.notes_n; k++) {
            char text[200];
            ras_describe(&r.notes[k], text, sizeof text);
            CHECK(!strchr(text, '\x1b'));
        }
    }
    /* More notes than are kept, in both forms. */
    static char many[200000];
    char *at = many + sprintf(many, JSON_HEAD);
    for (int i = 0; i < 300; i++)
        at += sprintf(at, RANK(1, 1, 7, 1) ",");
    sprintf(at, RANK(2, 2, 0, 2) "]}]}");
    read_answer(many);
    CHECK(r.understood);
    CHECK_INT(r.notes_n, ==, RAS_NOTES_MAX);
    at = many + sprintf(many, "#0-0 (a) MISMATCH\n");
    for (int i = 0; i < 300; i++)
        at += sprintf(at,
                      "  Communicator ranks have different X%d operation counts\n  2 ranks have "
                      "launched up to operation 4\n  Rank 1 has launched up to operation %d\n",
                      i, i % 9);
    read_answer(many);
    CHECK_INT(r.notes_n, <=, RAS_NOTES_MAX);
}

/* ---- the socket ---- */

static int listen_here(char address[32])
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof to;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_INT(bind(fd, (struct sockaddr *)&to, sizeof to), ==, 0);
    CHECK_INT(getsockname(fd, (struct sockaddr *)&to, &n), ==, 0);
    snprintf(address, 32, "127.0.0.1:%d", ntohs(to.sin_port));
    return fd;
}

static char asked[200];

static void *serve(void *arg)
{
    static const char answer[] = JSON_HEAD RANK(0, 1, 0, 5) "]}]}";
    int fd = accept(*(int *)arg, NULL, NULL);
    ssize_t n = 0;
    while (n >= 0 && !strstr(asked, "STATUS\n") && (size_t)n < sizeof asked - 1)
        n += read(fd, asked + n, sizeof asked - 1 - (size_t)n);
    for (size_t i = 0; i < sizeof answer - 1; i += 100)
        if (write(fd, answer + i, sizeof answer - 1 - i < 100 ? sizeof answer - 1 - i : 100) < 0)
            break;
    close(fd);
    return NULL;
}

TEST(ras_is_asked_for_json_and_read_to_its_end)
{
    char address[32];
    struct err err;
    pthread_t thread;
    int fd = listen_here(address);
    CHECK_INT(listen(fd, 1), ==, 0);
    CHECK_INT(pthread_create(&thread, NULL, serve, &fd), ==, 0);
    CHECK_INT(ras_ask(&r, address, 20000, &err), ==, 0);
    pthread_join(thread, NULL);
    CHECK(r.understood);
    CHECK_STR(asked, "CLIENT PROTOCOL 2\nTIMEOUT 2\nSET FORMAT json\nVERBOSE STATUS\n");
    ras_finish(&r);
}

TEST(silence_refusal_and_names_are_told_in_one_line)
{
    char address[32];
    struct err err;
    int fd = listen_here(address);
    CHECK_INT(ras_ask(&r, address, 1000, &err), ==, -ECONNREFUSED);
    CHECK_HAS(err.text, address);
    CHECK_INT(listen(fd, 1), ==, 0); /* nobody accepts */
    CHECK_INT(ras_ask(&r, address, 50, &err), ==, -ETIMEDOUT);
    CHECK_HAS(err.text, "no answer within");
    static const char *const BAD[] = {
        "",       ":",           "127.0.0.1", "gpu7.example.org:28028",
        ":28028", "127.0.0.1:x", "[::1:5",    "1.2.3:999999999999"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++)
        CHECK_INT(ras_ask(&r, BAD[i], 50, &err), <, 0);
    CHECK_INT(ras_ask(&r, "gpu7.example.org:28028", 50, &err), ==, -EINVAL);
    ras_finish(&r);
}
