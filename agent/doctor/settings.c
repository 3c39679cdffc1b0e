/* SPDX-License-Identifier: MIT */
/* What changes NCCL and ROCm from outside: variables, and the files that NCCL reads. */
#include "checks.h"

#include "../nccl_conf.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* ---- leftovers ---- */

/* Why a setting changes nothing on this machine; NULL: it may. */

static const char *one_gpu(const struct doctor *d)
{
    return d->t->list.n == 1 ? "there is one GPU" : NULL;
}

static const char *no_p2p(const struct doctor *d)
{
    const char *moot = one_gpu(d);
    return !moot && fabric_lacks_p2p(d) ? "no pair of GPUs has P2P" : moot;
}

static const char *no_switch(const struct doctor *d)
{
    const char *moot = one_gpu(d);
    return !moot && fabric_lacks_switch(d) ? "there is no NVSwitch" : moot;
}

/* Values that are seldom meant for a job that shall be fast. */
static const struct leftover {
    const char *name;
    const char *values; /* "1 2"; NULL: any */
    enum verdict verdict;
    const char *consequence;
    const char *(*moot)(const struct doctor *d); /* NULL: never */
} LEFTOVERS[] = {
    {"NCCL_P2P_DISABLE", "1", VERDICT_WARNING,
     "GPUs talk through host memory, although they reach one another's", no_p2p},
    {"NCCL_P2P_LEVEL", "LOC 0", VERDICT_WARNING,
     "GPUs talk through host memory, although they reach one another's", no_p2p},
    {"NCCL_SHM_DISABLE", "1", VERDICT_WARNING,
     "pairs without P2P talk over the network instead of shared memory", one_gpu},
    {"NCCL_NVLS_ENABLE", "0", VERDICT_WARNING,
     "all-reduce over NVSwitches loses about a fifth of its bandwidth", no_switch},
    {"NCCL_CUMEM_ENABLE", "0", VERDICT_WARNING,
     "buffers are made the old way; NVLS, where there are NVSwitches, is off with it", one_gpu},
    {"NCCL_RUNTIME_CONNECT", "0", VERDICT_WARNING, "every start connects all channels at once",
     one_gpu},
    {"NCCL_ALGO", NULL, VERDICT_WARNING, "the best algorithm for each size can't be chosen",
     one_gpu},
    {"NCCL_PROTO", NULL, VERDICT_WARNING,
     "the best protocol for each size can't be chosen; a wrong one may corrupt data", one_gpu},
    {"NCCL_MAX_NCHANNELS", NULL, VERDICT_WARNING, "fewer channels, less bandwidth", one_gpu},
    {"NCCL_MAX_CTAS", NULL, VERDICT_WARNING, "fewer channels, less bandwidth", one_gpu},
    {"NCCL_MIN_NCHANNELS", NULL, VERDICT_WARNING, "more channels take SMs from the computation",
     one_gpu},
    {"NCCL_MIN_CTAS", NULL, VERDICT_WARNING, "more channels take SMs from the computation",
     one_gpu},
    {"NCCL_BUFFSIZE", NULL, VERDICT_WARNING, "buffers of another size than NCCL's", one_gpu},
    {"NCCL_NTHREADS", NULL, VERDICT_WARNING, "kernels of another size than NCCL's", one_gpu},
    {"NCCL_LAUNCH_MODE", NULL, VERDICT_WARNING, "kernels start one way for all sizes", one_gpu},
    {"NCCL_CHECK_POINTERS", "1", VERDICT_WARNING, "every call checks its pointers: slow", NULL},
    {"NCCL_DEBUG", "INFO TRACE", VERDICT_WARNING, "every rank prints a lot; TRACE is slow, too",
     NULL},
    {"NCCL_COMM_ID", NULL, VERDICT_WARNING,
     "all jobs with it meet at one port: two at once disturb each other", NULL},
    {"NCCL_HOSTID", NULL, VERDICT_WARNING,
     "ranks with different values count as different hosts: no P2P between them", one_gpu},
    {"NCCL_IGNORE_DISABLED_P2P", "1", VERDICT_WARNING, "nobody tells any more that P2P is broken",
     one_gpu},
    {"NCCL_RAS_ENABLE", "0", VERDICT_WARNING, "hung jobs can't be asked which rank is behind",
     NULL},
    {"NCCL_BLOCKING_WAIT", "1", VERDICT_WARNING, "PyTorch waits on the CPU for each collective",
     NULL},
    {"TORCH_NCCL_BLOCKING_WAIT", "1", VERDICT_WARNING,
     "PyTorch waits on the CPU for each collective", NULL},
    {"CUDA_LAUNCH_BLOCKING", "1", VERDICT_WARNING,
     "every kernel is waited for: slow, and some jobs deadlock", NULL},
};

