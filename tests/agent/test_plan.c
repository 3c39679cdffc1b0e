/* SPDX-License-Identifier: MIT */
/* agent/plan.c: what was asked for, on machines described by files. */
#include "../../agent/plan.h"
#include "../harness.h"

#include "../../config/fields.h"
#include "../../proto/board.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

static struct job_spec spec;
static struct plan plan;
static struct err err;

static void machine(unsigned gpus)
{
    for (unsigned i = 0; i < gpus; i++) {
        char path[128], text[64];
        snprintf(path, sizeof path, "m/proc/driver/nvidia/gpus/0000:%02x:00.0/information", 16 + i);
        snprintf(text, sizeof text, "Device Minor: \t %u\n", i);
        test_write(path, text);
        snprintf(path, sizeof path, "m/dev/nvidia%u", i);
        test_write(path, "");
    }
    char root[512];
    snprintf(root, sizeof root, "%s/m", test_dir());
    setenv("LAUNCH_SYSROOT", root, 1);
    unsetenv("CUDA_VISIBLE_DEVICES");
    CHECK_INT(spec_init(&spec), ==, 0);
}

static void ask(enum nproc_mode mode, uint32_t n)
{
    spec.nproc_mode = mode;
    spec.nproc = n;
}

static void workers(uint32_t n)
{
    if (plan_make(&plan, &spec, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    CHECK_INT(plan.world_size, ==, n);
}

static void refused(const char *part, const char *other)
{
    CHECK_INT(plan_make(&plan, &spec, &err), ==, -EINVAL);
    CHECK_HAS(err.text, part);
    CHECK_HAS(err.text, other);
}

TEST(a_number_is_a_number_whatever_the_machine_has)
{
    machine(2);
    ask(NPROC_NUMBER, 1);
    workers(1);
    ask(NPROC_NUMBER, 7);
    workers(7);
    CHECK_INT(plan.gpu_set.n, ==, 2);
    CHECK_STR(plan.warning, "");
}

TEST(gpu_and_auto_take_one_worker_per_gpu)
{
    machine(3);
    ask(NPROC_GPU, 0);
    workers(3);
    ask(NPROC_AUTO, 0);
    workers(3);
    setenv("CUDA_VISIBLE_DEVICES", "2,0", 1);
    workers(2);
}

TEST(without_a_gpu_auto_takes_cpus_and_gpu_is_an_error_that_names_auto)
{
    machine(0);
    ask(NPROC_AUTO, 0);
    CHECK_INT(plan_make(&plan, &spec, &err), ==, 0);
    CHECK(plan.cpus >= 1 && plan.world_size == plan.cpus);
    ask(NPROC_GPU, 0);
    refused("no GPU", "--nproc-per-node=auto");
}

TEST(a_variable_that_leaves_no_gpu_is_named)
{
    machine(2);
    ask(NPROC_GPU, 0);
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    refused("CUDA_VISIBLE_DEVICES=''", "none of the 2 GPUs");
    setenv("CUDA_VISIBLE_DEVICES", "-1", 1);
    refused("CUDA_VISIBLE_DEVICES='-1'", "auto");
    ask(NPROC_AUTO, 0);
    CHECK_INT(plan_make(&plan, &spec, &err), ==, 0);
    CHECK_INT(plan.world_size, ==, plan.cpus);
    CHECK_STR(plan.warning, ""); /* -1 says "none" on purpose */
}

TEST(an_entry_that_names_no_gpu_is_a_warning_and_junk_an_error)
{
    machine(2);
    ask(NPROC_GPU, 0);
    setenv("CUDA_VISIBLE_DEVICES", "1,7,0", 1);
    workers(1);
    CHECK_HAS(plan.warning, "CUDA_VISIBLE_DEVICES: '7'");
    setenv("CUDA_VISIBLE_DEVICES", "1,junk", 1);
    refused("CUDA_VISIBLE_DEVICES", "junk");
}

TEST(cpus_are_those_of_the_affinity_mask)
{
    machine(2);
    ask(NPROC_CPU, 0);
    cpu_set_t mask, one;
    CHECK_INT(sched_getaffinity(0, sizeof mask, &mask), ==, 0);
    CPU_ZERO(&one);
    for (int cpu = 0; CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &mask))
            CPU_SET(cpu, &one);
    CHECK_INT(sched_setaffinity(0, sizeof one, &one), ==, 0);
    workers(1);
    CHECK_INT(plan.cpus, ==, 1);
}

TEST(an_own_gpu_for_each_needs_as_many_or_sharing)
{
    machine(2);
    ask(NPROC_NUMBER, 3);
    spec.gpu_visibility = GPU_VISIBILITY_RANK;
    refused("3 workers", "--share-gpus");
    ask(NPROC_NUMBER, 2);
    workers(2);
    ask(NPROC_NUMBER, 3);
    spec.share_gpus = true;
    workers(3);
    CHECK_STR(plan.warning, "");
}

TEST(nothing_to_share_is_a_warning)
{
    machine(0);
    ask(NPROC_NUMBER, 3);
    spec.share_gpus = true;
    spec.gpu_visibility = GPU_VISIBILITY_RANK;
    workers(3);
    CHECK_HAS(plan.warning, "--share-gpus");
}

/* ---- --gpus ---- */

static void ask_gpus(const char *text)
{
    const char *const name = "gpus";
    if (field_set(field_find(name, strlen(name)), &spec, text, "--gpus", &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
}

static void set_is(const char *entries, unsigned wanted)
{
    char text[256] = "";
    size_t used = 0;
    for (unsigned i = 0; i < plan.gpu_set.n; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, i ? ",%s" : "%s",
                                 plan.gpu_set.entry[i]);
    CHECK_STR(text, entries);
    CHECK_INT(plan.gpus_wanted, ==, wanted);
    CHECK(plan.gpu_set.chosen);
}

TEST(a_lease_is_on_some_of_the_gpus_or_on_those_of_a_list)
{
    machine(4);
    ask(NPROC_GPU, 0);
    ask_gpus("2");
    workers(2);
    set_is("0,1,2,3", 2);
    ask_gpus("all");
    workers(4);
    set_is("0,1,2,3", 4);
    ask_gpus("3,1");
    workers(2);
    set_is("3,1", 2);
    ask(NPROC_NUMBER, 3);
    ask_gpus("auto");
    workers(3);
    set_is("0,1,2,3", 3);
    plan_take_gpus(&plan, 0xd);
    set_is("0,2,3", 3);
}

TEST(gpus_to_be_avoided_leave_fewer_workers_others_in_their_place_or_no_choice)
{
    machine(4);
    ask(NPROC_GPU, 0);
    workers(4);
    CHECK_INT(plan_avoid_gpus(&plan, &spec, 0x6, &err), ==, 1);
    CHECK_INT(plan.world_size, ==, 2);
    CHECK_INT(plan.gpu_set.n, ==, 2);
    CHECK_STR(plan.gpu_set.entry[1], "3");
    CHECK(plan.gpu_set.chosen);
    CHECK_INT(plan_avoid_gpus(&plan, &spec, 0x3, &err), ==, -EBUSY);
    CHECK_HAS(err.text, "--force");
    ask(NPROC_NUMBER, 3);
    workers(3);
    CHECK_INT(plan_avoid_gpus(&plan, &spec, 0x1, &err), ==, 1);
    CHECK_INT(plan.world_size, ==, 3);
    CHECK_STR(plan.gpu_set.entry[0], "1");
    CHECK_INT(plan_avoid_gpus(&plan, &spec, 0x2, &err), ==, 0);
    CHECK_INT(plan.gpu_set.n, ==, 3);
    spec.share_gpus = true;
    CHECK_INT(plan_avoid_gpus(&plan, &spec, 0x2, &err), ==, 1);
    CHECK_INT(plan.world_size, ==, 3);
    spec.share_gpus = false;
    ask(NPROC_GPU, 0);
    spec.on_failure = ON_FAILURE_SHRINK;
    spec.min_workers = 4;
    workers(4);
    CHECK_INT(plan_avoid_gpus(&plan, &spec, 0x1, &err), ==, -EINVAL);
    CHECK_HAS(err.text, "--min-workers");
    CHECK_HAS(err.text, "quarantine");
}

TEST(the_users_variable_bounds_a_lease_and_gives_its_notation)
{
    machine(4);
    setenv("CUDA_VISIBLE_DEVICES", "3,2,0", 1);
    ask(NPROC_GPU, 0);
    ask_gpus("2");
    workers(2);
    set_is("3,2,0", 2);
    CHECK(plan.gpu_set.given);
    ask_gpus("0,3");
    workers(2);
    set_is("0,3", 2);
    ask_gpus("1-2");
    refused("--gpus: 1 is not among those of", "CUDA_VISIBLE_DEVICES='3,2,0'");
    ask_gpus("4");
    refused("4 GPUs are asked for", "leaves 3");
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    refused("--gpus: CUDA_VISIBLE_DEVICES=''", "none of the 4");
}

TEST(more_gpus_than_there_are_can_not_be_leased)
{
    machine(4);
    ask_gpus("5");
    refused("5 GPUs are asked for", "this server has 4");
    ask_gpus("3-4");
    refused("no GPU 4", "4 (0 to 3)");
    ask_gpus("auto");
    ask(NPROC_NUMBER, 5);
    refused("5 GPUs are asked for", "this server has 4");
    ask_gpus("1");
    spec.gpu_ids = GPU_IDS_UUID;
    refused("--gpu-ids=uuid", "0000:10:00.0"); /* this driver tells none */
}
