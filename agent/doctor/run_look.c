/* SPDX-License-Identifier: MIT */
#include "run_look.h"

#include "../../proto/clock.h"
#include "../../proto/env.h"
#include "../sysfile.h"
#include "tool.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define APART_MS 1000
#define RAS_MS 2800 /* a little longer than NCCL's processes wait for one another */
#define PYTHON_MS 2000
#define ENVIRON_BYTES (256u * 1024u)

static unsigned left_ms(uint64_t until_ns, unsigned most)
{
    uint64_t now = clock_now_ns(), left = now < until_ns ? (until_ns - now) / NS_PER_MS : 0;
    return left < most ? (unsigned)left : most;
}

static int prepare(struct run_look *l, struct err *err)
{
    l->n = l->ranks[0].n;
    if (l->n == 0)
        return err_set(err, -EPROTO, "job %s: it has told of no rank", l->job.job.run_id);
    l->pids = calloc(l->n + 1, sizeof *l->pids);
    l->states = calloc(l->n + 1, sizeof *l->states);
    l->stopped = calloc(2 * l->n + 2, sizeof *l->stopped);
    if (!l->pids || !l->states || !l->stopped)
        return err_set_errno(err, -ENOMEM, "job %s", l->job.job.run_id);
    l->moved = l->stopped + l->n;
    return 0;
}

void run_look_finish(struct run_look *l)
{
    evidence_drop(&l->evidence);
    for (int i = 0; i < 2; i++) {
        ras_finish(&l->ras[i]);
        free(l->ranks[i].ranks);
    }
    free(l->pids);
    free(l->states);
    free(l->stopped);
    client_close(&l->job);
}

/* ---- processes ---- */

/* A job in a container has numbers of its own, which mean other processes here. */
static bool shares_numbers(const struct run_look *l)
{
    struct ucred agent;
    socklen_t n = sizeof agent;
    char path[64];
    struct stat ours, theirs;
    if (getsockopt(l->job.fd, SOL_SOCKET, SO_PEERCRED, &agent, &n) < 0)
        return false;
    snprintf(path, sizeof path, "/proc/%d/ns/pid", (int)agent.pid);
    return stat("/proc/self/ns/pid", &ours) == 0 && stat(path, &theirs) == 0 &&
           ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev;
}

/* The job names its processes; it can't make us look at other users'. */
static void find_processes(struct run_look *l)
{
    if (!shares_numbers(l)) {
        err_set(&l->blind, -EPERM, "the job is another user's, or in another pid namespace");
        return;
    }
    for (uint32_t i = 0; i < l->n; i++) {
        const struct wire_rank *r = &l->ranks[0].ranks[i];
        char path[32];
        struct stat st;
        snprintf(path, sizeof path, "/proc/%d", (int)r->pid);
        if (r->pid > 0 && !r->end[0] && stat(path, &st) == 0 && st.st_uid == l->job.uid)
            l->pids[i] = r->pid;
    }
}

static void on_taken(void *user)
{
    (void)user; /* no timer and no watch is left: the loop ends */
}

static void take_evidence(struct run_look *l)
{
    uv_loop_t loop;
    uv_timer_t timer;
    if (l->blind.code || uv_loop_init(&loop) < 0)
        return;
    uv_timer_init(&loop, &timer);
    if (evidence_take(&l->evidence, &loop, &timer, l->pids, l->n, l->verdict.rank, on_taken, l,
                      &l->blind) == 0)
        uv_run(&loop, UV_RUN_DEFAULT);
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
}

static void find_stopped(struct run_look *l)
{
    for (uint32_t i = 0; i < l->n; i++) {
        struct evidence_proc proc;
        if (!l->pids[i])
            continue;
        evidence_glance("", evidence_worker("", l->pids[i]), &proc);
        l->stopped[i] = proc.state == 'T';
    }
}

/* ---- NCCL ---- */

/* Where the ranks have it from: the environment of the first one that can be read. */
static void find_ras(struct run_look *l)
{
    static const char name[] = ENV_NCCL_RAS "=";
    char *text = malloc(ENVIRON_BYTES);
    for (uint32_t i = 0; text && i < l->n && !l->address[0]; i++) {
        if (!l->pids[i])
            continue;
        ssize_t n = sysfile_read(text, ENVIRON_BYTES, "", "/proc/%d/environ",
                                 (int)evidence_worker("", l->pids[i]));
        for (ssize_t at = 0; at < n; at += (ssize_t)strlen(text + at) + 1)
            if (strncmp(text + at, name, sizeof name - 1) == 0)
                snprintf(l->address, sizeof l->address, "%s", text + at + sizeof name - 1);
    }
    free(text);
}

static void ask_ras(struct run_look *l, unsigned which, uint64_t until_ns)
{
    if (l->ras_trouble.code)
        return;
    if (!l->address[0])
        err_set(&l->ras_trouble, -ENOENT,
                "no rank has " ENV_NCCL_RAS " (launch sets it with GPUs)");
    else
        (void)!ras_ask(&l->ras[which], l->address, left_ms(until_ns, RAS_MS), &l->ras_trouble);
}

