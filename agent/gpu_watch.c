/* SPDX-License-Identifier: MIT */
#include "gpu_watch.h"

#include "../proto/clock.h"
#include "gpu_users.h"
#include "log.h"
#include "pick.h"
#include "quarantine.h"
#include "syscalls.h"
#include "watch.h"
#include "xid.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <time.h>

/* NVML takes locks of the driver that workers need when they begin. */
#define HELPER_AFTER_MS 500
#define NOBODY_AFTER_MS 10000 /* nobody has CUDA open yet, and nobody would tell: look again then */
#define UVM_NODE "/dev/nvidia-uvm" /* every process that has CUDA opens it */
#define REAP_MS 50                 /* for a killed helper to end; later it is reaped as any child */

void gpu_watch_init(struct gpu_watch *w, uv_loop_t *loop, const struct job_spec *spec,
                    const struct plan *plan, const char *sysroot)
{
    unsigned n = plan->gpus.vendor == GPU_NVIDIA ? plan->gpu_set.n : 0;
    *w = (struct gpu_watch){.loop = loop,
                            .spec = spec,
                            .plan = plan,
                            .sysroot = sysroot,
                            .log_fd = -1,
                            .uvm_fd = -1,
                            .fd = -1,
                            .pidfd = -1};
    w->used = n < plan->world_size ? n : plan->world_size;
}

/* Of the list; -1: the rank has none, or which one can't be told. */
static int gpu_of(const struct gpu_watch *w, uint32_t rank)
{
    const struct gpu_set *set = &w->plan->gpu_set;
    if (w->used == 0 || set->n == 0 || (rank >= set->n && !w->spec->share_gpus))
        return -1;
    return set->index[rank % set->n];
}

static bool is_used(const struct gpu_watch *w, int gpu)
{
    for (unsigned i = 0; i < w->used; i++)
        if (gpu >= 0 && w->plan->gpu_set.index[i] == gpu)
            return true;
    return false;
}

/* ---- faults ---- */

static void quarantine(struct gpu_watch *w, int gpu, struct gpu_fault fault)
{
    struct quarantine q = {.since = (int64_t)time(NULL)};
    char text[GPU_FAULT_TEXT_BYTES];
    struct err err;
    const struct gpu *which = &w->plan->gpus.gpu[gpu];
    snprintf(q.reason, sizeof q.reason, "%s", gpu_fault_text(fault, text));
    snprintf(q.run, sizeof q.run, "%s", w->spec->run_id);
    w->out |= PICK_BIT(gpu);
    if (quarantine_put(w->spec->lease_dir, w->sysroot, which, &q, &err) < 0) {
        log_warn("GPU %d (%s) is faulty: %s; other jobs are not kept from it: %s", gpu, which->pci,
                 q.reason, err.text);
        return;
    }
    w->noted |= PICK_BIT(gpu);
    log_warn("GPU %d (%s) is in quarantine: %s; %s launch gpus --clear=%d", gpu, which->pci,
             q.reason,
             gpu_fault_class(fault) == GPU_FAULT_NODE ? "until the server is booted again, or"
                                                      : "after a reset:",
             gpu);
}

static void note(struct gpu_watch *w, const struct gpu_watch_fault *fault)
{
    char text[GPU_FAULT_TEXT_BYTES];
    log_debug("gpus: %s of %s", gpu_fault_text(fault->fault, text), fault->pci);
    w->faults[w->faults_n++ % GPU_WATCH_FAULTS] = *fault;
    if (gpu_fault_class(fault->fault) >= GPU_FAULT_GPU && is_used(w, fault->gpu) &&
        !(w->out & PICK_BIT(fault->gpu)))
        quarantine(w, fault->gpu, fault->fault);
}

static void on_xid(void *user, const struct xid *xid)
{
    struct gpu_watch *w = user;
    struct gpu_watch_fault fault = {
        .fault = xid->fault, .gpu = -1, .pid = xid->pid, .at_ns = clock_now_ns()};
    memcpy(fault.pci, xid->pci, sizeof fault.pci);
    for (unsigned i = 0; i < w->plan->gpus.n; i++)
        if (xid_is_of(xid, w->plan->gpus.gpu[i].pci))
            fault.gpu = (int)i;
    note(w, &fault);
}

