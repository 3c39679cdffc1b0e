/* SPDX-License-Identifier: MIT */
/* What the kernel, its limits and the container give to a job. */
#include "checks.h"

#include "../cgroup.h"
#include "../cpus.h"
#include "../sysfile.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MIB ((uint64_t)1 << 20)
#define SHM_PER_GPU (128 * MIB)
#define FILES_NEEDED 4096
#define TASKS_PER_GPU (uint64_t)256
#define MEMORY_PER_GPU (4096 * MIB)
#define NCCL_FILE "nccl-"
#define FILES_MAX 256 /* of those, looked at; NCCL removes most of its own at once */

/* What is asked for per GPU is asked for once where there is none. */
static uint64_t gpus(const struct doctor *d)
{
    return d->t->list.n ? d->t->list.n : 1;
}

/* ---- /dev/shm ---- */

/* Files of NCCL. Of others' files only root can tell whether somebody has them. */
struct files {
    unsigned n, used;
    struct file {
        char name[32];
        uint64_t bytes;
        bool used;
    } of[FILES_MAX];
};

static void list_files(const struct doctor *d, struct files *files)
{
    char path[PATH_MAX];
    struct stat st;
    snprintf(path, sizeof path, "%s/dev/shm", d->sysroot);
    DIR *dir = opendir(path);
    struct dirent *entry;
    while (dir && files->n < FILES_MAX && (entry = readdir(dir))) {
        struct file *file = &files->of[files->n];
        size_t length = strlen(entry->d_name);
        if (strncmp(entry->d_name, NCCL_FILE, strlen(NCCL_FILE)) != 0 ||
            length >= sizeof file->name ||
            fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
            (st.st_uid != geteuid() && !d->is_root))
            continue;
        *file = (struct file){.bytes = (uint64_t)st.st_blocks * 512};
        memcpy(file->name, entry->d_name, length + 1);
        files->n++;
    }
    if (dir)
        closedir(dir);
}

/* The files that a process has mapped, as far as we may look at its maps. */
static void look_at_maps(struct files *files, const char *path)
{
    char line[PATH_MAX + 128];
    FILE *maps = fopen(path, "re");
    while (maps && files->used < files->n && fgets(line, sizeof line, maps)) {
        const char *name = strstr(line, "/" NCCL_FILE);
        for (unsigned i = 0; name && i < files->n; i++) {
            struct file *file = &files->of[i];
            bool same = strncmp(name + 1, file->name, strlen(file->name)) == 0;
            files->used += same && !file->used;
            file->used |= same;
        }
    }
    if (maps)
        fclose(maps);
}

/* One look at each process, however many files there are. */
static void find_used(const struct doctor *d, struct files *files)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/proc", d->sysroot);
    DIR *proc = files->n ? opendir(path) : NULL;
    struct dirent *entry;
    while (proc && (entry = readdir(proc)))
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9') {
            snprintf(path, sizeof path, "%s/proc/%.16s/maps", d->sysroot, entry->d_name);
            look_at_maps(files, path);
        }
    if (proc)
        closedir(proc);
}

struct stale {
    struct doctor_list names;
    uint64_t bytes;
    unsigned n;
};

static void find_stale(const struct doctor *d, struct stale *stale)
{
    struct files files = {0};
    list_files(d, &files);
    find_used(d, &files);
    for (unsigned i = 0; i < files.n; i++)
        if (!files.of[i].used) {
            stale->n++;
            stale->bytes += files.of[i].bytes;
            doctor_list_add(&stale->names, "%s", files.of[i].name);
        }
}

static bool shm_usable(struct doctor *d)
{
    if (d->shm.error)
        doctor_find(
            d, VERDICT_BROKEN, NCCL_OR_RCCL(d, " and PyTorch's data loaders have no shared memory"),
            "mount -t tmpfs -o mode=1777 tmpfs /dev/shm", "/dev/shm: %s", strerror(-d->shm.error));
    else if (!d->shm.writable)
        doctor_find(d, VERDICT_BROKEN,
                    NCCL_OR_RCCL(d, " fails with \"shm_open failed: Permission denied\""),
                    "as root: chmod 1777 /dev/shm",
                    "/dev/shm has mode %04o: this user can't make files there", d->shm.mode);
    return !d->shm.error && d->shm.writable;
}

