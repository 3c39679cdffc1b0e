/* SPDX-License-Identifier: MIT */
/* Any /proc, /sys and /dev: a line "@PATH" or "@PATH -> PATH" begins a file or a link below a root of our own, and what
 * follows up to the next one is in it. GPUs, CPUs, the topology and process 7 are read and shown. */
#include "../../agent/corefile.h"
#include "../../agent/cpus.h"
#include "../../agent/evidence.h"
#include "../../agent/near.h"
#include "../../agent/oom.h"
#include "../../agent/place.h"

#include "../../agent/procstate.h"
#include "../../agent/sysfile.h"
#include "../../agent/topo.h"

#include "fuzz.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

#define FILES_MAX 200
#define PATH_LEN_MAX 160
#define RANKS 3u

static char root[] = "/tmp/fuzz-system-XXXXXX";
static char base[] = "/dev/shm/fuzz-system-XXXXXX";
static const char *where;

/* ---- the files ---- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type;
    return ftw->level ? remove(path) : 0;
}

static void remove_all(void)
{
    nftw(where, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void remove_root(void)
{
    remove_all();
    rmdir(where);
}

static void make_root(void)
{
    where = mkdtemp(base) ? base : mkdtemp(root);
    must(where != NULL, "no directory");
    atexit(remove_root);
}

/* Below /proc, /sys or /dev, and never up again. */
static bool is_path(const char *path)
{
    static const char *const tops[] = {"/proc/", "/sys/", "/dev/"};
    bool below = false;
    for (size_t i = 0; i < ARRAY_LEN(tops); i++)
        below |= strncmp(path, tops[i], strlen(tops[i])) == 0;
    return below && strlen(path) < PATH_LEN_MAX && !strstr(path, "..");
}

static void make_parents(char *full)
{
    for (char *slash = full + strlen(where) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        mkdir(full, 0700);
    }
}

/* False: its parents are not there. */
static bool try_file(const char *full, const char *target, const char *text, size_t n)
{
    if (target)
        return symlink(target, full) == 0 || errno != ENOENT;
    AUTO_FD fd = open(full, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd >= 0 ? write(fd, text, n) >= 0 : errno != ENOENT;
}

static void make_file(char *head, const char *text, size_t n)
{
    char full[PATH_MAX], target[PATH_MAX];
    char *arrow = strstr(head, " -> ");
    if (arrow)
        *arrow = '\0';
    if (!is_path(head) || (arrow && !is_path(arrow + 4)))
        return;
    snprintf(full, sizeof full, "%s%s", where, head);
    snprintf(target, sizeof target, "%s%s", where, arrow ? arrow + 4 : "");
    if (try_file(full, arrow ? target : NULL, text, n))
        return;
    make_parents(full);
    (void)try_file(full, arrow ? target : NULL, text, n);
}

static void make_files(char *text, size_t n)
{
    char *end = text + n, *head = NULL, *content = NULL;
    unsigned files = 0;
    for (char *line = text, *next; line < end && files < FILES_MAX; line = next) {
        char *newline = memchr(line, '\n', (size_t)(end - line));
        next = newline ? newline + 1 : end;
        if (*line != '@' || !newline)
            continue;
        if (head)
            make_file(head, content, (size_t)(line - content));
        *newline = '\0';
        head = line + 1;
        content = next;
        files++;
    }
    if (head)
        make_file(head, content, (size_t)(end - content));
}

/* ---- what is read ---- */

static void print(const struct topology *t, void (*how)(FILE *out, const struct topology *t),
                  bool json)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    must(out != NULL, "no memory");
    how(out, t);
    fclose(out);
    if (json)
        check_json(text, n);
    else
        check_lines(text, n);
    free(text);
}

static void print_text(FILE *out, const struct topology *t)
{
    topo_text(out, t, false);
}

/* Of several NVIDIA GPUs, or nodes beside one, NVML might be asked, in another process. */
static void read_topology(const struct gpu_list *gpus)
{
    struct topology *t;
    struct err err;
    struct bitset nodes;
    bool several =
        sysfile_list(&nodes, where, "/sys/devices/system/node/online") && bitset_count(&nodes) > 1;
    if (gpus->vendor == GPU_NVIDIA && (gpus->n > 1 || several))
        return;
    must(topology_read(&t, where, NVML_MATRIX, 1000, &err) == 0, "no topology");
    print(t, topo_json, true);
    print(t, print_text, false);
    print(t, topo_xml, false);
    print(t, topo_svg, false);
    print(t, topo_dot, false);
    topology_free(t);
}

static void place(const struct gpu_list *gpus)
{
    struct machine *m;
    struct err err;
    struct gpu_set set = {0};
    struct place places[RANKS];
    char note[PLACE_NOTE_BYTES];
    must(gpu_set_choose(&set, gpus, "X", NULL, &err) == 0, "GPUs that can't be chosen");
    must(machine_read(&m, where, MACHINE_PACKAGES | MACHINE_CORES | MACHINE_CACHES, &err) == 0,
         "no machine");
    for (int affinity = 0; affinity < AFFINITIES_N; affinity++) {
        struct place_question question = {.machine = m,
                                          .affinity = affinity,
                                          .mem_policy = MEM_POLICY_BIND,
                                          .ranks = RANKS,
                                          .gpus = gpus,
                                          .gpu_set = &set,
                                          .cpus = 4,
                                          .quota = UINT_MAX};
        if (affinity == AFFINITY_AUTO)
            continue;
        if (place_ranks(places, &question, note, &err) < 0) {
            check_line(&err);
            continue;
        }
        check_clean(note);
        for (uint32_t i = 0; i < RANKS; i++) {
            bitset_minus(&places[i].cpus, &m->cpus);
            must(bitset_empty(&places[i].cpus), "a CPU that there is not");
        }
    }
    free(m);
}

static void read_process(void)
{
    struct evidence_proc proc = {0};
    char text[256];
    int status = 0;
    evidence_read(where, evidence_worker(where, 7), &proc);
    check_clean(proc.name);
    check_clean(proc.wait);
    check_clean(proc.call);
    (void)procstate_of(where, 7, &status);
    (void)corefile_find(where, 7, text, sizeof text);
    check_clean(text);
}

static void read_limits(void)
{
    struct cgroup leaf;
    struct oom oom;
    char what[256] = "";
    must(cpus_quota(where) > 0, "no CPU at all");
    cgroup_none(&leaf);
    oom_open(&oom, where, &leaf);
    (void)oom_explain(&oom, true, what, sizeof what);
    oom_close(&oom);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct distances near;
    struct fuzz_in in = {data, data + n};
    struct gpu_list gpus = {0};
    struct err err;
    char *text = in_text(&in);
    if (!where)
        make_root();
    make_files(text, n);
    if (gpu_list_read(&gpus, where, &err) < 0)
        check_line(&err);
    near_read(&near, where, &gpus);
    read_topology(&gpus);
    place(&gpus);
    read_process();
    read_limits();
    remove_all();
    free(text);
    return 0;
}