static bool is_word(const char *list, const char *value)
{
    size_t n = strlen(value);
    for (const char *at = list; n && (at = strstr(at, value)); at++)
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
            return true;
    return false;
}

static const struct leftover *find_leftover(const struct nccl_setting *s)
{
    for (size_t i = 0; i < ARRAY_LEN(LEFTOVERS); i++)
        if (strcmp(LEFTOVERS[i].name, s->name) == 0 &&
            (!LEFTOVERS[i].values || is_word(LEFTOVERS[i].values, s->value)))
            return &LEFTOVERS[i];
    return NULL;
}

static const char *moot_here(const struct doctor *d, const struct nccl_setting *s)
{
    const struct leftover *leftover = find_leftover(s);
    return leftover && leftover->moot ? leftover->moot(d) : NULL;
}

/* ---- judging ---- */

static void judge_interface(struct doctor *d, const struct nccl_setting *s)
{
    /* One exact name only: prefixes, lists and exclusions choose among what there is. */
    char path[PATH_MAX];
    const char *name = s->value + (s->value[0] == '=');
    snprintf(path, sizeof path, "%s/sys/class/net", d->sysroot);
    if (s->value[0] != '=' || strchr(name, ',') || access(path, F_OK) < 0)
        return;
    snprintf(path, sizeof path, "%s/sys/class/net/%s", d->sysroot, name);
    if (access(path, F_OK) < 0)
        doctor_find(d, VERDICT_BROKEN,
                    NCCL_OR_RCCL(d, " finds no interface (\"no socket interface found\")"),
                    "unset it: launch gives its workers lo", "%s=%s (%s): no /sys/class/net/%s",
                    s->name, s->value, s->where, name);
}

static void judge_file(struct doctor *d, const struct nccl_setting *s)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s%s", d->sysroot, s->value);
    if (access(path, R_OK) < 0)
        doctor_find(d, VERDICT_WARNING, NCCL_OR_RCCL(d, " looks for the topology itself, or fails"),
                    "unset it, or name a file that is there", "%s=%s (%s): %s", s->name, s->value,
                    s->where, strerror(errno));
}

static void judge(struct doctor *d, const struct nccl_setting *s)
{
    const struct leftover *leftover = find_leftover(s);
    size_t n = strlen(s->name);
    if (s->from_file && (n == 0 || strchr(" \t", s->name[0]) || strchr(" \t", s->name[n - 1])))
        doctor_find(d, VERDICT_WARNING,
                    NCCL_OR_RCCL(d, " takes the blanks for part of the name: it has no effect"),
                    "write NAME=value without blanks, and without export", "%s: \"%s=%s\"",
                    s->where, s->name, s->value);
    else if (leftover && !moot_here(d, s))
        doctor_find(
            d, leftover->verdict, leftover->consequence,
            "unset it there, unless it is meant; a job that is faster or works only with it "
            "tells of a fault",
            "%s=%s (%s)", s->name, s->value, s->where);
    else if (strcmp(s->name, "NCCL_SOCKET_IFNAME") == 0)
        judge_interface(d, s);
    else if (strcmp(s->name, "NCCL_TOPO_FILE") == 0 || strcmp(s->name, "NCCL_GRAPH_FILE") == 0)
        judge_file(d, s);
}

