/* SPDX-License-Identifier: MIT */
/* The relay as it is without routes: lines, turns, slow readers, ends. */
#include "relay_rig.h"

#include "../../agent/pipe.h"

#include <sys/wait.h>

/* ---- whole lines ---- */

/* Rank r writes lines of its own letter; a line with two letters is torn. Returns the bytes. */
static char *lines_of(unsigned rank, unsigned lines, size_t longest, size_t *ret_n)
{
    unsigned seed = 7 + rank;
    char *text = malloc(lines * (longest + 1));
    size_t n = 0;
    for (unsigned i = 0; i < lines; i++) {
        size_t length = (size_t)rand_r(&seed) % longest;
        length = rand_r(&seed) % 8 ? length % 120 : length;
        memset(text + n, 'a' + (int)((rank + i % 3 * 8) % 26), length);
        n += length;
        text[n++] = '\n';
    }
    *ret_n = n;
    return text;
}

/* A child writes all texts in random pieces, ranks in random order, and exits. */
static pid_t write_in_pieces(char *const text[], const size_t n[])
{
    pid_t pid = fork();
    if (pid)
        return pid;
    size_t at[RANKS] = {0};
    unsigned seed = 99, left = RANKS;
    while (left) {
        unsigned r = (unsigned)rand_r(&seed) % RANKS;
        if (at[r] == n[r])
            continue;
        size_t piece = 1 + (size_t)rand_r(&seed) % (rand_r(&seed) % 4 ? 200 : 9000);
        piece = piece < n[r] - at[r] ? piece : n[r] - at[r];
        if (write(rig.in[r][RELAY_STDOUT], text[r] + at[r], piece) != (ssize_t)piece)
            _exit(1);
        at[r] += piece;
        left -= at[r] == n[r];
    }
    _exit(0);
}

TEST(lines_of_eight_ranks_are_never_torn_lost_or_reordered)
{
    char *text[RANKS], *back[RANKS];
    size_t n[RANKS], at[RANKS] = {0}, total = 0;
    setup();
    for (unsigned r = 0; r < RANKS; r++) {
        add(r, RELAY_STDOUT);
        text[r] = lines_of(r, 1000, 9000, &n[r]);
        back[r] = malloc(n[r]);
        total += n[r];
    }
    pid_t pid = write_in_pieces(text, n);
    until_got(total);
    int status;
    CHECK_INT(waitpid(pid, &status, 0), ==, pid);
    CHECK_INT(status, ==, 0);
    for (char *line = rig.got, *end; line < rig.got + total; line = end + 1) {
        end = strchr(line, '\n');
        CHECK(end);
        for (char *c = line; c < end; c++)
            CHECK_INT(*c, ==, *line);
        if (end == line)
            continue; /* an empty line is anybody's */
        unsigned r = (unsigned)(*line - 'a') % 8;
        CHECK(at[r] + (size_t)(end - line) + 1 <= n[r]);
        while (text[r][at[r]] == '\n')
            back[r][at[r]] = '\n', at[r]++;
        memcpy(back[r] + at[r], line, (size_t)(end - line) + 1);
        at[r] += (size_t)(end - line) + 1;
    }
    for (unsigned r = 0; r < RANKS; r++) {
        CHECK(memcmp(back[r], text[r], at[r]) == 0);
        free(text[r]);
        free(back[r]);
    }
    CHECK_INT(rig.n_got, ==, total);
    teardown();
}

TEST(every_byte_value_passes_unchanged)
{
    char bytes[256];
    setup();
    int fd = add(0, RELAY_STDOUT);
    for (int i = 0; i < 256; i++)
        bytes[i] = (char)(i + 11); /* ends with \n */
    CHECK_INT(write(fd, bytes, 256), ==, 256);
    until_got(256);
    CHECK_INT(rig.n_got, ==, 256);
    CHECK(memcmp(rig.got, bytes, 256) == 0);
    teardown();
}

TEST(halves_of_lines_wait_for_their_other_half)
{
    setup();
    int a = add(0, RELAY_STDOUT), b = add(1, RELAY_STDOUT);
    say(a, "a1");
    settle();
    say(b, "b1");
    settle();
    say(a, "a2\n");
    settle();
    say(b, "b2\nb3\nb4");
    until_got(13);
    CHECK(memcmp(rig.got, "a1a2\nb1b2\nb3\n", 13) == 0); /* b4 may be shown already */
    teardown();
}