void host_check_shm(struct doctor *d)
{
    struct stale stale = {0};
    uint64_t need = gpus(d) * SHM_PER_GPU;
    if (!shm_usable(d))
        return;
    find_stale(d, &stale);
    if (stale.n)
        doctor_find(d, VERDICT_WARNING, "they take room that the next job may lack",
                    "rm them, once no job runs, also in containers that share it (--ipc=host)",
                    "/dev/shm: %u file%s of %s that no process seen from here has mapped, %" PRIu64
                    " MiB: %s",
                    stale.n, stale.n == 1 ? "" : "s", gpu_collectives(d->vendor), stale.bytes / MIB,
                    stale.names.text);
    if (d->shm.mode != 01777)
        doctor_find(d, VERDICT_WARNING, "other users' jobs fail, or can remove this one's files",
                    "as root: chmod 1777 /dev/shm", "/dev/shm has mode %04o, not 1777",
                    d->shm.mode);
    if (d->shm.free_bytes < need)
        doctor_find(
            d, VERDICT_WARNING,
            NCCL_OR_RCCL(d,
                         " fails with \"No space left on device\", data loaders with a bus error"),
            "docker run --shm-size=1g or --ipc=host; in Kubernetes an emptyDir with medium "
            "Memory; else mount -o remount,size=50% /dev/shm",
            "/dev/shm: %" PRIu64 " of %" PRIu64 " MiB are free, %" PRIu64 " are wanted",
            d->shm.free_bytes / MIB, d->shm.total_bytes / MIB, need / MIB);
    else if (!stale.n && d->shm.mode == 01777)
        doctor_ok(d, "/dev/shm: %" PRIu64 " of %" PRIu64 " MiB are free, mode 1777",
                  d->shm.free_bytes / MIB, d->shm.total_bytes / MIB);
}

/* ---- limits ---- */

#define UNLIMITED UINT64_MAX

struct limit {
    uint64_t soft, hard;
    char text[64]; /* both, as they stand there */
};

static uint64_t parse_limit(const char *text)
{
    return *text >= '0' && *text <= '9' ? strtoull(text, NULL, 10) : UNLIMITED;
}

/* False: it has been said why not. The limits are inherited: a job started from here has the same. */
static bool read_limit(struct doctor *d, const char *name, struct limit *ret)
{
    char text[4096], value[128], soft[32], hard[32];
    if (sysfile_read(text, sizeof text, d->sysroot, "/proc/self/limits") < 0 ||
        !sysfile_field(text, name, value, sizeof value) ||
        sscanf(value, "%31s %31s", soft, hard) != 2) {
        doctor_blind(d, "/proc/self/limits does not tell \"%s\"", name);
        return false;
    }
    ret->soft = parse_limit(soft);
    ret->hard = parse_limit(hard);
    snprintf(ret->text, sizeof ret->text, "%.20s, at most %.20s", soft, hard);
    return true;
}

void host_check_memlock(struct doctor *d)
{
    struct limit limit;
    if (!read_limit(d, "Max locked memory", &limit))
        return;
    if (d->t->rdma_n && limit.soft != UNLIMITED)
        doctor_find(d, VERDICT_WARNING,
                    NCCL_OR_RCCL(
                        d, " over InfiniBand or RoCE fails with \"Cannot allocate memory\" (on one "
                           "server it rarely goes that way)"),
                    "docker run --ulimit memlock=-1; /etc/security/limits.conf; "
                    "LimitMEMLOCK=infinity of the "
                    "unit; or NCCL_IB_DISABLE=1",
                    "/proc/self/limits: locked memory: %s bytes, and there are %u RDMA NICs",
                    limit.text, d->t->rdma_n);
    else
        doctor_ok(d, "/proc/self/limits: %s bytes%s", limit.text,
                  d->t->rdma_n ? "" : "; no RDMA NIC needs more");
}