static void on_log(void *user)
{
    struct gpu_watch *w = user;
    xid_read(w->log_fd, on_xid, w);
}

/* ---- the helper ---- */

static void forget_uvm(struct gpu_watch *w)
{
    watch_stop(&w->uvm_watch);
    close_fd(&w->uvm_fd);
}

static void end_helper(struct gpu_watch *w)
{
    uv_timer_stop(&w->timer);
    forget_uvm(w);
    watch_stop(&w->watch);
    close_fd(&w->fd);
    if (w->pidfd < 0)
        return;
    syscall(SYS_pidfd_send_signal, w->pidfd, SIGKILL, NULL, 0); /* fails when it has ended */
    /* Mostly at once; 5 ms on an H200, for the driver to take back what it had open. It must not be taken for something that the
     * workers have left behind, and whoever does not wait here leaves it to the guard, which does: when launch returns, nothing
     * of ours holds a GPU. */
    struct pollfd end = {.fd = w->pidfd, .events = POLLIN};
    if (poll(&end, 1, REAP_MS) == 1)
        waitid(P_PIDFD, (id_t)w->pidfd, &(siginfo_t){0}, WEXITED | WNOHANG);
    close_fd(&w->pidfd);
}

/* False: it has no more to tell. */
static bool read_news(struct gpu_watch *w)
{
    struct nvml_news news;
    ssize_t n;
    while ((n = read(w->fd, &news, sizeof news)) == (ssize_t)sizeof news) {
        if (news.gpu >= w->asked || news.source >= GPU_FAULT_SOURCES_N)
            continue;
        unsigned gpu = w->index[news.gpu];
        struct gpu_watch_fault fault = {
            .fault = {news.source, news.code}, .gpu = (int)gpu, .at_ns = clock_now_ns()};
        snprintf(fault.pci, sizeof fault.pci, "%s", w->plan->gpus.gpu[gpu].pci);
        note(w, &fault);
    }
    return n < 0 && (errno == EAGAIN || errno == EINTR);
}

static void on_news(void *user)
{
    struct gpu_watch *w = user;
    if (read_news(w))
        return;
    log_debug("gpus: NVML tells of no faults");
    watch_stop(&w->watch); /* the descriptor stays: nobody begins again in this attempt */
}

static void start_helper(struct gpu_watch *w)
{
    const char *pci[GPU_MAX];
    w->asked = 0;
    for (unsigned i = 0; i < w->used; i++) {
        int gpu = w->plan->gpu_set.index[i];
        if (gpu < 0)
            continue;
        pci[w->asked] = w->plan->gpus.gpu[gpu].pci;
        w->index[w->asked++] = (uint8_t)gpu;
    }
    pid_t pid; /* its pidfd is as good */
    if (w->asked &&
        gpu_users_spawn(nvml_event_helper, w->sysroot, pci, w->asked, &w->fd, &w->pidfd, &pid) == 0)
        w->watch = watch_start(w->loop, w->fd, on_news, w);
}

static void on_timer(uv_timer_t *timer);

static void on_uvm(void *user)
{
    struct gpu_watch *w = user;
    forget_uvm(w);
    uv_timer_start(&w->timer, on_timer, HELPER_AFTER_MS, 0);
}

/* Tells when somebody opens CUDA; so that a job that never does wakes nobody up. */
static void watch_uvm(struct gpu_watch *w)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s" UVM_NODE, w->sysroot) >= (int)sizeof path)
        return;
    w->uvm_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (w->uvm_fd >= 0 && inotify_add_watch(w->uvm_fd, path, IN_OPEN) >= 0)
        w->uvm_watch = watch_start(w->loop, w->uvm_fd, on_uvm, w);
    if (!w->uvm_watch) /* the driver's module is not loaded yet, or there are too many of us */
        forget_uvm(w);
}