TEST(an_unfinished_last_line_is_shown_and_not_glued_to_the_next_one)
{
    setup();
    int a = add(0, RELAY_STDOUT), b = add(1, RELAY_STDOUT);
    say(a, "end of a");
    close_fd(&rig.in[0][RELAY_STDOUT]);
    until_got(8);
    CHECK_STR(rig.got, "end of a");
    say(b, "b\n");
    until_got(11);
    CHECK_STR(rig.got, "end of a\nb\n");
    (void)a;
    teardown();
}

/* ---- unfinished lines ---- */

TEST(a_prompt_is_shown_after_a_silence_and_then_owns_the_outlet)
{
    setup();
    int a = add(0, RELAY_STDOUT), b = add(1, RELAY_STDERR);
    say(a, "name? ");
    until_got(6);
    say(b, "other\n");
    settle();
    CHECK_STR(rig.got, "name? ");
    say(a, "bob\n");
    until_got(16);
    CHECK_STR(rig.got, "name? bob\nother\n");
    teardown();
}

TEST(a_silent_owner_is_cut_after_the_hold)
{
    setup();
    int a = add(0, RELAY_STDOUT), b = add(1, RELAY_STDOUT);
    say(a, "half");
    until_got(4);
    say(b, "other\n");
    until_got(11);
    CHECK_STR(rig.got, "half\nother\n");
    say(a, " rest\n");
    until_got(17);
    CHECK_STR(rig.got, "half\nother\n rest\n");
    teardown();
}

TEST(a_progress_bar_gives_way_at_once)
{
    setup();
    int a = add(0, RELAY_STDOUT), b = add(1, RELAY_STDOUT);
    say(a, "\r10%");
    until_got(4);
    say(b, "other\n");
    settle();
    CHECK_STR(rig.got, "\r10%\nother\n");
    say(a, "\r20%");
    until_got(15);
    say(a, "\r30%"); /* the bar is on the outlet: it moves without delay */
    settle();
    CHECK_STR(rig.got, "\r10%\nother\n\r20%\r30%");
    teardown();
}

TEST(an_endless_line_keeps_the_outlet_until_it_ends)
{
    const size_t n = 3 * RELAY_LINE_MAX;
    setup();
    int a = add(0, RELAY_STDOUT), b = add(1, RELAY_STDOUT);
    pid_t pid = fork();
    if (pid == 0) {
        char block[4096];
        memset(block, '\r', sizeof block);
        for (size_t i = 0; i < n / sizeof block; i++)
            if (write(a, block, sizeof block) < 0)
                _exit(1);
        _exit(write(a, "\n", 1) != 1);
    }
    until_got(RELAY_LINE_MAX);
    say(b, "b\n");
    until_got(n + 3);
    CHECK_INT(rig.got[n], ==, '\n');
    CHECK_STR(rig.got + n, "\nb\n");
    CHECK_INT(waitpid(pid, NULL, 0), ==, pid);
    teardown();
}

/* ---- idle ---- */

TEST(no_timer_runs_when_nothing_is_pending)
{
    setup();
    int a = add(0, RELAY_STDOUT);
    add(1, RELAY_STDERR);
    settle();
    CHECK_INT(uv_backend_timeout(&rig.loop), ==, -1);
    say(a, "x");
    settle();
    say(a, "y\n");
    settle();
    CHECK_INT(uv_backend_timeout(&rig.loop), ==, -1);
    CHECK_STR(rig.got, "xy\n");
    teardown();
}

TEST(without_streams_the_loop_is_not_kept_alive)
{
    CHECK_INT(pipe2(rig.out, O_CLOEXEC), ==, 0);
    open_relay(rig.out[1], rig.out[1]);
    add(0, RELAY_STDOUT);
    CHECK(uv_loop_alive(&rig.loop));
    close_fd(&rig.in[0][RELAY_STDOUT]);
    relay_rank_drain(rig.relay, 0, 60000);
    uv_run(&rig.loop, UV_RUN_DEFAULT);
    CHECK_INT(rig.n_ended, ==, 1);
    CHECK(!uv_loop_alive(&rig.loop));
    teardown();
}

/* ---- a slow reader, and none ---- */

