/* SPDX-License-Identifier: MIT */
#include "../../agent/environ.h"
#include "../../agent/placement.h"
#include "../../proto/env.h"
#include "../harness.h"

#include <stdio.h>

static struct job_spec spec;
static struct gpu_list gpus;
static struct gpu_set gpu_set;
static struct environ_job job;

static void setup(uint32_t world_size, unsigned gpu_count)
{
    static char role[] = "default", addr[] = "127.0.0.1";
    spec = (struct job_spec){.role = role, .master_addr = addr, .max_restarts = 3};
    gpus = (struct gpu_list){.vendor = gpu_count ? GPU_NVIDIA : GPU_NONE, .n = gpu_count};
    gpu_set = (struct gpu_set){.n = gpu_count};
    for (unsigned i = 0; i < gpu_count; i++)
        snprintf(gpu_set.entry[i], sizeof gpu_set.entry[i], "%u", i);
    job = (struct environ_job){.spec = &spec,
                               .gpus = &gpus,
                               .gpu_set = &gpu_set,
                               .run_id = "run7",
                               .world_size = world_size,
                               .generation = 2,
                               .restart_count = 1,
                               .master_port = 4242,
                               .cpus = 16,
                               .board_fd = 100,
                               .bell_fd = 101};
}

static const char *value(char *const *env, const char *name)
{
    const char *found = NULL;
    size_t n = strlen(name);
    for (; *env; env++) {
        if (strncmp(*env, name, n) != 0 || (*env)[n] != '=')
            continue;
        CHECK(!found); /* no variable twice */
        found = *env + n + 1;
    }
    return found;
}

static char *const *environment(struct environ *e, char *const *inherited, uint32_t rank)
{
    CHECK_INT(environ_init(e, job.world_size, inherited, NULL), ==, 0);
    return environ_of(e, &job, rank);
}

