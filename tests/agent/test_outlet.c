/* SPDX-License-Identifier: MIT */
/* Each kind of receiver: it is never blocked on, and its file description stays as it was. */
#include "../../agent/outlet.h"
#include "../harness.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>

static uv_loop_t loop;
static struct outlet outlet;
static struct err err;
static unsigned writable, closed;

static void on_writable(struct outlet *o)
{
    (void)o;
    writable++;
}

static void on_closed(struct outlet *o)
{
    (void)o;
    closed++;
}

static void open_outlet(int fd)
{
    signal(SIGPIPE, SIG_IGN);
    uv_loop_init(&loop);
    CHECK_INT(outlet_init(&outlet, &loop, fd, on_writable, &err), ==, 0);
}

static void close_outlet(void)
{
    outlet_finish(&outlet, on_closed);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_INT(closed, ==, 1);
    CHECK_INT(uv_loop_close(&loop), ==, 0);
}

/* Writes until the receiver takes no more. */
static size_t fill(void)
{
    static char block[65536];
    struct iovec iov = {block, sizeof block};
    memset(block, 'x', sizeof block);
    size_t total = 0, n;
    do
        total += n = outlet_write(&outlet, &iov, 1);
    while (n == sizeof block);
    return total;
}

static void read_all(int fd, size_t total)
{
    static char buffer[65536];
    struct pollfd p = {.fd = fd, .events = POLLIN};
    while (total) {
        CHECK_INT(poll(&p, 1, -1), ==, 1);
        ssize_t n = read(fd, buffer, sizeof buffer);
        CHECK_INT(n, >, 0);
        total -= (size_t)n;
    }
}

/* Full, then waited for, then emptied, then writable; the description is as blocking as before. */
static void fill_and_wait(int write_fd, int read_fd)
{
    open_outlet(write_fd);
    size_t total = fill();
    CHECK_INT(total, >, 0);
    outlet_wait(&outlet);
    CHECK(outlet.waiting);
    uv_run(&loop, UV_RUN_NOWAIT);
    CHECK_INT(writable, ==, 0);
    read_all(read_fd, total);
    uv_run(&loop, UV_RUN_ONCE);
    CHECK_INT(writable, ==, 1);
    CHECK_INT(fill(), >, 0);
    CHECK_INT(fcntl(write_fd, F_GETFL) & O_NONBLOCK, ==, 0);
    CHECK_INT(outlet.dropped, ==, 0);
    close_outlet();
}

TEST(a_full_pipe_is_waited_for_and_stays_blocking_for_others)
{
    int fds[2];
    CHECK_INT(pipe2(fds, O_CLOEXEC), ==, 0);
    fcntl(fds[1], F_SETPIPE_SZ, 4096); /* of the usual size it would be widened, see pipe.h */
    fill_and_wait(fds[1], fds[0]);
}

TEST(a_full_socket_is_waited_for_and_stays_blocking_for_others)
{
    int fds[2];
    CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), ==, 0);
    fill_and_wait(fds[1], fds[0]);
}

TEST(a_stopped_terminal_is_waited_for_and_stays_blocking_for_others)
{
    int master, slave;
    struct termios raw;
    if (openpty(&master, &slave, NULL, NULL, NULL) < 0)
        test_skip("no pseudo terminals here");
    tcgetattr(slave, &raw);
    cfmakeraw(&raw);
    tcsetattr(slave, TCSANOW, &raw);
    open_outlet(slave);
    size_t total = fill();
    outlet_wait(&outlet);
    read_all(master, total);
    uv_run(&loop, UV_RUN_ONCE);
    CHECK_INT(writable, ==, 1);
    CHECK_INT(fcntl(slave, F_GETFL) & O_NONBLOCK, ==, 0);
    close_outlet();
}

TEST(a_pipe_that_can_not_be_opened_again_is_written_in_small_pieces)
{
    int fds[2];
    struct rlimit limit;
    CHECK_INT(pipe2(fds, O_CLOEXEC), ==, 0);
    uv_loop_init(&loop);
    signal(SIGPIPE, SIG_IGN);
    getrlimit(RLIMIT_NOFILE, &limit);
    struct rlimit none = {0, limit.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none); /* open() fails: EMFILE */
    CHECK_INT(outlet_init(&outlet, &loop, fds[1], on_writable, &err), ==, 0);
    setrlimit(RLIMIT_NOFILE, &limit);
    CHECK_INT(outlet.way, ==, OUTLET_TIMID);
    size_t total = fill();
    CHECK_INT(total, ==, 65536);
    outlet_wait(&outlet);
    read_all(fds[0], total);
    uv_run(&loop, UV_RUN_ONCE);
    CHECK_INT(writable, ==, 1);
    CHECK_INT(fcntl(fds[1], F_GETFL) & O_NONBLOCK, ==, 0);
    close_outlet();
}

TEST(a_file_takes_everything_at_its_own_position)
{
    char path[512], text[16] = "";
    test_write("log", "head\n");
    strcat(strcpy(path, test_dir()), "/log");
    int fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
    open_outlet(fd);
    CHECK_INT(outlet_write(&outlet, (struct iovec[]){{"a\n", 2}, {NULL, 0}, {"b\n", 2}}, 3), ==, 4);
    CHECK_INT(pread(fd, text, sizeof text - 1, 0), ==, 9);
    CHECK_STR(text, "head\na\nb\n");
    close_outlet();
}

TEST(a_reader_that_left_ends_the_outlet_and_what_follows_is_counted)
{
    int fds[2];
    CHECK_INT(pipe2(fds, O_CLOEXEC), ==, 0);
    open_outlet(fds[1]);
    close(fds[0]);
    CHECK_INT(outlet_write(&outlet, &(struct iovec){"abc", 3}, 1), ==, 3);
    CHECK_INT(outlet.error, ==, EPIPE);
    CHECK_INT(outlet_write(&outlet, &(struct iovec){"de", 2}, 1), ==, 2);
    CHECK_INT(outlet.dropped, ==, 5);
    outlet_wait(&outlet);
    CHECK(!outlet.waiting);
    close_outlet();
}

TEST(a_full_disk_loses_bytes_but_not_the_outlet)
{
    int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        test_skip("no /dev/full");
    open_outlet(fd);
    CHECK_INT(outlet_write(&outlet, &(struct iovec){"abc", 3}, 1), ==, 3);
    CHECK_INT(outlet.error, ==, 0);
    CHECK_INT(outlet.dropped, ==, 3);
    close_outlet();
}

TEST(a_closed_descriptor_is_refused_with_its_number)
{
    uv_loop_init(&loop);
    CHECK_INT(outlet_init(&outlet, &loop, 999, on_writable, &err), ==, -EBADF);
    CHECK_HAS(err.text, "999");
    uv_loop_close(&loop);
}