/* Writes to a worker's pipe until it is full and the loop does not empty it any more. */
static size_t stuff(int fd)
{
    static char block[4096];
    size_t total = 0;
    memset(block, 'x', sizeof block);
    block[sizeof block - 1] = '\n';
    fcntl(fd, F_SETFL, O_NONBLOCK);
    for (int idle = 0; idle < 3;) {
        ssize_t n = write(fd, block, sizeof block);
        idle = n > 0 ? 0 : idle + 1;
        total += n > 0 ? (size_t)n : 0;
        settle();
    }
    return total;
}

TEST(a_blocked_reader_bounds_what_is_read_and_holds_up_nothing_else)
{
    CHECK_INT(pipe2(rig.out, O_CLOEXEC), ==, 0);
    open_relay(rig.out[1], rig.out[1]);
    size_t total = 0;
    for (unsigned r = 0; r < 4; r++) {
        add(r, RELAY_STDOUT);
        total += stuff(rig.in[r][RELAY_STDOUT]);
    }
    /* outlet's pipe, four pipes, and one chunk that a short write left */
    CHECK_INT(total, <=, 4 * 65536 + fcntl(rig.out[1], F_GETPIPE_SZ) + 2 * RELAY_CHUNK_BYTES);
    relay_rank_drain(rig.relay, 7, 0);
    until_ended(1);
    CHECK_INT(uv_backend_timeout(&rig.loop), ==, -1);
    start_reading();
    until_got(total);
    CHECK_INT(rig.n_got, ==, total);
    CHECK_INT(relay_dropped(rig.relay), ==, 0);
    teardown();
}

TEST(every_stream_gets_its_turn_at_a_slow_reader)
{
    CHECK_INT(pipe2(rig.out, O_CLOEXEC), ==, 0);
    open_relay(rig.out[1], rig.out[1]);
    fcntl(rig.out[0], F_SETPIPE_SZ, 4096);
    char line[] = "0\n";
    pid_t pids[RANKS];
    for (unsigned r = 0; r < RANKS; r++) {
        int fd = add(r, RELAY_STDOUT);
        line[0] = (char)('0' + r);
        if ((pids[r] = fork()) == 0)
            for (;;)
                if (write(fd, line, 2) < 0)
                    _exit(0);
    }
    start_reading();
    until_got(600000);
    size_t count[RANKS] = {0};
    for (size_t i = 0; i < rig.n_got; i += 2)
        count[rig.got[i] - '0']++;
    for (unsigned r = 0; r < RANKS; r++) {
        kill(pids[r], SIGKILL);
        waitpid(pids[r], NULL, 0);
    }
    for (unsigned r = 0; r < RANKS; r++)
        CHECK_INT(count[r], >, 10000);
    teardown();
}

TEST(a_reader_that_left_is_reported_once_and_output_is_dropped)
{
    CHECK_INT(pipe2(rig.out, O_CLOEXEC), ==, 0);
    open_relay(rig.out[1], rig.out[1]);
    int a = add(0, RELAY_STDOUT);
    close_fd(&rig.out[0]);
    say(a, "one\n");
    while (!rig.gone[RELAY_STDERR])
        uv_run(&rig.loop, UV_RUN_ONCE);
    for (int i = 0; i < 200; i++) {
        say(a, "a longer line, many times\n");
        settle();
    }
    CHECK_INT(rig.gone[RELAY_STDOUT], ==, 1);
    CHECK_INT(rig.gone[RELAY_STDERR], ==, 1);
    CHECK_INT(relay_dropped(rig.relay), ==, 4 + 200 * 26);
    CHECK_INT(uv_backend_timeout(&rig.loop), ==, -1);
    teardown();
}

TEST(a_reader_that_leaves_while_it_is_waited_for_is_noticed)
{
    CHECK_INT(pipe2(rig.out, O_CLOEXEC), ==, 0);
    open_relay(rig.out[1], rig.out[1]);
    stuff(add(0, RELAY_STDOUT));
    close_fd(&rig.out[0]);
    while (!rig.gone[RELAY_STDOUT])
        uv_run(&rig.loop, UV_RUN_ONCE);
    teardown();
}

/* ---- ends ---- */

