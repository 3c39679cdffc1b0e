/* SPDX-License-Identifier: MIT */
#include "../../agent/pipe.h"
#include "../../agent/relay.h"
#include "../harness.h"

#include <fcntl.h>
#include <string.h>

static int size_of(int fd)
{
    return fcntl(fd, F_GETPIPE_SZ);
}

TEST(a_pipe_of_the_usual_size_is_widened_and_others_stay)
{
    int usual[2], small[2], file = open("/dev/null", O_WRONLY);
    CHECK_INT(pipe(usual), ==, 0);
    CHECK_INT(pipe(small), ==, 0);
    fcntl(small[0], F_SETPIPE_SZ, 4096);
    errno = 77;
    pipe_widen(usual[1]);
    pipe_widen(small[1]);
    pipe_widen(file);
    pipe_widen(-1);
    CHECK_INT(errno, ==, 77);
    CHECK_INT(size_of(usual[0]), ==, PIPE_WIDE_BYTES);
    CHECK_INT(size_of(small[0]), ==, 4096);
}

static void on_rank_end(void *user, unsigned rank)
{
    (void)user;
    (void)rank;
}

static void add(struct relay *relay, unsigned rank, int ret[2])
{
    CHECK_INT(pipe(ret), ==, 0);
    CHECK_INT(relay_add(relay, rank, RELAY_STDOUT, dup(ret[0]), NULL, NULL), ==, 0);
}

TEST(only_pipes_that_were_full_are_widened)
{
    static char lines[2 * PIPE_USUAL_BYTES];
    const struct relay_callbacks callbacks = {on_rank_end, NULL, NULL};
    uv_loop_t loop;
    struct relay *relay;
    int out[2], busy[2], quiet[2];
    memset(lines, '\n', sizeof lines);
    uv_loop_init(&loop);
    CHECK_INT(pipe(out), ==, 0);
    CHECK_INT(relay_create(&relay, &loop, 2, out[1], out[1], &callbacks, NULL), ==, 0);
    add(relay, 0, busy);
    add(relay, 1, quiet);
    CHECK_INT(write(quiet[1], "quiet\n", 6), ==, 6);
    uv_run(&loop, UV_RUN_NOWAIT);
    CHECK_INT(write(busy[1], lines, PIPE_USUAL_BYTES), ==, PIPE_USUAL_BYTES);
    for (int i = 0; i < 10; i++)
        uv_run(&loop, UV_RUN_NOWAIT);
    CHECK_INT(size_of(busy[0]), ==, PIPE_WIDE_BYTES);
    CHECK_INT(size_of(quiet[0]), ==, PIPE_USUAL_BYTES);
    CHECK_INT(size_of(out[0]), ==, PIPE_WIDE_BYTES);
    CHECK_INT(write(busy[1], lines, sizeof lines), ==, sizeof lines);
    char got[4096];
    for (size_t n = 0; n < sizeof lines + PIPE_USUAL_BYTES + 6;) {
        uv_run(&loop, UV_RUN_NOWAIT);
        ssize_t bytes = read(out[0], got, sizeof got);
        CHECK_INT(bytes, >, 0);
        n += (size_t)bytes;
    }
    relay_destroy(relay);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_INT(uv_loop_close(&loop), ==, 0);
}
