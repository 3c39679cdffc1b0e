/* SPDX-License-Identifier: MIT */
/* See placement.h. Must never decide which CPU is whose. */
#include "placement.h"

#include "cpus.h"

#include <assert.h>
#include <linux/mempolicy.h>

static_assert((int)MEM_POLICY_PREFER == MPOL_PREFERRED && (int)MEM_POLICY_BIND == MPOL_BIND &&
                  (int)MEM_POLICY_INTERLEAVE == MPOL_INTERLEAVE,
              "settings have the kernel's numbers");

/* Every rank has a GPU. One that is alone with several may use all of them, wherever they are. */
static bool has_gpu_each(const struct job_spec *spec, const struct plan *plan)
{
    unsigned gpus = plan->gpu_set.n;
    if (gpus == 0 ||
        (plan->world_size == 1 && gpus > 1 && spec->gpu_visibility == GPU_VISIBILITY_JOB))
        return false;
    return plan->world_size <= gpus || spec->share_gpus;
}

static enum affinity resolve(const struct job_spec *spec, const struct plan *plan,
                             const char *sysroot)
{
    if (spec->affinity != AFFINITY_AUTO)
        return spec->affinity;
    return has_gpu_each(spec, plan) && machine_has_nodes(sysroot) ? AFFINITY_NODE : AFFINITY_NONE;
}

static int place(struct placement *p, const struct job_spec *spec, const struct plan *plan,
                 const char *sysroot, const struct machine *machine, struct err *err)
{
    static const struct gpu_set no_gpus;
    bool gpus = plan->world_size <= plan->gpu_set.n || spec->share_gpus;
    struct place_question question = {
        .machine = machine,
        .affinity = p->affinity,
        .mem_policy = p->mem_policy,
        .ranks = p->n,
        .gpus = &plan->gpus,
        .gpu_set = gpus ? &plan->gpu_set : &no_gpus,
        .cpus = plan->cpus,
        .quota = cpus_quota(sysroot),
    };
    p->allowed = machine->allowed;
    p->places = calloc(p->n, sizeof *p->places);
    if (!p->places)
        return err_set_errno(err, -ENOMEM, "places of %u ranks", p->n);
    return place_ranks(p->places, &question, p->note, err);
}

int placement_make(struct placement *p, const struct job_spec *spec, const struct plan *plan,
                   const char *sysroot, struct err *err)
{
    *p = (struct placement){.affinity = resolve(spec, plan, sysroot),
                            .mem_policy = spec->mem_policy,
                            .n = plan->world_size};
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
    *p = (struct placement){0};
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
