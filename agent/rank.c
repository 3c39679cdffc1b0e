/* SPDX-License-Identifier: MIT */
#include "rank.h"

#include "../proto/clock.h"
#include "log.h"
#include "procstate.h"
#include "program.h"
#include "signals.h"
#include "tree.h"
#include "watch.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

void rank_init(struct rank *rank, uint32_t index, void (*on_exit)(void *user, struct rank *rank),
               void *user)
{
    *rank =
        (struct rank){.index = index, .seat = index, .pidfd = -1, .on_exit = on_exit, .user = user};
}

/* The pidfd leaves epoll before it is closed: a forked sibling that has not exec'ed yet holds a copy, and the
 * kernel would go on reporting it. */
static void drop_pidfd(struct rank *rank)
{
    watch_stop(&rank->watch);
    close_fd(&rank->pidfd);
}

static void record_end(struct rank *rank, const siginfo_t *info, struct spawn_record spawn)
{
    rank->ended = true;
    rank->ended_ns = clock_now_ns();
    rank->signalled = info->si_code != CLD_EXITED;
    rank->core = info->si_code == CLD_DUMPED;
    rank->code = info->si_status;
    rank->spawn = spawn;
    if (spawn.stage != SPAWN_OK)
        rank->reason = REASON_SPAWN;
    else if (rank->signalled)
        rank->reason = rank->stopped_by_us ? REASON_STOPPED : REASON_SIGNAL;
    else if (rank->code != 0)
        rank->reason = rank->stopped_by_us ? REASON_STOPPED : REASON_EXIT;
}

static void on_exit_news(void *user)
{
    struct rank *rank = user;
    siginfo_t info = {0};
    if (waitid(P_PIDFD, (id_t)rank->pidfd, &info, WEXITED | WNOHANG) < 0) {
        /* Somebody else reaped it, which nobody may; how it ended is lost. */
        info.si_pid = rank->pid;
        info.si_code = CLD_EXITED;
        info.si_status = EXIT_CODE_OURS;
    }
    if (!info.si_pid)
        return;
    drop_pidfd(rank);
    rank->pid = 0;
    record_end(rank, &info, spawn_result(rank->group, rank->seat));
    rank->on_exit(rank->user, rank);
}

void rank_forget(struct rank *rank)
{
    rank_init(rank, rank->index, rank->on_exit, rank->user);
}

void rank_move(struct rank *to, struct rank *from)
{
    struct rank moved = *from;
    moved.index = to->index;
    moved.on_exit = to->on_exit;
    moved.user = to->user;
    *to = moved;
    watch_give(to->watch, to);
    rank_init(from, from->index, from->on_exit, from->user);
}

int rank_start(struct rank *rank, uv_loop_t *loop, struct spawn_group *group,
               const struct spawn_request *request, struct err *err)
{
    rank_forget(rank);
    rank->group = group;
    rank->started_ns = clock_now_ns();
    int rc = spawn_start(group, rank->index, request, &rank->pid, &rank->pidfd, err);
    if (rc < 0)
        return rc;
    rank->last_pid = rank->pid;
    rank->watch = watch_start(loop, rank->pidfd, on_exit_news, rank);
    if (!rank->watch) {
        rc = -errno;
        kill(rank->pid, SIGKILL);
        waitid(P_PIDFD, (id_t)rank->pidfd, &(siginfo_t){0}, WEXITED);
        close_fd(&rank->pidfd);
        rank->pid = 0;
        return err_set_errno(err, rc, "pidfd");
    }
    return 0;
}

void rank_signal(struct rank *rank, int sig)
{
    if (!rank->pid)
        return;
    rank->sent |= 1ull << (sig - 1);
    bool ends =
        sig == SIGTERM || sig == SIGKILL || sig == SIGINT || sig == SIGQUIT || sig == SIGHUP;
    if (ends && !rank->suspected)
        rank->stopped_by_us = true;
    if (sig == SIGSTOP || sig == SIGCONT)
        rank->held = sig == SIGSTOP;
    tree_signal(rank->pid, sig);
}

/* An exit with 0 is no failure, and 0 is also what we see when we may not see the status: the pidfd will tell.
 * A lock that is free in a process that lives was given up by exec, or belonged to a child of the worker. */
bool rank_suspect(struct rank *rank)
{
    int status = 0;
    if (!rank->pid || rank->stopped_by_us || rank->suspected)
        return false;
    enum procstate state = procstate_of("", rank->pid, &status);
    if (state == PROC_HEADLESS && !rank->headless) {
        rank->headless = true;
        log_warn("rank %u: its main thread has ended and other threads of it go on (pid %d); it is "
                 "taken for alive until they end",
                 rank->index, (int)rank->pid);
    }
    if (state != PROC_ENDING || status == 0)
        return false;
    rank->suspected = true;
    rank->signalled = WIFSIGNALED(status);
    rank->code = rank->signalled ? WTERMSIG(status) : WEXITSTATUS(status);
    rank->core = rank->signalled && WCOREDUMP(status);
    rank->reason = rank->signalled ? REASON_SIGNAL : REASON_EXIT;
    log_debug("rank %u: pid %d is ending (%s %d)", rank->index, (int)rank->pid,
              rank->signalled ? "signal" : "code", rank->code);
    return true;
}

bool rank_alive(const struct rank *rank)
{
    return rank->pid != 0;
}

int rank_exit_code(const struct rank *rank)
{
    if (rank->reason == REASON_SPAWN)
        return program_exit_code(rank->spawn.error);
    return rank->signalled ? 128 + rank->code : rank->code;
}

void rank_describe_end(const struct rank *rank, char *text, size_t size)
{
    char name[SIGNALS_NAME_BYTES];
    if (rank->reason == REASON_SPAWN)
        snprintf(text, size, "could not be started: %s: %s%s",
                 rank->spawn.stage == SPAWN_STDIO ? "standard streams" : "exec",
                 strerror(rank->spawn.error),
                 rank->spawn.error == ENOEXEC ? ", built for another CPU, or damaged" : "");
    else if (rank->signalled)
        snprintf(text, size, "was killed by %s%s%s", signals_name(rank->code, name),
                 signals_meaning(rank->code), rank->core ? ", core dumped" : "");
    else
        snprintf(text, size, "exited with code %d", rank->code);
}
