/* SPDX-License-Identifier: MIT */
/* What changes NCCL and ROCm from outside: variables, and the files that NCCL reads. Of a name that is set twice the
 * environment wins, then NCCL_CONF_FILE or else ~/.nccl.conf, then /etc/nccl.conf: NCCL sets what is not set yet. */
#include "checks.h"

#include "../sysfile.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define SETTINGS_MAX 256
#define NAME_BYTES 64
#define VALUE_BYTES 128
#define FILE_BYTES 65536
#define ENVIRONMENT "environment"

struct setting {
    char name[NAME_BYTES], value[VALUE_BYTES];
    const char *source;
    bool beaten; /* by a source before it */
};

struct settings {
    unsigned n;
    struct setting of[SETTINGS_MAX];
    char user_file[PATH_MAX];
};

/* ---- leftovers ---- */

/* Values that are seldom meant for a job that shall be fast. */
static const struct leftover {
    const char *name;
    const char *values; /* "1 2"; NULL: any */
    enum verdict verdict;
    const char *consequence;
} LEFTOVERS[] = {
    {"NCCL_P2P_DISABLE", "1", VERDICT_WARNING,
     "GPUs talk through host memory, even where NVLink joins them"},
    {"NCCL_P2P_LEVEL", "LOC 0", VERDICT_WARNING,
     "GPUs talk through host memory, even where NVLink joins them"},
    {"NCCL_SHM_DISABLE", "1", VERDICT_WARNING,
     "pairs without P2P talk over the network instead of shared memory"},
    {"NCCL_NVLS_ENABLE", "0", VERDICT_WARNING,
     "all-reduce over NVSwitches loses about a fifth of its bandwidth"},
    {"NCCL_CUMEM_ENABLE", "0", VERDICT_WARNING,
     "buffers are made the old way; NVLS is off with it"},
    {"NCCL_RUNTIME_CONNECT", "0", VERDICT_WARNING, "every start connects all channels at once"},
    {"NCCL_ALGO", NULL, VERDICT_WARNING, "NCCL can't choose the best algorithm for each size"},
    {"NCCL_PROTO", NULL, VERDICT_WARNING,
     "NCCL can't choose the best protocol for each size; a wrong one may corrupt data"},
    {"NCCL_MAX_NCHANNELS", NULL, VERDICT_WARNING, "fewer channels, less bandwidth"},
    {"NCCL_MAX_CTAS", NULL, VERDICT_WARNING, "fewer channels, less bandwidth"},
    {"NCCL_MIN_NCHANNELS", NULL, VERDICT_WARNING, "more channels take SMs from the computation"},
    {"NCCL_MIN_CTAS", NULL, VERDICT_WARNING, "more channels take SMs from the computation"},
    {"NCCL_BUFFSIZE", NULL, VERDICT_WARNING, "buffers of another size than NCCL's"},
    {"NCCL_NTHREADS", NULL, VERDICT_WARNING, "kernels of another size than NCCL's"},
    {"NCCL_LAUNCH_MODE", NULL, VERDICT_WARNING, "kernels start one way for all sizes"},
    {"NCCL_CHECK_POINTERS", "1", VERDICT_WARNING, "every call checks its pointers: slow"},
    {"NCCL_DEBUG", "INFO TRACE", VERDICT_WARNING, "every rank prints a lot; TRACE is slow, too"},
    {"NCCL_COMM_ID", NULL, VERDICT_WARNING,
     "all jobs with it meet at one port: two at once disturb each other"},
    {"NCCL_HOSTID", NULL, VERDICT_WARNING,
     "ranks with different values count as different hosts: no P2P between them"},
    {"NCCL_IGNORE_DISABLED_P2P", "1", VERDICT_WARNING,
     "NCCL does not tell any more that P2P is broken"},
    {"NCCL_RAS_ENABLE", "0", VERDICT_WARNING, "hung jobs can't be asked which rank is behind"},
    {"NCCL_BLOCKING_WAIT", "1", VERDICT_WARNING, "PyTorch waits on the CPU for each collective"},
    {"TORCH_NCCL_BLOCKING_WAIT", "1", VERDICT_WARNING,
     "PyTorch waits on the CPU for each collective"},
    {"CUDA_LAUNCH_BLOCKING", "1", VERDICT_WARNING,
     "every kernel is waited for: slow, and some jobs deadlock"},
    {"CUDA_DEVICE_MAX_CONNECTIONS", "0", VERDICT_WARNING, "streams wait for each other"},
};

