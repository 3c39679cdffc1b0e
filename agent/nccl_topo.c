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
#define VALUE_MAX 253 /* NCCL writes longer ones, and fails as it reads them */
#define BEGIN "<system"
#define END "</system>\n"

/* An empty server: NCCL then finds all of it by itself. */
static const char NOTHING[] = "<system version=\"1\">\n" END;

static int create(void)
{
    return memfd_create("launch-topology", MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

/* Nobody can change it any more. */
static int seal(int fd)
{
    return fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK);
}

/* ---- whether ---- */

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
    *t = (struct nccl_topo){.nothing = -1};
    if (spec->standby != STANDBY_NCCL || gpus->vendor != GPU_NVIDIA || !set->n || !standbys ||
        has_own(sysroot, env))
        return;
    t->draft = malloc(standbys * sizeof *t->draft);
    if (!t->draft)
        return;
    memset(t->draft, 0xff, standbys * sizeof *t->draft); /* -1 each */
    t->standbys = standbys;
    AUTO_FD nothing = create();
    if (nothing < 0 || write(nothing, NOTHING, strlen(NOTHING)) < 0 || seal(nothing))
        return;
    for (; t->gpus < set->n; t->gpus++) {
        t->found[t->gpus] = -1;
        if ((t->file[t->gpus] = fcntl(nothing, F_DUPFD_CLOEXEC, 0)) < 0)
            return nccl_topo_finish(t);
    }
    t->nothing = take_fd(&nothing);
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
    *draft = create();
    return *draft < 0 ? NULL : path_of(*draft, text);
}

static bool values_fit(const char *text, size_t n)
{
    size_t value = 0;
    bool quoted = false;
    for (size_t i = 0; i < n && value <= VALUE_MAX; i++) {
        value = quoted && text[i] != '"' ? value + 1 : 0;
        quoted ^= text[i] == '"';
    }
    return value <= VALUE_MAX;
}

/* Nobody can change it any more, all of it is there, and NCCL can read it. */
static bool is_whole(int draft)
{
    static const size_t begin = sizeof BEGIN - 1, end = sizeof END - 1;
    struct stat st;
    if (seal(draft) || fstat(draft, &st) < 0 || st.st_size > DRAFT_MAX_BYTES ||
        st.st_size < (off_t)(begin + end))
        return false;
    size_t n = (size_t)st.st_size;
    AUTO_FREE char *text = malloc(n);
    return text && pread(draft, text, n, 0) == st.st_size && memcmp(text, BEGIN, begin) == 0 &&
           memcmp(text + n - end, END, end) == 0 && values_fit(text, n);
}

void nccl_topo_found(struct nccl_topo *t, uint32_t standby, uint32_t rank)
{
    if (!t || !t->gpus || standby >= t->standbys || t->draft[standby] < 0)
        return;
    unsigned gpu = rank % t->gpus;
    bool whole = is_whole(t->draft[standby]);
    log_debug("a standby has %s the topology of GPU %u of the job", whole ? "told" : "not told",
              gpu);
    if (whole) {
        close_fd(&t->found[gpu]);
        t->found[gpu] = take_fd(&t->draft[standby]);
    }
    close_fd(&t->draft[standby]);
}

bool nccl_topo_knows(const struct nccl_topo *t, uint32_t rank, uint32_t like)
{
    return t && t->gpus && rank % t->gpus == like % t->gpus && t->found[rank % t->gpus] >= 0;
}

void nccl_topo_tell(struct nccl_topo *t, bool all)
{
    if (!t || (!all && !t->told))
        return;
    t->told = all;
    for (unsigned i = 0; i < t->gpus; i++) /* in one step: who opens it sees this or that */
        (void)!dup3(all && t->found[i] >= 0 ? t->found[i] : t->nothing, t->file[i], O_CLOEXEC);
}

void nccl_topo_finish(struct nccl_topo *t)
{
    for (unsigned i = 0; i < t->gpus; i++) {
        close_fd(&t->file[i]);
        close_fd(&t->found[i]);
    }
    for (uint32_t i = 0; i < t->standbys; i++)
        close_fd(&t->draft[i]);
    if (t->gpus)
        close_fd(&t->nothing);
    free(t->draft);
    *t = (struct nccl_topo){0};
}
