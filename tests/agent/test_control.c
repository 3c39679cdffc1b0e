/* SPDX-License-Identifier: MIT */
/* agent/control.c: the job's end of a control socket, and what no client may do to it. */
#include "control_rig.h"

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

TEST(descriptors_that_come_with_a_request_are_not_taken)
{
    int code;
    union wire_packet packet;
    start_job();
    int fd = dial();
    ask(fd, WIRE_DESCRIBE, WIRE_ALL_RANKS);
    CHECK_INT(hear_all(fd, &code), ==, 1); /* from now on nothing more is opened */
    unsigned before = open_files();
    wire_begin(&packet, WIRE_REQUEST);
    packet.request.verb = WIRE_DESCRIBE;
    packet.request.rank = WIRE_ALL_RANKS;
    send_descriptors(fd, &packet);
    CHECK_INT(hear_all(fd, &code), ==, 1);
    CHECK_INT(open_files(), ==, before);
    close(fd);
    end_job(0);
}
