/* SPDX-License-Identifier: MIT */
/* Routes of the relay: prefixes on the outlet, files, filters, hidden streams. */
#include "relay_rig.h"

#include "../../agent/pipe.h"

#include <stdlib.h>

static struct writer *writer;
static struct needles needles;
static int dir_fd;

static void on_room(void *user)
{
    (void)user;
    relay_files_ready(rig.relay);
}

static void on_trouble(void *user, const char *path, int error)
{
    (void)user;
    test_fail(__FILE__, __LINE__, "%s: %s", path, strerror(-error));
}

static struct prefix prefix_of(uint32_t rank)
{
    struct prefix prefix;
    struct err err;
    CHECK_INT(prefix_make(&prefix, NULL, "r", rank, &err), ==, 0);
    return prefix;
}

static int add_prefixed(unsigned rank)
{
    struct relay_route route = {.prefix = prefix_of(rank)};
    return add_route(rank, RELAY_STDOUT, &route);
}

static void setup_files(void)
{
    static const struct writer_callbacks callbacks = {on_room, on_trouble, NULL};
    struct err err;
    setup();
    CHECK_INT(writer_create(&writer, &rig.loop, &callbacks, &err), ==, 0);
    dir_fd = open(test_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void teardown_files(void)
{
    CHECK(writer_flush(writer, 10000));
    writer_destroy(writer);
    close_fd(&dir_fd);
    needles_finish(&needles);
    teardown();
}

static struct logfile *file(const char *name)
{
    struct logfile *f = logfile_create(writer, dir_fd, test_dir(), name, 0, 0);
    CHECK(f != NULL);
    return f;
}

/* What is in a file, terminated; static. */
static const char *content(const char *name, size_t *ret_n)
{
    static char text[1 << 20];
    CHECK(writer_flush(writer, 10000));
    int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, text, sizeof text - 1);
    CHECK_INT(n, >=, 0);
    close(fd);
    text[n] = '\0';
    if (ret_n)
        *ret_n = (size_t)n;
    return text;
}

static void end_rank(unsigned rank)
{
    unsigned before = rig.n_ended;
    for (int kind = 0; kind < RELAY_KINDS_N; kind++)
        close_fd(&rig.in[rank][kind]);
    relay_rank_drain(rig.relay, rank, 60000);
    until_ended(before + 1);
}

TEST(each_line_has_its_prefix_once)
{
    setup();
    int a = add_prefixed(0), b = add_prefixed(1);
    say(a, "one\ntwo");
    settle();
    say(b, "other\n");
    until_got(5 + 4 + 5 + 6);
    settle();
    say(a, " and more\n");
    until_got(5 + 4 + 5 + 6 + 5 + 13);
    CHECK_STR(rig.got, "[r0]:one\n[r1]:other\n[r0]:two and more\n");
    teardown();
}

TEST(the_rest_of_a_cut_line_has_the_prefix_again)
{
    setup();
    int a = add_prefixed(0), b = add_prefixed(1);
    say(a, "10%\r20%\r");
    until_got(13);    /* shown after a silence */
    say(b, "line\n"); /* a progress bar gives way */
    until_got(13 + 1 + 10);
    say(a, "30%\r");
    until_got(13 + 1 + 10 + 9);
    say(a, "done\n");
    until_got(13 + 1 + 10 + 9 + 5);
    say(a, "next\n");
    until_got(13 + 1 + 10 + 9 + 5 + 10);
    CHECK_STR(rig.got, "[r0]:10%\r20%\r\n[r1]:line\n[r0]:30%\rdone\n[r0]:next\n");
    teardown();
}

/* Forked: writes lines of random length as fast as it can. */
static pid_t write_lines(unsigned rank, int lines)
{
    pid_t pid = fork();
    if (pid)
        return pid;
    FILE *out = fdopen(rig.in[rank][RELAY_STDOUT], "w");
    unsigned seed = rank + 1;
    for (int i = 0; i < lines; i++) {
        fprintf(out, "%d:", i);
        for (int n = rand_r(&seed) % (i % 50 ? 150 : 5000); n > 0; n--)
            putc('a' + (int)rank, out);
        putc('\n', out);
    }
    fclose(out);
    _exit(0);
}

TEST(prefixed_lines_of_eight_ranks_are_never_torn_through_a_slow_reader)
{
    enum { LINES = 4000 };
    CHECK_INT(pipe2(rig.out, O_CLOEXEC), ==, 0);
    open_relay(rig.out[1], rig.out[1]);
    fcntl(rig.out[0], F_SETPIPE_SZ, 4096);
    for (unsigned r = 0; r < RANKS; r++) {
        add_prefixed(r);
        CHECK_INT(write_lines(r, LINES), >, 0);
        close_fd(&rig.in[r][RELAY_STDOUT]);
    }
    start_reading();
    for (unsigned r = 0; r < RANKS; r++)
        relay_rank_drain(rig.relay, r, 600000);
    until_ended(RANKS);
    settle();
    int next[RANKS] = {0};
    char *line = rig.got;
    for (char *end; (end = strchr(line, '\n')); line = end + 1) {
        unsigned rank;
        int number, used = 0;
        *end = '\0';
        CHECK_INT(sscanf(line, "[r%u]:%d:%n", &rank, &number, &used), ==, 2);
        CHECK(used > 0 && rank < RANKS);
        CHECK_INT(number, ==, next[rank]++);
        CHECK_INT(strspn(line + used, (char[]){(char)('a' + rank), '\0'}), ==, strlen(line + used));
    }
    CHECK_INT(*line, ==, '\0');
    for (unsigned r = 0; r < RANKS; r++)
        CHECK_INT(next[r], ==, LINES);
    teardown();
}

TEST(a_chunk_that_grows_by_its_prefixes_keeps_its_order_at_a_slow_reader)
{
    static char text[60000];
    CHECK_INT(pipe2(rig.out, O_CLOEXEC), ==, 0);
    open_relay(rig.out[1], rig.out[1]);
    fcntl(rig.out[0], F_SETPIPE_SZ, 4096);
    for (size_t i = 0; i < sizeof text; i += 2) {
        text[i] = (char)('a' + i / 2 % 26);
        text[i + 1] = '\n';
    }
    int a = add_prefixed(0), b = add_prefixed(1);
    CHECK_INT(write(a, text, sizeof text), ==, sizeof text);
    CHECK_INT(write(b, text, sizeof text), ==, sizeof text);
    settle();
    start_reading();
    until_got(2 * sizeof text / 2 * 7);
    size_t next[2] = {0};
    for (const char *line = rig.got; line < rig.got + rig.n_got; line += 7) {
        CHECK(line[2] == '0' || line[2] == '1');
        CHECK_INT(line[5], ==, 'a' + (int)(next[line[2] - '0']++ % 26));
        CHECK_INT(line[6], ==, '\n');
    }
    CHECK_INT(next[0], ==, sizeof text / 2);
    CHECK_INT(next[1], ==, sizeof text / 2);
    teardown();
}

TEST(a_file_has_every_byte_and_the_outlet_the_prefixed_lines)
{
    char bytes[512];
    size_t n;
    setup_files();
    struct relay_route route = {.prefix = prefix_of(3), .file = file("out")};
    int a = add_route(0, RELAY_STDOUT, &route);
    logfile_close(route.file); /* the stream has its own reference */
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)i;
    CHECK_INT(write(a, bytes, sizeof bytes), ==, sizeof bytes);
    say(a, "no newline");
    end_rank(0);
    const char *text = content("out", &n);
    CHECK_INT(n, ==, sizeof bytes + 10);
    CHECK(memcmp(text, bytes, sizeof bytes) == 0);
    CHECK_STR(text + sizeof bytes, "no newline");
    until_got(sizeof bytes + 10 + 3 * 5);
    CHECK(memcmp(rig.got, "[r3]:\0\1\2", 8) == 0);
    teardown_files();
}