static void judge_files(struct doctor *d, const struct nccl_conf *conf)
{
    const struct nccl_setting *named = nccl_conf_find(conf, "NCCL_CONF_FILE");
    const struct nccl_conf_file *files[] = {&conf->user, &conf->system};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        int trouble = files[i]->trouble;
        if (trouble && trouble != -ENOENT && trouble != -ENOTDIR)
            doctor_find(d, VERDICT_WARNING, NCCL_OR_RCCL(d, " leaves it out without a word"),
                        "make it readable for this user, or remove it", "%s: %s", files[i]->path,
                        strerror(-trouble));
    }
    if (named && named->value[0] && conf->user.trouble)
        doctor_find(
            d, VERDICT_WARNING,
            d->vendor == GPU_AMD ? "RCCL leaves it out without a word, and ~/.rccl.conf too"
                                 : "NCCL leaves it out without a word, and ~/.nccl.conf too",
            "correct or unset NCCL_CONF_FILE", "NCCL_CONF_FILE=%s can't be read", named->value);
}

static void put(const struct doctor *d, struct doctor_list *list, const struct nccl_setting *s)
{
    const char *moot = moot_here(d, s);
    doctor_list_add(list, "%s=%s (%s%s%s)", s->name, s->value, s->where,
                    moot ? "; changes nothing: " : "", moot ? moot : "");
}

static void judge_all(struct doctor *d, const struct nccl_conf *conf)
{
    struct doctor_list list = {0}, beaten = {0};
    unsigned before = d->n;
    const char *blocking = doctor_variable(d, "CUDA_LAUNCH_BLOCKING");
    struct nccl_setting cuda = {.name = "CUDA_LAUNCH_BLOCKING", .where = "environment"};
    judge_files(d, conf);
    for (unsigned i = 0; i < conf->n; i++) {
        const struct nccl_setting *s = &conf->setting[i];
        put(d, s->beaten ? &beaten : &list, s);
        if (!s->beaten)
            judge(d, s);
    }
    if (blocking) {
        snprintf(cuda.value, sizeof cuda.value, "%s", blocking);
        put(d, &list, &cuda);
        judge(d, &cuda);
    }
    if (beaten.n)
        doctor_find(d, VERDICT_WARNING, "these have no effect: the same name is set before them",
                    "keep one of them", "%s", beaten.text);
    if (list.n == 0)
        doctor_ok(d, "nothing is set: no NCCL_ in the environment, no %s%s%s", conf->user.path,
                  conf->user.path[0] ? ", no " : "", conf->system.path);
    else if (d->n == before)
        doctor_ok(d, "%s", list.text);
}

void settings_check_nccl(struct doctor *d)
{
    AUTO_FREE struct nccl_conf *conf = malloc(sizeof *conf);
    if (!conf) {
        doctor_blind(d, "no memory");
        return;
    }
    nccl_conf_read(conf, d->sysroot, d->environment, d->home, d->vendor == GPU_AMD);
    judge_all(d, conf);
}

/* ---- ROCm ---- */

void settings_check_amd(struct doctor *d)
{
    const char *rocr = doctor_variable(d, "ROCR_VISIBLE_DEVICES");
    const char *hip = doctor_variable(d, "HIP_VISIBLE_DEVICES");
    const char *cuda = doctor_variable(d, "CUDA_VISIBLE_DEVICES");
    const char *grain = doctor_variable(d, "HSA_FORCE_FINE_GRAIN_PCIE");
    const char *sdma = doctor_variable(d, "HSA_ENABLE_SDMA");
    unsigned before = d->n;
    if (rocr && *rocr && ((hip && *hip) || (cuda && *cuda)))
        doctor_find(
            d, VERDICT_WARNING,
            "both apply, one after the other: numbers of the second count in what the first "
            "left (\"No HIP GPUs are available\")",
            "unset ROCR_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES=%s and %s=%s", rocr,
            hip && *hip ? "HIP_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES", hip && *hip ? hip : cuda);
    if (sdma && strcmp(sdma, "0") == 0)
        doctor_find(d, VERDICT_WARNING, "copies take the place of computation",
                    "unset it, unless it is meant", "HSA_ENABLE_SDMA=0");
    if (d->n == before)
        doctor_ok(d,
                  "HSA_FORCE_FINE_GRAIN_PCIE %s%s: matters for P2P over PCIe only, not over xGMI",
                  grain ? "is " : "is not set", grain ? grain : "");
}
