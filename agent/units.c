/* SPDX-License-Identifier: MIT */
#include "units.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define PREFIX "launch-"
#define QUEUE PREFIX "queue"
#define MIG_UUID_BYTES 36

/* Whole names only: half of one may mean another instance tomorrow. */
static bool is_whole_mig(const char *entry)
{
    return strncmp(entry, "MIG-GPU-", 8) == 0 ||
           (strncmp(entry, "MIG-", 4) == 0 && strlen(entry) == 4 + MIG_UUID_BYTES);
}

/* Of MIG-GPU-<uuid>/gi/ci the GPU is known; of others it is not, without NVML. */
static int parent_of(const struct gpu_list *gpus, const char *entry)
{
    for (unsigned i = 0; i < gpus->n; i++)
        if (gpus->gpu[i].uuid[0] &&
            strncasecmp(entry + 4, gpus->gpu[i].uuid, strlen(gpus->gpu[i].uuid)) == 0)
            return (int)i;
    return -1;
}

static void add(struct units *u, const char *kind, const char *what, int parent)
{
    char *name = u->name[u->n];
    snprintf(name, UNITS_NAME_BYTES, PREFIX "%s-%s", kind, what);
    for (char *c = name; *c; c++)
        *c = *c == '/' ? '_' : (char)tolower((unsigned char)*c);
    u->fd[u->n] = -1;
    u->parent[u->n++] = parent;
}

int units_open(struct units *u, const char *dir, const char *sysroot, const struct gpu_list *gpus,
               const struct gpu_set *set, struct err *err)
{
    u->n = 0;
    u->queue = -1;
    u->sysroot = sysroot;
    int rc = lockdir_open(&u->dir, dir, sysroot, err);
    if (rc < 0)
        return rc;
    for (unsigned i = 0; i < gpus->n; i++)
        add(u, "gpu", gpus->gpu[i].pci, -1);
    for (unsigned i = 0; set && i < set->n; i++) {
        u->of_set[i] = set->index[i];
        if (set->index[i] >= 0 || !is_whole_mig(set->entry[i]))
            continue;
        if (u->n == GPU_MAX)
            return err_set(err, -E2BIG, "more than %d GPUs and MIG instances", GPU_MAX);
        u->of_set[i] = (int)u->n;
        add(u, "mig", set->entry[i] + 4, parent_of(gpus, set->entry[i]));
    }
    return 0;
}

void units_close(struct units *u)
{
    if (!u->dir.path[0])
        return;
    for (unsigned i = 0; i < u->n; i++)
        close_fd(&u->fd[i]);
    close_fd(&u->queue);
    lockdir_close(&u->dir);
}

int units_open_one(struct units *u, unsigned unit, struct err *err)
{
    int rc = 0;
    for (int at = (int)unit; at >= 0 && rc == 0; at = u->parent[at])
        if (u->fd[at] < 0)
            rc = lockdir_file(&u->dir, u->name[at], &u->fd[at], err);
    return rc;
}

int units_open_all(struct units *u, struct err *err)
{
    int rc = u->queue >= 0 ? 0 : lockdir_file(&u->dir, QUEUE, &u->queue, err);
    for (unsigned i = 0; rc == 0 && i < u->n; i++)
        rc = units_open_one(u, i, err);
    return rc;
}

void units_list(const struct units *u, uint64_t which, char ret[HOLDER_UNITS_BYTES])
{
    size_t used = 0;
    ret[0] = '\0';
    for (; which; which &= which - 1) {
        const char *name = u->name[__builtin_ctzll(which)] + strlen(PREFIX);
        size_t n = strlen(name);
        if (used + n + 2 > HOLDER_UNITS_BYTES)
            return;
        if (used)
            ret[used++] = ',';
        memcpy(ret + used, name, n + 1);
        used += n;
    }
}

static uint64_t parse_list(const struct units *u, const char *text)
{
    uint64_t set = 0;
    while (*text) {
        size_t n = strcspn(text, ",");
        for (unsigned i = 0; i < u->n; i++) {
            const char *name = u->name[i] + strlen(PREFIX);
            if (strlen(name) == n && memcmp(name, text, n) == 0)
                set |= PICK_BIT(i);
        }
        text += n + (text[n] == ',');
    }
    return set;
}

/* A unit that is held: with those of the same job, or on its own if nobody says whose it is. */
static void note_held(struct turn_table *t, struct holder *of_job, unsigned unit, int fd)
{
    struct holder who = {0};
    unsigned page = 0, job = t->jobs;
    if (holder_next(fd, &page, &who))
        for (job = 0; job < t->jobs && !holder_same(&of_job[job], &who); job++)
            ;
    if (job == t->jobs) {
        of_job[job] = who;
        t->held[t->jobs++] = 0;
    }
    t->held[job] |= PICK_BIT(unit);
}

static bool is_free(const struct units *u, unsigned unit)
{
    int parent = u->parent[unit];
    return holder_state(u->fd[unit]) == HOLDER_FREE &&
           (parent < 0 || holder_state(u->fd[parent]) != HOLDER_EXCLUSIVE);
}

void units_look(const struct units *u, struct turn_table *t)
{
    struct holder of_job[GPU_MAX], who;
    t->free = 0;
    t->jobs = t->asks = 0;
    for (unsigned i = 0; i < u->n; i++) {
        if (is_free(u, i))
            t->free |= PICK_BIT(i);
        else
            note_held(t, of_job, i, u->fd[i]);
    }
    unsigned page = 0;
    while (t->asks < GPU_MAX && holder_next(u->queue, &page, &who))
        if (who.wants)
            t->ask[t->asks++] = (struct turn_ask){
                .ticket = who.ticket, .among = parse_list(u, who.units), .wants = who.wants};
}