TEST(a_drain_reads_to_the_end_and_ends_once)
{
    setup();
    int a = add(0, RELAY_STDOUT), b = add(0, RELAY_STDERR);
    say(a, "out\n");
    say(b, "err");
    close_fd(&rig.in[0][RELAY_STDOUT]);
    close_fd(&rig.in[0][RELAY_STDERR]);
    relay_rank_drain(rig.relay, 0, 60000);
    CHECK_INT(rig.n_ended, ==, 0);
    until_ended(1);
    until_got(7);
    settle();
    CHECK_INT(rig.ended[0], ==, 1);
    CHECK_HAS(rig.got, "out\n");
    CHECK_HAS(rig.got, "err");
    teardown();
}

TEST(a_pipe_that_a_grandchild_holds_open_is_left_after_the_limit)
{
    setup();
    int a = add(0, RELAY_STDOUT);
    relay_rank_drain(rig.relay, 0, 30);
    say(a, "done");
    until_ended(1);
    until_got(4);
    CHECK_STR(rig.got, "done");
    CHECK_INT(write(a, "x", 1), ==, -1); /* nobody reads it any more */
    add(0, RELAY_STDERR);                /* the next attempt may begin */
    teardown();
}

TEST(a_drain_with_a_blocked_reader_keeps_the_last_words_for_the_flush)
{
    CHECK_INT(pipe2(rig.out, O_CLOEXEC), ==, 0);
    open_relay(rig.out[1], rig.out[1]);
    size_t total = stuff(add(0, RELAY_STDOUT));
    int b = add(1, RELAY_STDOUT);
    say(b, "last words");
    relay_rank_drain(rig.relay, 0, 1);
    relay_rank_drain(rig.relay, 1, 1);
    until_ended(2);
    pid_t pid = fork();
    if (pid == 0) {
        char buffer[4096], last[10] = "";
        ssize_t n;
        size_t got = 0;
        close(rig.out[1]);
        for (; got < total + 10 && (n = read(rig.out[0], buffer, sizeof buffer)) > 0;
             got += (size_t)n)
            if (n >= 10)
                memcpy(last, buffer + n - 10, 10);
        _exit(got == total + 10 && memcmp(last, "last words", 10) == 0 ? 0 : 1);
    }
    relay_flush(rig.relay, 9000);
    int status;
    CHECK_INT(waitpid(pid, &status, 0), ==, pid);
    CHECK_INT(status, ==, 0);
    CHECK_INT(relay_dropped(rig.relay), ==, 0);
    teardown();
}

TEST(a_flush_that_finds_no_reader_counts_what_it_drops)
{
    CHECK_INT(pipe2(rig.out, O_CLOEXEC), ==, 0);
    open_relay(rig.out[1], rig.out[1]);
    size_t total = stuff(add(0, RELAY_STDOUT));
    relay_rank_drain(rig.relay, 0, 0);
    until_ended(1);
    relay_flush(rig.relay, 0);
    CHECK_INT(relay_dropped(rig.relay), ==, total - (size_t)fcntl(rig.out[1], F_GETPIPE_SZ));
    teardown();
}

TEST(a_relay_can_be_destroyed_with_everything_pending)
{
    CHECK_INT(pipe2(rig.out, O_CLOEXEC), ==, 0);
    open_relay(rig.out[1], rig.out[1]);
    for (unsigned r = 0; r < RANKS; r++) {
        stuff(add(r, RELAY_STDOUT));
        say(add(r, RELAY_STDERR), "unfinished");
    }
    relay_rank_drain(rig.relay, 0, 0);
    relay_rank_drain(rig.relay, 1, 60000);
    settle();
    teardown();
    relay_destroy(NULL);
}

static void destroy_on_end(void *user, unsigned rank)
{
    (void)rank;
    relay_destroy(*(struct relay **)user);
}

TEST(a_relay_can_be_destroyed_from_its_own_callback)
{
    const struct relay_callbacks callbacks = {destroy_on_end, NULL, &rig.relay};
    uv_loop_init(&rig.loop);
    CHECK_INT(relay_create(&rig.relay, &rig.loop, RANKS, 1, 2, &callbacks, NULL), ==, 0);
    relay_rank_drain(rig.relay, 0, 0);
    relay_rank_drain(rig.relay, 1, 0);
    uv_run(&rig.loop, UV_RUN_DEFAULT);
    CHECK_INT(uv_loop_close(&rig.loop), ==, 0);
}