static bool is_word(const char *list, const char *value)
{
    size_t n = strlen(value);
    for (const char *at = list; n && (at = strstr(at, value)); at++)
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
            return true;
    return false;
}

static const struct leftover *find_leftover(const struct setting *s)
{
    for (size_t i = 0; i < ARRAY_LEN(LEFTOVERS); i++)
        if (strcmp(LEFTOVERS[i].name, s->name) == 0 &&
            (!LEFTOVERS[i].values || is_word(LEFTOVERS[i].values, s->value)))
            return &LEFTOVERS[i];
    return NULL;
}

/* ---- reading ---- */

/* Of the libraries, and what else is in the table. */
static bool is_ours(const char *name, size_t n)
{
    static const char *const prefixes[] = {"NCCL_", "RCCL_", "TORCH_NCCL_"};
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
        if (n > strlen(prefixes[i]) && strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    for (size_t i = 0; i < ARRAY_LEN(LEFTOVERS); i++)
        if (n == strlen(LEFTOVERS[i].name) && strncmp(name, LEFTOVERS[i].name, n) == 0)
            return true;
    return false;
}

/* "NAME=value" of n bytes; NCCL takes both as they stand, blanks too. */
static void take(struct settings *all, const char *text, size_t n, const char *source)
{
    const char *equals = memchr(text, '=', n);
    if (!equals || all->n == SETTINGS_MAX)
        return;
    struct setting *s = &all->of[all->n++];
    *s = (struct setting){.source = source};
    snprintf(s->name, sizeof s->name, "%.*s", (int)(equals - text), text);
    snprintf(s->value, sizeof s->value, "%.*s", (int)(n - (size_t)(equals + 1 - text)), equals + 1);
    for (unsigned i = 0; i + 1 < all->n; i++)
        s->beaten |= strcmp(all->of[i].name, s->name) == 0;
}

/* Returns how many lines it has; -1: there is none, or it has been said why it can't be read. */
static int read_file(struct doctor *d, struct settings *all, const char *path)
{
    AUTO_FREE char *text = malloc(FILE_BYTES);
    int lines = 0;
    ssize_t n = text ? sysfile_read(text, FILE_BYTES, d->sysroot, "%s", path) : -ENOMEM;
    if (n == -ENOENT || n == -ENOTDIR)
        return -1;
    if (n < 0) {
        doctor_find(d, VERDICT_WARNING, "NCCL leaves it out without a word",
                    "make it readable for this user, or remove it", "%s: %s", path,
                    strerror((int)-n));
        return -1;
    }
    for (const char *line = text; *line; lines++) {
        size_t bytes = strcspn(line, "\n");
        if (line[0] != '#')
            take(all, line, bytes, path);
        line += bytes + (line[bytes] == '\n');
    }
    return lines;
}

static void read_all(struct doctor *d, struct settings *all)
{
    bool amd = d->vendor == GPU_AMD;
    const char *named = doctor_variable(d, "NCCL_CONF_FILE");
    for (char *const *e = d->environment; e && *e; e++)
        if (is_ours(*e, strcspn(*e, "=")))
            take(all, *e, strlen(*e), ENVIRONMENT);
    if (named && *named)
        snprintf(all->user_file, sizeof all->user_file, "%s", named);
    else if (d->home)
        snprintf(all->user_file, sizeof all->user_file, "%s/.%s.conf", d->home,
                 amd ? "rccl" : "nccl");
    if (all->user_file[0] && read_file(d, all, all->user_file) < 0 && named && *named)
        doctor_find(d, VERDICT_WARNING, "NCCL leaves it out without a word, and ~/.nccl.conf too",
                    "correct or unset NCCL_CONF_FILE", "NCCL_CONF_FILE=%s can't be read", named);
    (void)read_file(d, all, amd ? "/etc/rccl.conf" : "/etc/nccl.conf");
}

/* ---- judging ---- */

static void judge_interface(struct doctor *d, const struct setting *s)
{
    /* One exact name only: prefixes, lists and exclusions choose among what there is. */
    char path[PATH_MAX];
    const char *name = s->value + (s->value[0] == '=');
    snprintf(path, sizeof path, "%s/sys/class/net", d->sysroot);
    if (s->value[0] != '=' || strchr(name, ',') || access(path, F_OK) < 0)
        return;
    snprintf(path, sizeof path, "%s/sys/class/net/%s", d->sysroot, name);
    if (access(path, F_OK) < 0)
        doctor_find(d, VERDICT_BROKEN, "NCCL finds no interface (\"no socket interface found\")",
                    "unset it: launch gives its workers lo", "%s=%s (%s): no /sys/class/net/%s",
                    s->name, s->value, s->source, name);
}

static void judge_file(struct doctor *d, const struct setting *s)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s%s", d->sysroot, s->value);
    if (access(path, R_OK) < 0)
        doctor_find(d, VERDICT_WARNING, "NCCL looks for the topology itself, or fails",
                    "unset it, or name a file that is there", "%s=%s (%s): %s", s->name, s->value,
                    s->source, strerror(errno));
}