void host_check_nofile(struct doctor *d)
{
    struct limit limit;
    if (!read_limit(d, "Max open files", &limit))
        return;
    if (limit.hard < FILES_NEEDED)
        doctor_find(d, VERDICT_WARNING, "large jobs fail with \"Too many open files\"",
                    "docker run --ulimit nofile=65536; /etc/security/limits.conf; LimitNOFILE= of "
                    "the unit",
                    "/proc/self/limits: open files: %s", limit.text);
    else
        doctor_ok(d, "/proc/self/limits: %s%s", limit.text,
                  limit.soft >= FILES_NEEDED ? ""
                  : d->vendor == GPU_AMD     ? "; RCCL raises the former by itself"
                                             : "; NCCL raises the former by itself");
}

void host_check_nproc(struct doctor *d)
{
    struct limit limit;
    uint64_t need = gpus(d) * TASKS_PER_GPU;
    if (!read_limit(d, "Max processes", &limit))
        return;
    if (!d->is_root && limit.soft < need)
        doctor_find(
            d, VERDICT_WARNING,
            "workers can't start their threads (\"Resource temporarily unavailable\"): the limit "
            "counts all of this user's",
            "ulimit -u; /etc/security/limits.conf; LimitNPROC= of the unit",
            "/proc/self/limits: processes: %s; %" PRIu64 " are wanted", limit.text, need);
    else
        doctor_ok(d, "/proc/self/limits: %s%s", limit.text, d->is_root ? "; root has none" : "");
}

void host_check_stack(struct doctor *d)
{
    struct limit limit;
    if (!read_limit(d, "Max stack size", &limit))
        return;
    if (limit.soft == UNLIMITED)
        doctor_find(d, VERDICT_WARNING,
                    NCCL_OR_RCCL(d, " before 2.28 may crash when it looks for its graphs, and each "
                                    "thread takes what the C library thinks fit"),
                    "ulimit -s 8192 before launch", "/proc/self/limits: stack: %s", limit.text);
    else
        doctor_ok(d, "/proc/self/limits: %s bytes", limit.text);
}

/* ---- cgroup ---- */

/* The tightest limit from our group up, less what is used there: what is left. UNLIMITED: none. ret_where: the group. */
static uint64_t left_of(const struct doctor *d, const char *controller, const char *most_name,
                        const char *used_name, char ret_where[PATH_MAX])
{
    char path[PATH_MAX], text[64];
    uint64_t least = UNLIMITED;
    size_t root = strlen(d->sysroot) + strlen("/sys/fs/cgroup");
    if (!cgroup_own(path, d->sysroot, controller))
        return UNLIMITED;
    while (strlen(path) >= root) {
        uint64_t most = UNLIMITED;
        long long used = 0;
        if (sysfile_read(text, sizeof text, path, "/%s", most_name) > 0)
            most = parse_limit(text);
        if (sysfile_number(&used, path, "/%s", used_name) < 0 || used < 0)
            used = 0;
        /* v1 writes a very large number for none. */
        uint64_t left = most > INT64_MAX / 2    ? UNLIMITED
                        : most > (uint64_t)used ? most - (uint64_t)used
                                                : 0;
        if (left < least) {
            least = left;
            snprintf(ret_where, PATH_MAX, "%s", path + strlen(d->sysroot));
        }
        *strrchr(path, '/') = '\0';
    }
    return least;
}

/* v2 has all controllers in one tree, v1 one for each. */
static uint64_t left_in_either(const struct doctor *d, const char *controller, const char *v2_most,
                               const char *v2_used, const char *v1_most, const char *v1_used,
                               char ret_where[PATH_MAX])
{
    uint64_t left = left_of(d, NULL, v2_most, v2_used, ret_where);
    return left != UNLIMITED ? left : left_of(d, controller, v1_most, v1_used, ret_where);
}

