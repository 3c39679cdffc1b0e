/* SPDX-License-Identifier: MIT */
#include "nccl_topo.h"

#include "../proto/env.h"
#include "log.h"
#include "nccl_conf.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define SERVERS_FILE                                                                               \
    "/var/run/nvidia-topologyd/virtualTopology.xml" /* NCCL's, where none is named */
#define DRAFT_MAX_BYTES (1024 * 1024)
#define BEGIN "<system"
#define END "</system>\n"

/* An empty server: NCCL then finds all of it by itself. */
static const char NOTHING[] = "<system version=\"1\">\n" END;

/* ---- whether ----*/

static bool has_own(const char *sysroot, char *const *env)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s" SERVERS_FILE, sysroot) >= (int)sizeof path ||
        access(path, F_OK) == 0)
        return true;
    AUTO_FREE struct nccl_conf *conf = malloc(sizeof *conf);
    if (!conf)
        return true;
    nccl_conf_read(conf, sysroot, env, NULL, false);
    return nccl_conf_find(conf, ENV_NCCL_TOPO) || nccl_conf_find(conf, ENV_NCCL_TOPO_DUMP);
}

void nccl_topo_init(struct nccl_topo *t, const struct job_spec *spec, const struct gpu_list *gpus,
                    const struct gpu_set *set, uint32_t standbys, const char *sysroot,
                    char *const *env)
{
    *t = (struct nccl_topo){0};
    if (spec->standby != STANDBY_NCCL || gpus->vendor != GPU_NVIDIA || !set->n || !standbys ||
        has_own(sysroot, env))
        return;
    t->draft = malloc(standbys * sizeof *t->draft);
    if (!t->draft)
        return;
    memset(t->draft, 0xff, standbys * sizeof *t->draft); /* -1 each */
    t->standbys = standbys;
    AUTO_FD nothing = memfd_create("launch-topology", MFD_CLOEXEC);
    if (nothing < 0 || write(nothing, NOTHING, strlen(NOTHING)) < 0)
        return;
    for (; t->gpus < set->n; t->gpus++)
        if ((t->file[t->gpus] = fcntl(nothing, F_DUPFD_CLOEXEC, 0)) < 0)
            return nccl_topo_finish(t);
}

/* ---- what and where ---- */

static const char *path_of(int fd, char text[NCCL_TOPO_PATH_BYTES])
{
    snprintf(text, NCCL_TOPO_PATH_BYTES, "/proc/%d/fd/%d", (int)getpid(), fd);
    return text;
}

const char *nccl_topo_file(const struct nccl_topo *t, uint32_t rank,
                           char text[NCCL_TOPO_PATH_BYTES])
{
    return t && t->gpus ? path_of(t->file[rank % t->gpus], text) : NULL;
}

const char *nccl_topo_draft(struct nccl_topo *t, uint32_t standby, char text[NCCL_TOPO_PATH_BYTES])
{
    if (!t || !t->gpus || standby >= t->standbys)
        return NULL;
    int *draft = &t->draft[standby];
    close_fd(draft);
    *draft = memfd_create("launch-topology", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    return *draft < 0 ? NULL : path_of(*draft, text);
}

/* Nobody can change it any more, and all of it is there. */
static bool is_whole(int draft)
{
    char begin[sizeof BEGIN - 1], end[sizeof END - 1];
    struct stat st;
    return fcntl(draft, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK) == 0 &&
           fstat(draft, &st) == 0 && st.st_size <= DRAFT_MAX_BYTES &&
           st.st_size >= (off_t)(sizeof begin + sizeof end) &&
           pread(draft, begin, sizeof begin, 0) == (ssize_t)sizeof begin &&
           pread(draft, end, sizeof end, st.st_size - (off_t)sizeof end) == (ssize_t)sizeof end &&
           memcmp(begin, BEGIN, sizeof begin) == 0 && memcmp(end, END, sizeof end) == 0;
}

void nccl_topo_publish(struct nccl_topo *t, uint32_t standby, uint32_t rank)
{
    if (!t || !t->gpus || standby >= t->standbys || t->draft[standby] < 0)
        return;
    unsigned gpu = rank % t->gpus;
    bool whole = is_whole(t->draft[standby]);
    log_debug("a standby has %s the topology of GPU %u of the job", whole ? "told" : "not told",
              gpu);
    if (whole) /* in one step: whoever opens it sees the one before, or this */
        (void)!dup3(t->draft[standby], t->file[gpu], O_CLOEXEC);
    close_fd(&t->draft[standby]);
}

void nccl_topo_finish(struct nccl_topo *t)
{
    for (unsigned i = 0; i < t->gpus; i++)
        close_fd(&t->file[i]);
    for (uint32_t i = 0; i < t->standbys; i++)
        close_fd(&t->draft[i]);
    free(t->draft);
    *t = (struct nccl_topo){0};
}
