/* SPDX-License-Identifier: MIT */
#include "standby.h"

#include "../../proto/env.h"
#include "../../proto/status.h"
#include "../clean.h"
#include "../gpu_users.h"
#include "../json.h"

#include <inttypes.h>
#include <stdio.h>

static const char *state_of(const struct wire_rank *s)
{
    return !s->pid ? "none" : s->stage == STAGE_JOINED ? "warm" : "starting";
}

/* NVML is asked for GPU jobs only. False: nothing is known. */
static bool read_users(const struct wire_rank *list, size_t n, struct gpu_users *ret)
{
    const char *sysroot = getenv(ENV_SYSROOT);
    struct gpu_list gpus;
    struct err err;
    bool wanted = false;
    for (size_t i = 0; i < n; i++)
        wanted |= list[i].standby && list[i].pid && list[i].gpu[0];
    sysroot = sysroot ? sysroot : "";
    return wanted && gpu_list_read(&gpus, sysroot, &err) == 0 &&
           gpu_users_read(ret, sysroot, &gpus) == 0;
}

/* Of all GPUs; 0 also when NVML counts pids of another namespace. */
static uint64_t gpu_bytes(const struct gpu_users *users, int32_t pid)
{
    uint64_t bytes = 0;
    for (unsigned i = 0; i < users->n; i++)
        bytes += users->user[i].pid == pid ? users->user[i].bytes : 0;
    return bytes;
}

void standby_print(const struct wire_rank *list, size_t n)
{
    struct gpu_users users;
    bool known = read_users(list, n, &users);
    for (size_t i = 0; i < n; i++) {
        const struct wire_rank *s = &list[i];
        char gpu[sizeof s->gpu];
        printf("standby %" PRIu32 ": %s", s->rank, state_of(s));
        if (s->pid)
            printf(", pid %" PRId32 ", %.1fM", s->pid, (double)s->rss_kb / 1024);
        if (s->pid && known)
            printf(", %.1fM on GPU %s", (double)gpu_bytes(&users, s->pid) / (1 << 20),
                   clean(gpu, sizeof gpu, s->gpu));
        printf("\n");
    }
}

void standby_print_json(const struct wire_rank *list, size_t n)
{
    struct gpu_users users;
    bool known = read_users(list, n, &users);
    printf(", \"standby\": [");
    for (size_t i = 0; i < n; i++) {
        const struct wire_rank *s = &list[i];
        struct json_members m = {stdout, i > 0 ? ",\n  {" : "\n  {", ", "};
        json_number(&m, "standby", true, s->rank);
        json_number(&m, "pid", true, s->pid);
        json_text(&m, "state", state_of(s));
        json_text(&m, "gpu", s->gpu);
        json_number(&m, "rss_bytes", true, (long long)s->rss_kb * 1024);
        json_number(&m, "gpu_bytes", known, known ? (long long)gpu_bytes(&users, s->pid) : 0);
        printf("}");
    }
    printf("%s]", n > 0 ? "\n" : "");
}
