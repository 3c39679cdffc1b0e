/* SPDX-License-Identifier: MIT */
/* See placement.h. Must never decide which CPU is whose. */
#include "placement.h"

#include "cpulock.h"

#include <assert.h>
#include <linux/mempolicy.h>
#include <stdio.h>

#define TRIES 100 /* at CPUs that others take meanwhile */

static_assert((int)MEM_POLICY_PREFER == MPOL_PREFERRED && (int)MEM_POLICY_BIND == MPOL_BIND &&
                  (int)MEM_POLICY_INTERLEAVE == MPOL_INTERLEAVE,
              "settings have the kernel's numbers");

static bool gpus_suffice(const struct job_spec *spec, const struct plan *plan)
{
    return plan->world_size <= plan->gpu_set.n || spec->share_gpus;
}

/* Every rank has a GPU. One that is alone with several may use all of them, wherever they are. */
static bool has_gpu_each(const struct job_spec *spec, const struct plan *plan)
{
    unsigned gpus = plan->gpu_set.n;
    bool may_use_all =
        plan->world_size == 1 && gpus > 1 && spec->gpu_visibility == GPU_VISIBILITY_JOB;
    return gpus > 0 && !may_use_all && gpus_suffice(spec, plan);
}

static enum affinity resolve(const struct job_spec *spec, const struct plan *plan,
                             const char *sysroot)
{
    if (spec->affinity != AFFINITY_AUTO)
        return spec->affinity;
    return has_gpu_each(spec, plan) && machine_has_nodes(sysroot) ? AFFINITY_NODE : AFFINITY_NONE;
}

/* Every thread of the cores that the ranks have. */
static struct bitset cpus_of_all(const struct placement *p)
{
    struct bitset all = {0};
    for (uint32_t rank = 0; rank < p->n; rank++)
        bitset_or(&all, &p->places[rank].cpus);
    return all;
}

/* Around what other jobs have locked; another one may be as fast as we are. Without locks the job is placed as if it were
 * alone. */
static int place_exclusive(struct placement *p, const struct place_question *alone,
                           const char *lock_dir, const char *sysroot, struct err *err)
{
    struct err why;
    struct bitset taken;
    struct place_question question = *alone;
    bool locks = cpulock_open(lock_dir, sysroot, &p->lock, &why) == 0;
    question.taken = locks ? &taken : NULL;
    for (int i = 0; i < TRIES; i++) {
        if (locks)
            cpulock_taken(p->lock, &question.machine->allowed, &taken);
        int rc = place_ranks(p->places, &question, p->note, err);
        if (rc < 0)
            return rc;
        struct bitset mine = cpus_of_all(p);
        if (locks && cpulock_take(p->lock, &mine))
            return 0;
        if (!locks) {
            snprintf(p->note, sizeof p->note, "other jobs may take the same exclusive CPUs: %.140s",
                     why.text);
            return 0;
        }
    }
    return err_set(err, -EBUSY, "--affinity=exclusive: other jobs keep taking the CPUs; try again");
}

static int place(struct placement *p, const struct job_spec *spec, const struct plan *plan,
                 const char *sysroot, const struct machine *machine, struct err *err)
{
    static const struct gpu_set no_gpus;
    struct place_question question = {
        .machine = machine,
        .affinity = p->affinity,
        .mem_policy = p->mem_policy,
        .ranks = p->n,
        .gpus = &plan->gpus,
        .gpu_set = gpus_suffice(spec, plan) ? &plan->gpu_set : &no_gpus,
        .cpus = plan->cpus,
        .quota = plan->quota,
    };
    p->allowed = machine->allowed;
    p->places = calloc(p->n, sizeof *p->places);
    if (!p->places)
        return err_set_errno(err, -ENOMEM, "places of %u ranks", p->n);
    if (p->affinity == AFFINITY_EXCLUSIVE)
        return place_exclusive(p, &question, spec->lease_dir, sysroot, err);
    return place_ranks(p->places, &question, p->note, err);
}

int placement_make(struct placement *p, const struct job_spec *spec, const struct plan *plan,
                   const char *sysroot, struct err *err)
{
    *p = (struct placement){.affinity = resolve(spec, plan, sysroot),
                            .mem_policy = spec->mem_policy,
                            .n = plan->world_size,
                            .lock = -1};
    if (!placement_binds(p) && !spec->report_placement)
        return 0;
    struct machine *machine;
    int rc = machine_read(&machine, sysroot, place_details(p->affinity), err);
    if (rc < 0)
        return rc;
    rc = place(p, spec, plan, sysroot, machine, err);
    free(machine);
    return rc;
}

void placement_finish(struct placement *p)
{
    free(p->places);
    close_fd(&p->lock);
    *p = (struct placement){.lock = -1};
}

bool placement_binds(const struct placement *p)
{
    return p && (p->affinity != AFFINITY_NONE || p->mem_policy != MEM_POLICY_NONE);
}

struct spawn_place placement_spawn(const struct placement *p, uint32_t rank)
{
    if (!placement_binds(p))
        return (struct spawn_place){0};
    const struct place *place = &p->places[rank];
    return (struct spawn_place){
        .cpus = bitset_empty(&place->cpus) ? NULL : &place->cpus,
        .cpus_bytes = sizeof place->cpus,
        .nodes = bitset_empty(&place->memory) ? NULL : &place->memory,
        .nodes_bytes = sizeof place->memory,
        .mem_policy = (int)p->mem_policy,
    };
}

unsigned placement_threads(const struct placement *p, uint32_t rank, unsigned fair_share)
{
    unsigned threads = p && p->places ? p->places[rank].threads : fair_share;
    return threads ? threads : 1;
}
