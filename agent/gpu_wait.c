/* SPDX-License-Identifier: MIT */
#include "gpu_wait.h"

#include "../proto/clock.h"
#include "../proto/env.h"
#include "gpu_users.h"
#include "log.h"
#include "nvml.h"
#include "syscalls.h"
#include "sysfile.h"
#include "tree.h"
#include "watch.h"

#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#define LINE_BYTES 256
#define ENVIRON_BYTES ((size_t)256 << 10)

struct gpu_wait {
    uv_timer_t timer; /* the limit, and then what is left of after_ms */
    struct watch *watch;
    int fd;    /* owned: what the helper says */
    int pidfd; /* owned: the helper */
    char line[LINE_BYTES];
    size_t line_n;
    char pci[GPU_MAX][sizeof((struct gpu *)0)->pci];
    unsigned pci_n;
    char mark[128]; /* "TORCHELASTIC_RUN_ID=..." */
    const struct group *ranks;
    char holder[160]; /* of the list that is being read, then of the last whole one; empty: none */
    bool in_list;
    uint64_t started_ns, after_ms;
    uv_timer_cb on_done;
    void *user;
};

unsigned gpu_wait_limit_ms = 5000;

/* ---- whose is it? ---- */

static bool has_mark(pid_t pid, const char *mark)
{
    AUTO_FREE char *text = malloc(ENVIRON_BYTES);
    ssize_t n = text ? sysfile_read(text, ENVIRON_BYTES, "", "/proc/%d/environ", (int)pid) : -1;
    for (ssize_t at = 0; at < n; at += (ssize_t)strlen(text + at) + 1)
        if (strcmp(text + at, mark) == 0)
            return true;
    return false;
}

static bool is_ours(const struct gpu_wait *w, pid_t pid)
{
    for (uint32_t i = 0; i < w->ranks->n; i++)
        if (w->ranks->ranks[i].last_pid == pid)
            return true;
    return has_mark(pid, w->mark);
}

/* ---- what the helper says ---- */

static void kill_helper(struct gpu_wait *w)
{
    watch_stop(&w->watch);
    close_fd(&w->fd);
    if (w->pidfd >= 0)
        syscall(SYS_pidfd_send_signal, w->pidfd, SIGKILL, NULL, 0);
    close_fd(&w->pidfd);
}

static void finish(struct gpu_wait *w)
{
    kill_helper(w);
    uint64_t passed_ms = (clock_now_ns() - w->started_ns) / NS_PER_MS;
    uv_update_time(w->timer.loop);
    w->timer.data = w->user;
    uv_timer_start(&w->timer, w->on_done, passed_ms < w->after_ms ? w->after_ms - passed_ms : 0, 0);
}

static void on_limit(uv_timer_t *timer)
{
    struct gpu_wait *w = CONTAINER_OF(timer, struct gpu_wait, timer);
    if (w->holder[0])
        log_warn("%s; starting all the same", w->holder);
    else
        log_warn("NVML has not told within %g s whether the GPUs are free; starting all the same",
                 gpu_wait_limit_ms / 1000.0);
    finish(w);
}

static void note_use(struct gpu_wait *w, unsigned index, unsigned pid, unsigned long long bytes)
{
    char name[16];
    if (!w->in_list)
        w->holder[0] = '\0';
    w->in_list = true;
    if (index >= w->pci_n || pid < 2 || pid > INT32_MAX || w->holder[0] || !is_ours(w, (pid_t)pid))
        return;
    tree_name((pid_t)pid, name);
    snprintf(w->holder, sizeof w->holder,
             "GPU %s is still held by %s (pid %u, %llu MiB) of the last attempt", w->pci[index],
             name, pid, bytes >> 20);
}

/* False: nothing more is to be read. */
static bool take_line(struct gpu_wait *w, const char *line)
{
    unsigned index, pid;
    unsigned long long bytes;
    if (strcmp(line, "end") == 0) {
        if (!w->in_list)
            w->holder[0] = '\0';
        w->in_list = false;
        return w->holder[0] != '\0';
    }
    if (sscanf(line, "use %9u %9u %19llu", &index, &pid, &bytes) == 3) {
        note_use(w, index, pid, bytes);
        return true;
    }
    log_debug("gpus: %s", line);
    return false;
}