TEST(a_hidden_stream_goes_to_its_file_and_its_tail_only)
{
    size_t n;
    setup_files();
    struct relay_route route = {.hidden = true, .file = file("err")};
    int a = add_route(0, RELAY_STDERR, &route), b = add(1, RELAY_STDOUT);
    say(a, "hidden\nhalf");
    say(b, "open line");
    until_got(9);
    say(a, " more\n"); /* although the outlet belongs to another */
    settle();
    CHECK_STR(content("err", NULL), "hidden\nhalf more\n");
    logfile_close(route.file);
    end_rank(0);
    CHECK_STR(content("err", NULL), "hidden\nhalf more\n");
    CHECK(memcmp(relay_tail(rig.relay, 0, &n), "hidden\nhalf more\n", 17) == 0);
    CHECK_STR(rig.got, "open line");
    CHECK_INT(relay_dropped(rig.relay), ==, 0);
    teardown_files();
}

TEST(a_blocked_reader_does_not_keep_bytes_of_ended_workers_from_their_files)
{
    size_t n;
    CHECK_INT(pipe2(rig.out, O_CLOEXEC), ==, 0);
    open_relay(rig.out[1], rig.out[1]);
    static const struct writer_callbacks callbacks = {on_room, on_trouble, NULL};
    struct err err;
    CHECK_INT(writer_create(&writer, &rig.loop, &callbacks, &err), ==, 0);
    dir_fd = open(test_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct relay_route route = {.prefix = prefix_of(0), .file = file("out")};
    int a = add_route(0, RELAY_STDOUT, &route);
    logfile_close(route.file);
    static char block[4096];
    memset(block, '\n', sizeof block); /* with prefixes six times as much */
    fcntl(a, F_SETFL, O_NONBLOCK);
    size_t total = 0;
    for (int idle = 0; idle < 3;) {
        ssize_t done = write(a, block, sizeof block);
        idle = done > 0 ? 0 : idle + 1;
        total += done > 0 ? (size_t)done : 0;
        settle();
    }
    relay_rank_drain(rig.relay, 0, 1);
    until_ended(1);
    content("out", &n);
    CHECK_INT(n, ==, total);
    teardown_files();
}

/* The log file's descriptor becomes that of a pipe that nobody reads: the writer's next write hangs. */
static void hang_disk(const char *name, int ends[2])
{
    char path[600];
    int target = -1;
    CHECK_INT(pipe2(ends, O_CLOEXEC), ==, 0);
    snprintf(path, sizeof path, "%s/%s", test_dir(), name);
    for (int fd = 3; fd < 64 && target < 0; fd++) {
        char link[64], where[600] = "";
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        if (readlink(link, where, sizeof where - 1) > 0 && strcmp(where, path) == 0)
            target = fd;
    }
    CHECK_INT(target, >=, 0);
    CHECK_INT(dup3(ends[1], target, O_CLOEXEC), ==, target);
}

TEST(a_disk_that_hangs_slows_its_streams_down_and_no_others)
{
    static char block[65536];
    setup_files();
    struct relay_route route = {.hidden = true, .file = file("out")};
    int a = add_route(0, RELAY_STDOUT, &route), b = add(1, RELAY_STDOUT), ends[2];
    logfile_close(route.file);
    hang_disk("out", ends);
    fcntl(a, F_SETFL, O_NONBLOCK);
    size_t total = 0, got = 0;
    for (int idle = 0; idle < 3 && total < 4 * WRITER_MAX_BYTES;) {
        ssize_t n = write(a, block, sizeof block);
        idle = n > 0 ? 0 : idle + 1;
        total += n > 0 ? (size_t)n : 0;
        settle();
    }
    CHECK_INT(total, <=, WRITER_MAX_BYTES + 4 * PIPE_WIDE_BYTES);
    say(b, "alive\n");
    until_got(6);
    close_fd(&rig.in[0][RELAY_STDOUT]);
    /* The disk comes back, and so does the stream. */
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    while (got < total) {
        ssize_t n = read(ends[0], block, sizeof block);
        got += n > 0 ? (size_t)n : 0;
        uv_run(&rig.loop, UV_RUN_NOWAIT);
    }
    CHECK_INT(got, ==, total);
    close(ends[0]);
    close(ends[1]);
    teardown_files();
}

TEST(lines_that_match_go_to_a_file_of_their_own)
{
    setup_files();
    CHECK_INT(needles_init(&needles, "ERROR"), ==, 0);
    struct logfile *matches = file("filtered");
    for (unsigned rank = 0; rank < 2; rank++) {
        struct relay_route route = {
            .prefix = prefix_of(rank), .matches = matches, .needles = &needles};
        add_route(rank, RELAY_STDOUT, &route);
    }
    logfile_close(matches);
    say(rig.in[0][RELAY_STDOUT], "fine\nan ERR");
    settle();
    say(rig.in[1][RELAY_STDOUT], "ERROR of 1\n");
    settle();
    say(rig.in[0][RELAY_STDOUT], "OR of 0\nERROR at the end");
    end_rank(0);
    end_rank(1);
    CHECK_STR(content("filtered", NULL),
              "[r1]:ERROR of 1\n[r0]:an ERROR of 0\n[r0]:ERROR at the end\n");
    teardown_files();
}
