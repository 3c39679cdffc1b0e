/* SPDX-License-Identifier: MIT */
/* agent/log.c: one call, one line, one write. */
#include "../../agent/log.h"
#include "procs.h"

#include <sys/socket.h>
#include <sys/time.h>

/* stderr is a socket that keeps writes apart. */
static int catch (void)
{
    int pair[2];
    CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), ==, 0);
    CHECK_INT(dup2(pair[1], STDERR_FILENO), ==, STDERR_FILENO);
    return pair[0];
}

static const char *one_write(int fd)
{
    static char text[4096];
    ssize_t n = recv(fd, text, sizeof text - 1, MSG_DONTWAIT);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

TEST(each_line_is_one_write_with_its_kind)
{
    int fd = catch ();
    log_error("no %s", "luck");
    log_warn("%d of %d", 1, 2);
    unsetenv("LAUNCH_LOG");
    log_debug("hidden");
    setenv("LAUNCH_LOG", "debug", 1);
    log_debug("seen");
    log_block("a\nb\n", 4);
    CHECK_STR(one_write(fd), "launch: no luck\n");
    CHECK_STR(one_write(fd), "launch: warning: 1 of 2\n");
    const char *line = one_write(fd);
    CHECK_INT(strncmp(line, "launch: ", 8), ==, 0);
    CHECK_HAS(line, " seen\n");
    CHECK_STR(one_write(fd), "a\nb\n");
    CHECK_STR(one_write(fd), "");
}

TEST(a_long_line_is_cut_and_still_ends)
{
    static char text[5000];
    int fd = catch ();
    memset(text, 'x', sizeof text - 1);
    log_error("%s", text);
    const char *line = one_write(fd);
    CHECK_INT(strlen(line), <=, 1024);
    CHECK_INT(strlen(line), >, 1000);
    CHECK_STR(line + strlen(line) - 2, "x\n");
}

TEST(a_stderr_that_nobody_reads_or_that_is_closed_costs_the_line_only)
{
    int ends[2];
    char filler[4096];
    CHECK_INT(pipe2(ends, O_NONBLOCK), ==, 0);
    memset(filler, 'x', sizeof filler);
    while (write(ends[1], filler, sizeof filler) > 0)
        ;
    int kept = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    log_error("lost");
    close(STDERR_FILENO);
    log_error("lost as well");
    CHECK_INT(dup2(kept, STDERR_FILENO), ==, STDERR_FILENO);
}

static int full; /* the end that nobody reads, until the alarm */

static void on_alarm(int sig)
{
    char byte[4096];
    (void)sig;
    while (read(full, byte, sizeof byte) > 0)
        ;
}

TEST(a_signal_while_stderr_is_waited_for_costs_no_line)
{
    int pair[2];
    CHECK_INT(pipe2(pair, O_NONBLOCK), ==, 0);
    CHECK_INT(dup2(pair[1], STDERR_FILENO), ==, STDERR_FILENO);
    while (write(STDERR_FILENO, "x", 1) == 1)
        ;
    full = pair[0];
    struct sigaction act = {.sa_handler = on_alarm};
    sigaction(SIGALRM, &act, NULL);
    struct itimerval soon = {.it_value.tv_usec = 20000, .it_interval.tv_usec = 20000};
    setitimer(ITIMER_REAL, &soon, NULL);
    log_error("after all");
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    char text[64] = "";
    ssize_t n = read(full, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    CHECK_STR(text, "launch: after all\n");
}

TEST(what_a_line_quotes_steers_no_terminal)
{
    int fd = catch ();
    log_error("%s: not found", "\x1b]0;title\x07\nlaunch: all is well\xc2\x9b");
    CHECK_STR(one_write(fd), "launch: ?]0;title??launch: all is well?: not found\n");
}