void host_check_cgroup(struct doctor *d)
{
    char memory_at[PATH_MAX], pids_at[PATH_MAX];
    uint64_t memory = left_in_either(d, "memory", "memory.max", "memory.current",
                                     "memory.limit_in_bytes", "memory.usage_in_bytes", memory_at);
    uint64_t pids =
        left_in_either(d, "pids", "pids.max", "pids.current", "pids.max", "pids.current", pids_at);
    unsigned cpus = cpus_quota(d->sysroot);
    bool tight = false;
    if (memory != UNLIMITED && memory < gpus(d) * MEMORY_PER_GPU && (tight = true))
        doctor_find(d, VERDICT_WARNING, "the kernel kills a worker when the limit is reached",
                    "docker run --memory=, resources.limits.memory in Kubernetes, MemoryMax= of "
                    "the unit",
                    "%s: %" PRIu64 " MiB of memory are left below the limit, %" PRIu64
                    " for each GPU "
                    "would be wise",
                    memory_at, memory / MIB, MEMORY_PER_GPU / MIB);
    if (pids < gpus(d) * TASKS_PER_GPU && (tight = true))
        doctor_find(
            d, VERDICT_WARNING, "workers can't start their threads or data loaders",
            "docker run --pids-limit=-1, TasksMax= of the unit, podPidsLimit of the kubelet",
            "%s: %" PRIu64 " processes and threads are left below the limit, %" PRIu64
            " are wanted",
            pids_at, pids, gpus(d) * TASKS_PER_GPU);
    if (d->t->list.n > 1 && cpus < d->t->list.n && (tight = true))
        doctor_find(d, VERDICT_WARNING, "workers wait for CPUs instead of feeding their GPUs",
                    "docker run --cpus=, resources.limits.cpu in Kubernetes, CPUQuota= of the unit",
                    "the cgroup's quota gives %u CPUs to %u GPUs", cpus, d->t->list.n);
    if (!tight)
        doctor_ok(d, "no tight limit of memory, processes or CPUs below /sys/fs/cgroup");
}

/* ---- NUMA ---- */

void host_check_balancing(struct doctor *d)
{
    static const char file[] = "/proc/sys/kernel/numa_balancing";
    long long value;
    unsigned nodes = 0;
    for (unsigned i = 0; i < d->t->nodes_n; i++)
        nodes += d->t->node[i].cpus_n > 0;
    int rc = sysfile_number(&value, d->sysroot, "%s", file);
    if (rc == -ENOENT)
        doctor_ok(d, "this kernel has none (no %s)", file);
    else if (rc < 0)
        doctor_blind(d, "%s: %s", file, strerror(-rc));
    else if (value > 0 && nodes > 1 && d->vendor != GPU_NONE)
        doctor_find(d, VERDICT_WARNING,
                    "the kernel moves pages about and stops threads for it: times vary from step "
                    "to step",
                    "as root: sysctl kernel.numa_balancing=0; launch places workers and memory "
                    "itself (--affinity, --mem-policy)",
                    "%s: %lld, with %u nodes", file, value, nodes);
    else
        doctor_ok(d, "%s: %lld, with %u node%s", file, value, nodes, nodes == 1 ? "" : "s");
}

void host_check_numa_calls(struct doctor *d)
{
    if (d->numa_error)
        doctor_find(d, VERDICT_WARNING,
                    d->vendor == GPU_AMD
                        ? "--mem-policy has no effect"
                        : "NCCL can't use cuMem for host memory and falls back to /dev/shm; "
                          "--mem-policy has no effect",
                    "docker run --cap-add SYS_NICE, or another seccomp profile; it works without",
                    "get_mempolicy(): %s", strerror(-d->numa_error));
    else
        doctor_ok(d, "get_mempolicy() is allowed");
}
