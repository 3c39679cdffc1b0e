/* SPDX-License-Identifier: MIT */
/* Any environment: two bytes of settings, a line for CUDA_VISIBLE_DEVICES, then an entry a line. The GPUs are chosen or refused
 * with one line; whatever the launcher decides, a worker finds once. */
#include "../../agent/environ.h"

#include "../../proto/env.h"
#include "fuzz.h"

#define ENTRIES_MAX 64
#define RANKS 3u
#define SEATS (RANKS + 1) /* one standby */

static const struct gpu_list LIST = {
    .vendor = GPU_NVIDIA,
    .n = 4,
    .gpu = {{.pci = "0000:18:00.0", .uuid = "GPU-5eed0000-0000-4000-8000-000000000000"},
            {.pci = "0000:2a:00.0", .uuid = "GPU-5eed0001-0000-4000-8000-000000000001"},
            {.pci = "0000:3a:00.0"},
            {.pci = "0001:3a:00.0", .uuid = "GPU-6eed0001-0000-4000-8000-000000000001"}}};

static void check_set(const struct gpu_set *set)
{
    must(set->n <= GPU_MAX, "more GPUs than fit");
    for (unsigned i = 0; i < set->n; i++) {
        must(set->index[i] >= -1 && set->index[i] < (int)LIST.n, "a GPU that is not in the list");
        check_clean(set->entry[i]);
        for (unsigned j = 0; j < i; j++)
            must(strcmp(set->entry[i], set->entry[j]) != 0, "a GPU twice");
    }
}

static unsigned count(char *const *env, const char *name)
{
    unsigned n = 0;
    for (size_t length = strlen(name); *env; env++)
        n += strncmp(*env, name, length) == 0 && (*env)[length] == '=';
    return n;
}

static void check_seat(const struct environ_job *job, char *const *env, uint32_t seat)
{
    static const char *const once[] = {ENV_WORLD_SIZE, ENV_BOARD_FD,   ENV_BELL_FD,
                                       ENV_SLOT,       ENV_GENERATION, ENV_MASTER_PORT,
                                       ENV_RUN_ID,     ENV_ERROR_FILE, ENV_SIGNALS_TO_HANDLE};
    bool standby = seat >= RANKS, own = job->spec->share_gpus || job->spec->gpu_visibility;
    for (size_t i = 0; i < ARRAY_LEN(once); i++)
        must(count(env, once[i]) == 1, once[i]);
    must(count(env, ENV_RANK) == !standby, "RANK");
    must(count(env, ENV_STANDBY) == standby, "LAUNCH_SPARE");
    must(count(env, ENV_USE_AGENT_STORE) == 0, "the store of another launcher");
    if (job->gpu_set->n && (own || job->gpu_set->chosen))
        must(count(env, ENV_CUDA_VISIBLE) == 1, "CUDA_VISIBLE_DEVICES");
    if (job->gpu_set->n && own && !job->gpu_set->given)
        must(count(env, ENV_CUDA_ORDER) == 1, "CUDA_DEVICE_ORDER");
}

static void make_environments(const struct environ_job *job, char *const *inherited)
{
    struct environ e;
    struct err err;
    must(environ_init(&e, SEATS, inherited, &err) == 0, "no memory");
    for (uint32_t seat = 0; seat < SEATS; seat++)
        check_seat(job, environ_of(&e, job, seat), seat);
    environ_finish(&e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct fuzz_in in = {data, data + n};
    struct job_spec spec;
    struct gpu_set set = {0};
    struct err err;
    char *inherited[ENTRIES_MAX + 1];
    size_t entries = 0;
    uint8_t how = in_u8(&in), visible = in_u8(&in);
    char *text = in_text(&in), *rest = strchr(text, '\n');
    if (rest)
        *rest++ = '\0';
    for (; rest && entries < ENTRIES_MAX; entries++) {
        inherited[entries] = rest;
        if ((rest = strchr(rest, '\n')))
            *rest++ = '\0';
    }
    inherited[entries] = NULL;
    must(spec_init(&spec) == 0, "no memory");
    spec.share_gpus = how & 1;
    spec.gpu_visibility = how & 2 ? GPU_VISIBILITY_RANK : GPU_VISIBILITY_JOB;
    spec.standby = how & 4 ? STANDBY_NCCL : STANDBY_EXEC;
    spec.role = spec.role ? spec.role : strdup("default");
    if (gpu_set_choose(&set, &LIST, ENV_CUDA_VISIBLE, visible & 1 ? text : NULL, &err) < 0)
        check_line(&err);
    check_set(&set);
    set.chosen = visible & 2;
    make_environments(&(struct environ_job){.spec = &spec,
                                            .gpus = &LIST,
                                            .gpu_set = &set,
                                            .run_id = "night",
                                            .world_size = RANKS,
                                            .generation = 1,
                                            .master_port = 29500,
                                            .cpus = 8,
                                            .ras_port = how & 8 ? 28028 : 0,
                                            .board_fd = 100,
                                            .bell_fd = 101},
                      inherited);
    spec_finish(&spec);
    free(text);
    return 0;
}