TEST(a_stream_has_one_place)
{
    struct err err;
    setup();
    add(0, RELAY_STDOUT);
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK_INT(relay_add(rig.relay, 0, RELAY_STDOUT, fd, NULL, &err), ==, -EINVAL);
    CHECK_INT(fcntl(fd, F_GETFD), ==, -1); /* taken all the same */
    fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK_INT(relay_add(rig.relay, RANKS, RELAY_STDOUT, fd, NULL, &err), ==, -EINVAL);
    teardown();
}

/* ---- the tail ---- */

TEST(the_tail_holds_the_end_of_stderr_from_a_line_start)
{
    size_t n;
    setup();
    int a = add(0, RELAY_STDERR);
    CHECK_INT((relay_tail(rig.relay, 0, &n), n), ==, 0);
    say(add(0, RELAY_STDOUT), "not this\n");
    for (int i = 0; i < 1000; i++) {
        char line[32];
        snprintf(line, sizeof line, "line %d\n", i);
        say(a, line);
        if (i == 3) {
            until_got(9 + 4 * 7);
            const char *early = relay_tail(rig.relay, 0, &n);
            CHECK_INT(n, ==, 28);
            CHECK(memcmp(early, "line 0\nline 1\n", 14) == 0);
        }
    }
    until_got(9 + 10 * 7 + 90 * 8 + 900 * 9);
    const char *tail = relay_tail(rig.relay, 0, &n);
    CHECK_INT(n, <=, RELAY_TAIL_BYTES);
    CHECK_INT(n, >, RELAY_TAIL_BYTES - 10);
    CHECK(memcmp(tail, "line ", 5) == 0);
    CHECK(memcmp(tail + n - 9, "line 999\n", 9) == 0);
    close_fd(&rig.in[0][RELAY_STDERR]);
    close_fd(&rig.in[0][RELAY_STDOUT]);
    relay_rank_drain(rig.relay, 0, 60000);
    until_ended(1);
    CHECK_INT((relay_tail(rig.relay, 0, &n), n), >, 0); /* until the next attempt */
    add(0, RELAY_STDERR);
    CHECK_INT((relay_tail(rig.relay, 0, &n), n), ==, 0);
    teardown();
}

/* ---- two outlets ---- */

TEST(a_blocked_stdout_does_not_hold_up_stderr)
{
    int errors[2];
    char text[16] = "";
    CHECK_INT(pipe2(rig.out, O_CLOEXEC), ==, 0);
    CHECK_INT(pipe2(errors, O_CLOEXEC), ==, 0);
    open_relay(rig.out[1], errors[1]);
    stuff(add(0, RELAY_STDOUT));
    say(add(0, RELAY_STDERR), "help\n");
    settle();
    CHECK_INT(read(errors[0], text, sizeof text - 1), ==, 5);
    CHECK_STR(text, "help\n");
    teardown();
}

TEST(a_cut_reads_what_is_there_and_the_rank_may_have_new_pipes_at_once)
{
    setup();
    int a = add(0, RELAY_STDOUT);
    say(a, "of the old one\n");
    relay_rank_drain(rig.relay, 0, 60000);
    relay_rank_cut(rig.relay, 0);
    rig.in[0][RELAY_STDOUT] = -1;
    int b = add(0, RELAY_STDOUT);
    say(b, "of the new one\n");
    CHECK_INT(write(a, "too late", 8), ==, -1);
    close(a);
    settle();
    CHECK_STR(rig.got, "of the old one\nof the new one\n");
    CHECK_INT(rig.n_ended, ==, 0); /* neither did the rank end ... */
    close_fd(&rig.in[0][RELAY_STDOUT]);
    relay_rank_drain(rig.relay, 0, 60000);
    while (!rig.n_ended)
        uv_run(&rig.loop, UV_RUN_ONCE);
    CHECK_INT(rig.ended[0], ==, 1); /* ... until the new one did */
    teardown();
}

TEST(a_line_of_somebody_else_begins_where_a_line_begins)
{
    setup();
    int a = add(0, RELAY_STDOUT);
    relay_end_line(rig.relay); /* nothing stands there */
    say(a, "half");
    until_got(4);
    relay_end_line(rig.relay);
    relay_end_line(rig.relay); /* once is enough */
    until_got(5);
    say(a, " a line\n");
    until_got(13);
    relay_end_line(rig.relay); /* it is whole */
    settle();
    CHECK_STR(rig.got, "half\n a line\n");
    teardown();
}