static void judge(struct doctor *d, const struct setting *s)
{
    const struct leftover *leftover = find_leftover(s);
    size_t n = strlen(s->name);
    if (strcmp(s->source, ENVIRONMENT) != 0 &&
        (n == 0 || strchr(" \t", s->name[0]) || strchr(" \t", s->name[n - 1])))
        doctor_find(d, VERDICT_WARNING,
                    "NCCL takes the blanks for part of the name: it has no effect",
                    "write NAME=value without blanks, and without export", "%s: \"%s=%s\"",
                    s->source, s->name, s->value);
    else if (leftover)
        doctor_find(
            d, leftover->verdict, leftover->consequence,
            "unset it there, unless it is meant; a job that is faster or works only with it "
            "tells of a fault",
            "%s=%s (%s)", s->name, s->value, s->source);
    else if (strcmp(s->name, "NCCL_SOCKET_IFNAME") == 0)
        judge_interface(d, s);
    else if (strcmp(s->name, "NCCL_TOPO_FILE") == 0 || strcmp(s->name, "NCCL_GRAPH_FILE") == 0)
        judge_file(d, s);
}

void settings_check_nccl(struct doctor *d)
{
    struct doctor_list list = {0}, beaten = {0};
    unsigned before = d->n;
    AUTO_FREE struct settings *all = calloc(1, sizeof *all);
    if (!all) {
        doctor_blind(d, "no memory");
        return;
    }
    read_all(d, all);
    for (unsigned i = 0; i < all->n; i++) {
        const struct setting *s = &all->of[i];
        doctor_list_add(s->beaten ? &beaten : &list, "%s=%s (%s)", s->name, s->value, s->source);
        if (!s->beaten)
            judge(d, s);
    }
    if (beaten.n)
        doctor_find(d, VERDICT_WARNING, "these have no effect: the same name is set before them",
                    "keep one of them", "%s", beaten.text);
    if (list.n == 0)
        doctor_ok(d, "nothing is set: no NCCL_ in the environment, no %s%s/etc/%s.conf",
                  all->user_file, all->user_file[0] ? ", no " : "",
                  d->vendor == GPU_AMD ? "rccl" : "nccl");
    else if (d->n == before)
        doctor_ok(d, "%s", list.text);
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