int64_t run_look_rank(const struct run_look *l, int32_t pid)
{
    for (uint32_t i = 0; pid > 0 && i < l->n; i++) {
        const struct evidence_rank *e = l->evidence.ranks ? &l->evidence.ranks[i] : NULL;
        if (l->pids[i] == pid || (e && atomic_load(&e->parts) && e->proc.pid == pid))
            return i;
    }
    return -1;
}

const struct ras_note *run_look_behind(const struct run_look *l)
{
    for (uint32_t i = 0; i < l->ras[1].notes_n; i++) {
        const struct ras_note *note = &l->ras[1].notes[i];
        if (note->kind == RAS_BEHIND && run_look_rank(l, note->pid) >= 0)
            return note;
    }
    return NULL;
}

/* ---- progress ---- */

static struct hang_facts facts_of(const struct wire_rank *r, bool wrote)
{
    return (struct hang_facts){
        .alive = r->pid > 0 && !r->end[0],
        .ended_well = strcmp(r->end, "exited with code 0") == 0,
        .stage = r->stage < STAGES_N ? (enum stage)r->stage : STAGE_NONE,
        .step = r->step,
        .entered = r->entered,
        .finished = r->finished,
        .output = wrote,
    };
}

/* How long each has been silent already. The limit is 0: who has not moved, hangs. */
static void begin(struct run_look *l, uint64_t now_ns)
{
    hang_begin(&l->hang, l->states, l->n, 0, now_ns);
    for (uint32_t i = 0; i < l->n; i++) {
        const struct wire_rank *r = &l->ranks[0].ranks[i];
        struct hang_facts facts = facts_of(r, false);
        bool wrote = r->output_age_ms != WIRE_NEVER;
        uint64_t silent_ns = wrote ? r->output_age_ms * NS_PER_MS : 0;
        hang_seen(&l->hang, i, &facts);
        l->states[i].spoke |= wrote;
        if (!l->states[i].tells && silent_ns < now_ns)
            l->states[i].life_ns = now_ns - silent_ns;
    }
}

static void compare(struct run_look *l, uint64_t then_ns, uint64_t now_ns)
{
    bool any_moved = l->ras[0].operations != l->ras[1].operations, any_stopped = false;
    l->apart_ns = now_ns - then_ns;
    l->hang.looked_ns = now_ns;
    for (uint32_t i = 0; i < l->n; i++) {
        const struct wire_rank *r = &l->ranks[1].ranks[i];
        struct hang_facts facts = facts_of(r, r->output_age_ms < l->apart_ns / NS_PER_MS);
        hang_note(&l->hang, i, &facts);
        l->moved[i] = l->states[i].life_ns == now_ns || r->pid != l->ranks[0].ranks[i].pid;
        any_moved |= l->moved[i];
        any_stopped |= l->stopped[i];
    }
    l->verdict = hang_judge(&l->hang, l->stopped);
    l->stuck = any_stopped || !any_moved;
}

/* ---- the whole ---- */

static void pause_until(const struct run_look *l, uint64_t then_ns)
{
    uint64_t until_ns = then_ns + APART_MS * NS_PER_MS;
    struct pollfd p = {.fd = l->job.fd, .events = POLLIN}; /* readable: the job has ended */
    while (clock_now_ns() < until_ns && poll(&p, 1, (int)left_ms(until_ns, APART_MS) + 1) == 0)
        continue;
}

static void ask_python(struct run_look *l, uint64_t until_ns)
{
    const struct evidence_rank *e = l->evidence.ranks ? &l->evidence.ranks[l->verdict.rank] : NULL;
    if (!l->stuck || !e || !atomic_load(&e->parts) || strncmp(e->proc.name, "python", 6) != 0)
        return;
    char pid[16];
    snprintf(pid, sizeof pid, "%d", (int)e->proc.pid);
    const char *const argv[] = {"py-spy", "dump", "--nonblocking", "--pid", pid, NULL};
    ssize_t n = tool_ask(argv, left_ms(until_ns, PYTHON_MS), l->python, sizeof l->python);
    if (n < 0)
        l->python[0] = '\0';
}

int run_look_take(struct run_look *l, const char *run, uint64_t until_ns, struct err *err)
{
    *l = (struct run_look){.job.fd = -1, .evidence.pidfd = -1};
    int rc = client_find(run, &l->job, err);
    if (rc >= 0)
        rc = client_look(&l->job, WIRE_ALL_RANKS, &l->ranks[0], err);
    if (rc >= 0)
        rc = prepare(l, err);
    if (rc < 0)
        return rc;
    uint64_t then_ns = clock_now_ns();
    begin(l, then_ns);
    find_processes(l);
    find_stopped(l);
    l->verdict = hang_judge(&l->hang, l->stopped); /* whom to look at first */
    find_ras(l);
    ask_ras(l, 0, until_ns);
    take_evidence(l);
    pause_until(l, then_ns);
    rc = client_look(&l->job, WIRE_ALL_RANKS, &l->ranks[1], err);
    if (rc >= 0 && l->ranks[1].n != l->n)
        rc = err_set(err, -EPROTO, "job %s: it has told of %u ranks and of %u", l->job.job.run_id,
                     l->n, l->ranks[1].n);
    if (rc < 0)
        return rc;
    uint64_t now_ns = clock_now_ns();
    find_stopped(l);
    ask_ras(l, 1, until_ns);
    compare(l, then_ns, now_ns);
    ask_python(l, until_ns);
    return 0;
}