static void on_readable(void *user)
{
    struct gpu_wait *w = user;
    char text[4096];
    ssize_t n = read(w->fd, text, sizeof text);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    bool more = n > 0;
    for (ssize_t i = 0; i < n && more; i++) {
        if (text[i] != '\n') {
            more = w->line_n < sizeof w->line - 1;
            w->line[w->line_n] = text[i];
            w->line_n += more;
            continue;
        }
        w->line[w->line_n] = '\0';
        w->line_n = 0;
        more = take_line(w, w->line);
    }
    if (!more)
        finish(w); /* free; or the helper has no news to offer, which is no reason to wait */
}

/* ---- life ---- */

/* Called when all workers and the deathwatch thread are gone: a fork of a single-threaded process. */
static bool start_helper(struct gpu_wait *w, uv_loop_t *loop, const char *sysroot)
{
    const char *pci[GPU_MAX];
    pid_t pid; /* whoever reaps children reaps it */
    for (unsigned i = 0; i < w->pci_n; i++)
        pci[i] = w->pci[i];
    if (gpu_users_spawn(nvml_helper, sysroot, pci, w->pci_n, &w->fd, &w->pidfd, &pid) < 0)
        return false;
    w->watch = watch_start(loop, w->fd, on_readable, w);
    return w->watch != NULL;
}

/* prefix: "/dev/nvidia" below the sysroot; /dev/nvidia0, nvidiactl and nvidia-uvm begin so. */
static bool has_nvidia_open(void *prefix, pid_t pid)
{
    char path[64], target[PATH_MAX];
    size_t prefix_n = strlen(prefix);
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *dir = opendir(path);
    struct dirent *entry;
    bool found = false;
    while (dir && !found && (entry = readdir(dir))) {
        ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof target);
        found = n >= (ssize_t)prefix_n && memcmp(target, prefix, prefix_n) == 0;
    }
    if (dir)
        closedir(dir);
    return found;
}

bool gpu_wait_is_due(const char *sysroot, const struct plan *plan, const struct group *ranks)
{
    char prefix[PATH_MAX];
    if (plan->gpus.vendor != GPU_NVIDIA ||
        snprintf(prefix, sizeof prefix, "%s/dev/nvidia", sysroot) >= PATH_MAX)
        return false;
    uint32_t seen = 0;
    for (uint32_t i = 0; i < ranks->n; i++) {
        if (!rank_alive(&ranks->ranks[i]) || ranks->ranks[i].suspected)
            continue;
        seen++;
        if (tree_any(ranks->ranks[i].pid, has_nvidia_open, prefix))
            return true;
    }
    return seen == 0;
}

static void choose_gpus(struct gpu_wait *w, const struct plan *plan)
{
    for (unsigned i = 0; i < plan->gpu_set.n && i < GPU_MAX; i++) {
        int index = plan->gpu_set.index[i];
        if (index >= 0 && (unsigned)index < plan->gpus.n)
            memcpy(w->pci[w->pci_n++], plan->gpus.gpu[index].pci, sizeof w->pci[0]);
    }
}

static void on_closed(uv_handle_t *handle)
{
    free(CONTAINER_OF((uv_timer_t *)handle, struct gpu_wait, timer));
}

bool gpu_wait_start(struct gpu_wait **ret, uv_loop_t *loop, const char *sysroot,
                    const struct plan *plan, const char *run_id, const struct group *ranks,
                    uint64_t after_ms, uv_timer_cb on_done, void *user)
{
    if (plan->gpus.vendor != GPU_NVIDIA || gpu_users_none(sysroot))
        return false;
    struct gpu_wait *w = calloc(1, sizeof *w);
    if (!w)
        return false;
    *ret = w;
    w->fd = w->pidfd = -1;
    w->started_ns = clock_now_ns();
    w->after_ms = after_ms;
    w->on_done = on_done;
    w->user = user;
    w->ranks = ranks;
    uv_timer_init(loop, &w->timer);
    snprintf(w->mark, sizeof w->mark, "%s=%s", ENV_RUN_ID, run_id);
    choose_gpus(w, plan);
    if (!w->pci_n || !start_helper(w, loop, sysroot)) {
        gpu_wait_stop(ret);
        return false;
    }
    uv_update_time(loop);
    uv_timer_start(&w->timer, on_limit, gpu_wait_limit_ms, 0);
    return true;
}

void gpu_wait_stop(struct gpu_wait **wait)
{
    struct gpu_wait *w = *wait;
    *wait = NULL;
    if (!w)
        return;
    kill_helper(w);
    uv_close((uv_handle_t *)&w->timer, on_closed);
}
