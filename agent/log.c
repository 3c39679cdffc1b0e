/* SPDX-License-Identifier: MIT */
#include "log.h"

#include "../proto/clock.h"
#include "clean.h"

#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define LINE_BYTES 1024
#define STALLED_MS 1000 /* a stderr nobody reads costs us our line, never the job */

static void (*before)(void *user);
static void *before_user;

void log_call_before(void (*end_line)(void *user), void *user)
{
    before = end_line;
    before_user = user;
}

bool log_wants_colour(int fd)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return !(no && *no) && term && *term && strcmp(term, "dumb") != 0 && isatty(fd);
}

bool log_has_colour(void)
{
    return log_wants_colour(STDERR_FILENO);
}

static bool has_room(void)
{
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
    uint64_t deadline_ns = clock_deadline_ns(STALLED_MS), now_ns = clock_now_ns();
    int ready;
    do {
        uint64_t left_ns = now_ns < deadline_ns ? deadline_ns - now_ns : 0;
        ready = poll(&p, 1, (int)(left_ns / NS_PER_MS));
        now_ns = clock_now_ns();
    } while (ready < 0 && errno == EINTR && now_ns < deadline_ns);
    return ready > 0;
}

/* Whether stderr is blocking or not is its owner's choice, so each piece is only written when there is room for it:
 * a poll that says so guarantees PIPE_BUF bytes. */
void log_block(const char *text, size_t n)
{
    if (before)
        before(before_user);
    while (n > 0) {
        if (!has_room())
            return;
        ssize_t done = write(STDERR_FILENO, text, n < PIPE_BUF ? n : PIPE_BUF);
        if (done > 0) {
            text += done;
            n -= (size_t)done;
        } else if (errno != EINTR && errno != EAGAIN) {
            return;
        }
    }
}

static void put(const char *prefix, const char *format, va_list ap)
{
    char line[LINE_BYTES];
    int n = snprintf(line, sizeof line, "%s", prefix);
    int more = vsnprintf(line + n, sizeof line - (size_t)n - 1, format, ap);
    if (more < 0)
        return;
    /* Names of programs, files and jobs are quoted in it: none of them steers the terminal. */
    size_t used = strlen(clean(line, sizeof line - 1, line));
    line[used++] = '\n';
    log_block(line, used);
}

void log_error(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    put("launch: ", format, ap);
    va_end(ap);
}

void log_warn(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    put("launch: warning: ", format, ap);
    va_end(ap);
}

void log_info(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    put("launch: ", format, ap);
    va_end(ap);
}

void log_debug(const char *format, ...)
{
    const char *level = getenv("LAUNCH_LOG");
    if (!level || strcmp(level, "debug") != 0)
        return;
    char prefix[64];
    uint64_t now = clock_now_ns();
    snprintf(prefix, sizeof prefix, "launch: %llu.%06llu ", (unsigned long long)(now / NS_PER_S),
             (unsigned long long)(now % NS_PER_S / 1000));
    va_list ap;
    va_start(ap, format);
    put(prefix, format, ap);
    va_end(ap);
}