TEST(torchruns_variables_have_torchruns_values)
{
    struct environ e;
    char *none[] = {NULL};
    setup(8, 0);
    char *const *env = environment(&e, none, 5);
    static const char *const want[][2] = {
        {"RANK", "5"},
        {"LOCAL_RANK", "5"},
        {"WORLD_SIZE", "8"},
        {"LOCAL_WORLD_SIZE", "8"},
        {"GROUP_RANK", "0"},
        {"GROUP_WORLD_SIZE", "1"},
        {"ROLE_NAME", "default"},
        {"ROLE_RANK", "5"},
        {"ROLE_WORLD_SIZE", "8"},
        {"MASTER_ADDR", "127.0.0.1"},
        {"MASTER_PORT", "4242"},
        {"TORCHELASTIC_RESTART_COUNT", "1"},
        {"TORCHELASTIC_MAX_RESTARTS", "3"},
        {"TORCHELASTIC_RUN_ID", "run7"},
        {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
        {"NCCL_SOCKET_IFNAME", "lo"},
        {"OMP_NUM_THREADS", "2"},
        {"LAUNCH_SLOT", "5"},
    };
    for (size_t i = 0; i < ARRAY_LEN(want); i++)
        CHECK_STR(value(env, want[i][0]), want[i][1]);
    CHECK(!value(env, "TORCHELASTIC_USE_AGENT_STORE"));
    CHECK(!value(env, "CUDA_VISIBLE_DEVICES"));
    environ_finish(&e);
}

TEST(an_outer_jobs_variables_never_reach_a_worker)
{
    struct environ e;
    char *outer[] = {"RANK=7",
                     "WORLD_SIZE=99",
                     "LOCAL_RANK=5",
                     "MASTER_ADDR=10.9.8.7",
                     "MASTER_PORT=1",
                     "TORCHELASTIC_USE_AGENT_STORE=True",
                     "TORCHELASTIC_ERROR_FILE=/outer",
                     "LAUNCH_BOARD_FD=3",
                     "PATH=/bin",
                     NULL};
    setup(2, 0);
    char *const *env = environment(&e, outer, 1);
    CHECK_STR(value(env, "RANK"), "1");
    CHECK_STR(value(env, "WORLD_SIZE"), "2");
    CHECK_STR(value(env, "MASTER_ADDR"), "127.0.0.1");
    CHECK_STR(value(env, "LAUNCH_BOARD_FD"), "100");
    CHECK_STR(value(env, "PATH"), "/bin");
    CHECK_STR(value(env, "TORCHELASTIC_ERROR_FILE"), "");
    CHECK(!value(env, "TORCHELASTIC_USE_AGENT_STORE"));
    environ_finish(&e);
    job.error_file = "/logs/attempt_0/1/error.json";
    env = environment(&e, outer, 1);
    CHECK_STR(value(env, "TORCHELASTIC_ERROR_FILE"), "/logs/attempt_0/1/error.json");
    environ_finish(&e);
}

TEST(the_users_own_values_win_where_they_may)
{
    struct environ e;
    char *own[] = {"OMP_NUM_THREADS=5", "NCCL_SOCKET_IFNAME=eth0",
                   "TORCH_NCCL_ASYNC_ERROR_HANDLING=3", NULL};
    setup(4, 0);
    char *const *env = environment(&e, own, 0);
    CHECK_STR(value(env, "OMP_NUM_THREADS"), "5");
    CHECK_STR(value(env, "NCCL_SOCKET_IFNAME"), "eth0");
    CHECK_STR(value(env, "TORCH_NCCL_ASYNC_ERROR_HANDLING"), "3");
    environ_finish(&e);
}

TEST(odd_variables_are_handed_on_byte_for_byte)
{
    struct environ e;
    char *odd[] = {"BASH_FUNC_x%%=() {  echo hi;\n}",
                   "ML=a\nb\n",
                   "EQ=x=y=z",
                   "E=",
                   "RAW=\xff\xfe",
                   "no-equals-sign",
                   NULL};
    setup(2, 0);
    char *const *env = environment(&e, odd, 0);
    for (size_t i = 0; odd[i]; i++)
        CHECK(env[i] == odd[i]);
    environ_finish(&e);
}

TEST(one_environment_follows_another_without_traces)
{
    struct environ e;
    char *own[] = {"CUDA_VISIBLE_DEVICES=0,1", NULL};
    setup(2, 2);
    spec.gpu_visibility = GPU_VISIBILITY_RANK;
    environment(&e, own, 0);
    for (uint32_t rank = 0; rank < 2; rank++) {
        char *const *env = environ_of(&e, &job, rank);
        char text[8];
        snprintf(text, sizeof text, "%u", rank);
        CHECK_STR(value(env, "RANK"), text);
        CHECK_STR(value(env, "CUDA_VISIBLE_DEVICES"), text);
        CHECK_STR(value(env, "LOCAL_RANK"), "0");
    }
    environ_finish(&e);
}

TEST(bare_gpu_numbers_of_ours_come_with_the_pci_order_and_the_users_own_do_not)
{
    struct environ e;
    char *none[] = {NULL},
         *own[] = {"CUDA_VISIBLE_DEVICES=1,0", "CUDA_DEVICE_ORDER=FASTEST_FIRST", NULL};
    setup(2, 2);
    spec.gpu_visibility = GPU_VISIBILITY_RANK;
    CHECK_STR(value(environment(&e, none, 1), "CUDA_DEVICE_ORDER"), "PCI_BUS_ID");
    environ_finish(&e);
    gpu_set.given = true;
    strcpy(gpu_set.entry[0], "1");
    strcpy(gpu_set.entry[1], "0");
    char *const *env = environment(&e, own, 0);
    CHECK_STR(value(env, "CUDA_VISIBLE_DEVICES"), "1");
    CHECK_STR(value(env, "CUDA_DEVICE_ORDER"), "FASTEST_FIRST");
    environ_finish(&e);
}

TEST(ranks_that_share_a_gpu_get_a_host_name_each_and_one_visible_gpu)
{
    struct environ e;
    char *none[] = {NULL};
    setup(8, 2);
    spec.share_gpus = true;
    CHECK_INT(environ_init(&e, job.world_size, none, NULL), ==, 0);
    for (uint32_t rank = 0; rank < 8; rank++) {
        char *const *env = environ_of(&e, &job, rank);
        char host[64], gpu[8];
        snprintf(host, sizeof host, "launch-run7-%u", rank);
        snprintf(gpu, sizeof gpu, "%u", rank % 2);
        CHECK_STR(value(env, "NCCL_HOSTID"), host);
        CHECK_STR(value(env, "CUDA_VISIBLE_DEVICES"), gpu);
        CHECK_STR(value(env, ENV_SHARE_GPUS), "1");
        CHECK_INT(environ_device(&job, rank), ==, 0);
    }
    environ_finish(&e);
}

TEST(every_worker_gets_a_fair_share_of_the_cpus_and_at_least_one)
{
    struct environ e;
    char *none[] = {NULL};
    for (unsigned cpus = 1; cpus <= 64; cpus++)
        for (uint32_t n = 1; n <= 64; n++) {
            setup(n, 0);
            job.cpus = cpus;
            char want[8];
            snprintf(want, sizeof want, "%u", cpus / n ? cpus / n : 1);
            CHECK_STR(value(environment(&e, none, 0), "OMP_NUM_THREADS"), want);
            environ_finish(&e);
        }
}

TEST(the_device_of_a_rank_follows_its_visibility)
{
    setup(4, 4);
    for (uint32_t rank = 0; rank < 4; rank++)
        CHECK_INT(environ_device(&job, rank), ==, rank);
    spec.gpu_visibility = GPU_VISIBILITY_RANK;
    CHECK_INT(environ_device(&job, 3), ==, 0);
    gpu_set.n = 0;
    CHECK_INT(environ_device(&job, 3), ==, -1);
}

TEST(a_watched_worker_is_told_where_to_send_its_heartbeats_and_how_often)
{
    struct environ e;
    struct notify_rank ranks[2] = {{.address = "@one"}, {.address = "@two"}};
    struct notify notify = {.n = 2, .ranks = ranks};
    char *outer[] = {"A=1", "WATCHDOG_PID=7", "NOTIFY_SOCKET=/run/x", "WATCHDOG_USEC=1", "Z=2",
                     NULL};
    setup(2, 2);
    char *const *env = environment(&e, outer, 1);
    CHECK_STR(value(env, "NOTIFY_SOCKET"), "/run/x");
    CHECK_STR(value(env, "WATCHDOG_PID"), "7");
    environ_finish(&e);
    job.notify = &notify;
    spec.hang_timeout_ms = 1500;
    spec.gpu_visibility = GPU_VISIBILITY_RANK;
    env = environment(&e, outer, 1);
    CHECK_STR(value(env, "NOTIFY_SOCKET"), "@two");
    CHECK_STR(value(env, "WATCHDOG_USEC"), "1500000");
    CHECK(!value(env, "WATCHDOG_PID"));
    CHECK_STR(value(env, "A"), "1");
    CHECK_STR(value(env, "Z"), "2");
    CHECK_STR(value(env, "CUDA_VISIBLE_DEVICES"), "1");
    CHECK_STR(value(env, "RANK"), "1");
    environ_finish(&e);
}

TEST(a_standby_is_told_that_it_is_one_and_has_no_rank_yet)
{
    struct environ e;
    char *none[] = {NULL};
    setup(4, 0);
    spec.standby = STANDBY_NCCL;
    CHECK_INT(environ_init(&e, 5, none, NULL), ==, 0);
    char *const *env = environ_of(&e, &job, 4);
    CHECK_STR(value(env, "LAUNCH_SPARE"), "3");
    CHECK_STR(value(env, "LAUNCH_SLOT"), "4");
    CHECK_STR(value(env, "WORLD_SIZE"), "4");
    CHECK(!value(env, "RANK") && !value(env, "LOCAL_RANK") && !value(env, "ROLE_RANK"));
    CHECK(!value(environ_of(&e, &job, 3), "LAUNCH_SPARE"));
    environ_finish(&e);
}

TEST(a_standby_that_sees_one_gpu_fits_ranks_of_that_gpu_only)
{
    setup(4, 2);
    CHECK(environ_fits(&job, 4, 0) && environ_fits(&job, 4, 1));
    spec.share_gpus = true;
    CHECK(environ_fits(&job, 4, 0) && !environ_fits(&job, 4, 1) && environ_fits(&job, 4, 2));
    CHECK(!environ_fits(&job, 5, 0) && environ_fits(&job, 5, 3));
}

TEST(a_rank_with_a_place_has_threads_for_its_cores_unless_the_user_said_how_many)
{
    struct environ e;
    char *none[] = {NULL}, own[] = "OMP_NUM_THREADS=5", *given[] = {own, NULL};
    struct place places[2] = {{.threads = 7}, {.threads = 9}};
    struct placement placement = {.n = 2, .places = places};
    setup(2, 0);
    job.placement = &placement;
    CHECK_STR(value(environment(&e, none, 1), ENV_OMP), "9");
    environ_finish(&e);
    CHECK_STR(value(environment(&e, given, 1), ENV_OMP), "5");
    environ_finish(&e);
    placement.places = NULL; /* nobody is placed */
    CHECK_STR(value(environment(&e, none, 1), ENV_OMP), "8");
    environ_finish(&e);
}

TEST(leased_gpus_are_named_to_all_workers)
{
    struct environ e;
    char *inherited[] = {"CUDA_VISIBLE_DEVICES=9,8,7", "CUDA_DEVICE_ORDER=FASTEST_FIRST", NULL};
    setup(2, 3);
    gpu_set.chosen = true;
    char *const *env = environment(&e, inherited, 1);
    CHECK_STR(value(env, "CUDA_VISIBLE_DEVICES"), "0,1,2");
    CHECK_STR(value(env, "CUDA_DEVICE_ORDER"), "PCI_BUS_ID");
    CHECK_STR(value(env, "LOCAL_RANK"), "1");
    environ_finish(&e);
    gpu_set.given = true; /* the user's own numbers keep the user's meaning */
    env = environment(&e, inherited, 1);
    CHECK_STR(value(env, "CUDA_DEVICE_ORDER"), "FASTEST_FIRST");
    environ_finish(&e);
}

TEST(a_variable_that_was_inherited_twice_is_replaced_as_a_whole)
{
    struct environ e;
    char *inherited[] = {"CUDA_VISIBLE_DEVICES=9",
                         "CUDA_VISIBLE_DEVICES=8",
                         "X=",
                         "X=1",
                         "CUDA_VISIBLE_DEVICES=7",
                         NULL};
    setup(2, 2);
    gpu_set.chosen = true;
    CHECK_STR(value(environment(&e, inherited, 0), "CUDA_VISIBLE_DEVICES"), "0,1");
    environ_finish(&e);
}

TEST(nccls_ras_has_a_port_of_the_job_unless_the_user_chose_one)
{
    struct environ e;
    char *none[] = {NULL}, *own[] = {"NCCL_RAS_ADDR=127.0.0.1:77", NULL},
         *outer[] = {"NCCL_RAS_ADDR=127.0.0.1:77", "LAUNCH_BOARD_FD=3", NULL};
    setup(2, 2);
    CHECK(value(environment(&e, none, 0), "NCCL_RAS_ADDR") == NULL);
    environ_finish(&e);
    job.ras_port = 4444;
    CHECK_STR(value(environment(&e, none, 0), "NCCL_RAS_ADDR"), "127.0.0.1:4444");
    environ_finish(&e);
    CHECK_STR(value(environment(&e, own, 0), "NCCL_RAS_ADDR"), "127.0.0.1:77");
    environ_finish(&e);
    CHECK_STR(value(environment(&e, outer, 0), "NCCL_RAS_ADDR"), "127.0.0.1:4444");
    environ_finish(&e);
}