static void on_timer(uv_timer_t *timer)
{
    struct gpu_watch *w = timer->data;
    bool none = gpu_users_none(w->sysroot);
    if (none) {
        watch_uvm(w);
        none = gpu_users_none(w->sysroot); /* somebody may have opened it just before */
    }
    if (!none) {
        forget_uvm(w);
        start_helper(w);
    } else if (!w->uvm_watch) {
        uv_timer_start(&w->timer, on_timer, NOBODY_AFTER_MS, 0);
    }
}

/* ---- life ---- */

void gpu_watch_open(struct gpu_watch *w)
{
    if (w->used == 0 || w->timer.data)
        return;
    uv_timer_init(w->loop, &w->timer);
    w->timer.data = w;
    w->log_fd = xid_open(w->sysroot, true);
    if (w->log_fd >= 0) /* NULL: a plain file in its place; it is read when there is a reason */
        w->log_watch = watch_start(w->loop, w->log_fd, on_log, w);
}

void gpu_watch_start(struct gpu_watch *w)
{
    if (!w->timer.data || w->fd >= 0 || w->uvm_fd >= 0 || uv_is_active((uv_handle_t *)&w->timer))
        return;
    uv_update_time(w->loop);
    uv_timer_start(&w->timer, on_timer, HELPER_AFTER_MS, 0);
}

static void look(struct gpu_watch *w)
{
    if (w->log_fd >= 0)
        xid_read(w->log_fd, on_xid, w);
    if (w->fd >= 0)
        (void)read_news(w);
}

void gpu_watch_stop(struct gpu_watch *w)
{
    if (!w->timer.data)
        return;
    look(w);
    end_helper(w);
}

void gpu_watch_finish(struct gpu_watch *w)
{
    watch_stop(&w->log_watch);
    close_fd(&w->log_fd);
}

/* ---- what ranks want to know ---- */

static bool belongs(const struct gpu_watch *w, const struct gpu_watch_fault *fault,
                    const struct rank *rank)
{
    return (fault->pid && fault->pid == rank->last_pid) ||
           (fault->gpu >= 0 && fault->gpu == gpu_of(w, rank->index));
}

/* Of those since the rank was started: its own before others', a worse before a lesser one, the first. NULL: none. */
static const struct gpu_watch_fault *find_fault(const struct gpu_watch *w, const struct rank *rank)
{
    const struct gpu_watch_fault *best = NULL;
    unsigned first = w->faults_n > GPU_WATCH_FAULTS ? w->faults_n - GPU_WATCH_FAULTS : 0;
    for (unsigned i = first; i < w->faults_n; i++) {
        const struct gpu_watch_fault *f = &w->faults[i % GPU_WATCH_FAULTS];
        if (f->at_ns < rank->started_ns)
            continue;
        int more = best ? belongs(w, f, rank) - belongs(w, best, rank) : 1;
        if (more > 0 || (more == 0 && gpu_fault_class(f->fault) > gpu_fault_class(best->fault)))
            best = f;
    }
    return best;
}

void gpu_watch_explain(struct gpu_watch *w, const struct rank *rank, char *what, size_t size)
{
    char text[GPU_FAULT_TEXT_BYTES];
    size_t n = strlen(what);
    look(w);
    const struct gpu_watch_fault *f = find_fault(w, rank);
    if (f)
        snprintf(what + n, size - n, ", after %s of GPU %s%s", gpu_fault_text(f->fault, text),
                 f->pci, belongs(w, f, rank) ? "" : ", which the driver does not ascribe to it");
}

bool gpu_watch_is_out(struct gpu_watch *w, uint32_t rank)
{
    int gpu = gpu_of(w, rank);
    struct quarantine q;
    if (gpu < 0 || !(w->out & PICK_BIT(gpu)) || w->spec->force)
        return false;
    if ((w->noted & PICK_BIT(gpu)) &&
        !quarantine_holds(w->spec->lease_dir, w->sysroot, &w->plan->gpus.gpu[gpu], &q))
        w->out &= ~PICK_BIT(gpu); /* somebody has cleared it */
    return w->out & PICK_BIT(gpu);
}

bool gpu_watch_any_out(struct gpu_watch *w, uint32_t n)
{
    for (uint32_t rank = 0; rank < n; rank++)
        if (gpu_watch_is_out(w, rank))
            return true;
    return false;
}
