/* SPDX-License-Identifier: MIT */
/* See nvml_facts.h. Of the ABI of NVML only what is stable since driver 450 is required; all else may be missing. */
#include "nvml_facts.h"

#include "nvml_lib.h"
#include "syscalls.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define INVALID_ARGUMENT 2
#define TO_SWITCH 2 /* nvmlIntNvLinkDeviceType_t */
#define SCOPE_NODE 0
#define FIELD_LINK_SPEED 164 /* MB/s of the link in scope, since Hopper */
#define FIELD_COMMON_SPEED 90

struct memory {
    unsigned long long total, free, used;
};

struct fabric_v2 {
    unsigned version; /* size and 2 << 24 */
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
    unsigned health;
};

struct fabric_v1 {
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
};

/* The rest of the calls: any of them may be missing from an older library. */
struct calls {
    struct nvml_lib lib;
    int (*name)(nvml_device, char *, unsigned);
    int (*capability)(nvml_device, int *, int *);
    int (*memory)(nvml_device, struct memory *);
    int (*numa_id)(nvml_device, int *);
    int (*mig)(nvml_device, int *, int *);
    int (*ecc)(nvml_device, int *, int *);
    int (*compute_mode)(nvml_device, int *);
    int (*persistence)(nvml_device, int *);
    int (*most_gen)(nvml_device, int *);
    int (*most_width)(nvml_device, int *);
    int (*fabric)(nvml_device, struct fabric_v2 *);
    int (*fabric_old)(nvml_device, struct fabric_v1 *);
    int (*nodes)(nvml_device, unsigned, unsigned long *, unsigned);
    int (*link_state)(nvml_device, unsigned, int *);
    int (*link_version)(nvml_device, unsigned, int *);
    int (*link_remote)(nvml_device, unsigned, struct nvml_pci *);
    int (*link_remote_type)(nvml_device, unsigned, int *);
    int (*fields)(nvml_device, int, struct nvml_field *);
    int (*level)(nvml_device, nvml_device, int *);
    int (*p2p)(nvml_device, nvml_device, int, int *);
};

static void find_calls(struct calls *calls)
{
    const struct {
        void *at;
        const char *name;
    } rows[] = {
        {&calls->name, "nvmlDeviceGetName"},
        {&calls->capability, "nvmlDeviceGetCudaComputeCapability"},
        {&calls->memory, "nvmlDeviceGetMemoryInfo"},
        {&calls->numa_id, "nvmlDeviceGetNumaNodeId"},
        {&calls->mig, "nvmlDeviceGetMigMode"},
        {&calls->ecc, "nvmlDeviceGetEccMode"},
        {&calls->compute_mode, "nvmlDeviceGetComputeMode"},
        {&calls->persistence, "nvmlDeviceGetPersistenceMode"},
        {&calls->most_gen, "nvmlDeviceGetMaxPcieLinkGeneration"},
        {&calls->most_width, "nvmlDeviceGetMaxPcieLinkWidth"},
        {&calls->fabric, "nvmlDeviceGetGpuFabricInfoV"},
        {&calls->fabric_old, "nvmlDeviceGetGpuFabricInfo"},
        {&calls->nodes, "nvmlDeviceGetMemoryAffinity"},
        {&calls->link_state, "nvmlDeviceGetNvLinkState"},
        {&calls->link_version, "nvmlDeviceGetNvLinkVersion"},
        {&calls->link_remote, "nvmlDeviceGetNvLinkRemotePciInfo_v2"},
        {&calls->link_remote_type, "nvmlDeviceGetNvLinkRemoteDeviceType"},
        {&calls->fields, "nvmlDeviceGetFieldValues"},
        {&calls->level, "nvmlDeviceGetTopologyCommonAncestor"},
        {&calls->p2p, "nvmlDeviceGetP2PStatus"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        *(void **)rows[i].at = dlsym(calls->lib.handle, rows[i].name);
}

/* ---- one GPU ---- */

static int ask_int(int (*call)(nvml_device, int *), nvml_device device)
{
    int value;
    return call && call(device, &value) == NVML_SUCCESS ? value : -1;
}

/* A call that tells a mode and the one after the next reset. */
static int ask_mode(int (*call)(nvml_device, int *, int *), nvml_device device)
{
    int now, pending;
    return call && call(device, &now, &pending) == NVML_SUCCESS ? now : -1;
}

static void ask_fabric(const struct calls *calls, nvml_device device, struct nvml_gpu *gpu)
{
    struct fabric_v2 now = {.version = sizeof now | 2u << 24};
    struct fabric_v1 old = {0};
    if (calls->fabric && calls->fabric(device, &now) == NVML_SUCCESS) {
        gpu->fabric = now.state;
        gpu->fabric_status = now.status;
        gpu->fabric_health = (int)now.health;
    } else if (calls->fabric_old && calls->fabric_old(device, &old) == NVML_SUCCESS) {
        gpu->fabric = old.state;
        gpu->fabric_status = old.status;
    }
}

/* Where a link leads: a GPU of the list, or -1: a switch. In a virtual machine nobody is told, and it is one. */
static int peer_of(const struct calls *calls, nvml_device device, unsigned link,
                   const struct gpu_list *gpus)
{
    int type;
    struct nvml_pci remote;
    if (calls->link_remote_type && calls->link_remote_type(device, link, &type) == NVML_SUCCESS &&
        type == TO_SWITCH)
        return -1;
    if (!calls->link_remote || calls->link_remote(device, link, &remote) != NVML_SUCCESS)
        return -1;
    char address[NVML_ADDRESS_BYTES];
    nvml_lib_address(&remote, address);
    for (unsigned i = 0; i < gpus->n; i++)
        if (strcmp(gpus->gpu[i].pci, address) == 0)
            return (int)i;
    return -1;
}

static int ask_link_speed(const struct calls *calls, nvml_device device, unsigned link)
{
    struct nvml_field speed[] = {{.id = FIELD_LINK_SPEED, .scope = link},
                                 {.id = FIELD_COMMON_SPEED}};
    if (!calls->fields || calls->fields(device, ARRAY_LEN(speed), speed) != NVML_SUCCESS)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(speed); i++)
        if (speed[i].result == NVML_SUCCESS && speed[i].value.u32 > 0)
            return (int)(speed[i].value.u32 & 0xffffffu);
    return -1;
}

static void ask_links(const struct calls *calls, unsigned want, nvml_device device,
                      const struct gpu_list *gpus, struct nvml_gpu *gpu)
{
    for (unsigned link = 0; calls->link_state && link < NVML_LINKS_MAX; link++) {
        int up;
        int rc = calls->link_state(device, link, &up);
        if (rc == INVALID_ARGUMENT)
            return; /* it has no more links than these */
        if (rc != NVML_SUCCESS || up != 1)
            continue;
        if (gpu->links++ == 0) {
            if (want & NVML_REST && calls->link_version)
                calls->link_version(device, link, &gpu->link_version);
            if (want & NVML_REST)
                gpu->link_mbps = ask_link_speed(calls, device, link);
            gpu->switched = peer_of(calls, device, link, gpus) < 0;
        }
        /* What has one link to a switch has them all there. */
        int peer = gpu->switched ? -1 : peer_of(calls, device, link, gpus);
        if (peer >= 0)
            gpu->links_to[peer]++;
    }
}

static void ask_users(const struct calls *calls, nvml_device device, struct nvml_gpu *gpu)
{
    static struct nvml_process found[1024];
    unsigned n = ARRAY_LEN(found);
    if (calls->lib.processes(device, &n, found) != NVML_SUCCESS || n > ARRAY_LEN(found))
        return;
    for (unsigned i = 0; i < n && i < NVML_USERS_MAX; i++)
        gpu->user[i] = (struct nvml_user){.pid = (pid_t)found[i].pid, .bytes = found[i].bytes};
    gpu->users_n = n;
}

/* All that the matrix has no cell for. */
static void ask_rest(const struct calls *calls, nvml_device device, struct nvml_gpu *gpu)
{
    struct memory memory;
    if (calls->name)
        calls->name(device, gpu->name, sizeof gpu->name);
    if (!calls->capability || calls->capability(device, &gpu->cc_major, &gpu->cc_minor) != 0)
        gpu->cc_major = gpu->cc_minor = -1;
    if (calls->memory && calls->memory(device, &memory) == NVML_SUCCESS)
        gpu->memory_bytes = memory.total;
    gpu->mig = ask_mode(calls->mig, device);
    gpu->ecc = ask_mode(calls->ecc, device);
    gpu->compute_mode = ask_int(calls->compute_mode, device);
    gpu->persistence = ask_int(calls->persistence, device);
    gpu->most_gen = ask_int(calls->most_gen, device);
    gpu->most_width = ask_int(calls->most_width, device);
    ask_fabric(calls, device, gpu);
    ask_users(calls, device, gpu);
}

static void ask_matrix(const struct calls *calls, unsigned want, nvml_device device,
                       const struct gpu_list *gpus, struct nvml_gpu *gpu)
{
    gpu->numa_id = ask_int(calls->numa_id, device);
    if (calls->nodes)
        calls->nodes(device, NVML_NODE_WORDS, gpu->nodes, SCOPE_NODE);
    ask_links(calls, want, device, gpus, gpu);
}

/* ---- pairs ---- */

static void ask_pair(const struct calls *calls, unsigned want, nvml_device a, nvml_device b,
                     unsigned peer, struct nvml_gpu *gpu)
{
    int value;
    if (want & NVML_MATRIX && calls->level && calls->level(a, b, &value) == NVML_SUCCESS)
        gpu->level[peer] = (int8_t)value;
    for (int kind = 0; calls->p2p && kind < P2P_KINDS_N; kind++)
        if (want & NVML_P2P(kind) && calls->p2p(a, b, kind, &value) == NVML_SUCCESS)
            gpu->p2p[kind][peer] = (int8_t)value;
}

/* ---- the helper ---- */

struct attach {
    const struct calls *calls;
    const char *pci;
    nvml_device device;
    int rc;
};

static void *attach(void *user)
{
    struct attach *a = user;
    a->rc = a->calls->lib.by_pci(a->pci, &a->device);
    return NULL;
}

/* The first call for a GPU takes 7 ms in the driver, and those of several GPUs overlap; nothing else does. */
static void attach_all(struct attach *gpu, unsigned n)
{
    pthread_t thread[GPU_MAX];
    bool threaded[GPU_MAX];
    for (unsigned i = 1; i < n; i++)
        threaded[i] = pthread_create(&thread[i], NULL, attach, &gpu[i]) == 0;
    for (unsigned i = 0; i < n; i++)
        if (i == 0 || !threaded[i])
            attach(&gpu[i]);
        else
            pthread_join(thread[i], NULL);
}

static void ask_all(const struct calls *calls, const struct gpu_list *gpus, unsigned want,
                    struct nvml_facts *facts)
{
    struct attach to[GPU_MAX];
    for (unsigned i = 0; i < gpus->n; i++)
        to[i] = (struct attach){.calls = calls, .pci = gpus->gpu[i].pci};
    attach_all(to, gpus->n);
    for (unsigned i = 0; i < gpus->n; i++) {
        struct nvml_gpu *gpu = &facts->gpu[i];
        if (to[i].rc != NVML_SUCCESS)
            snprintf(gpu->error, sizeof gpu->error, "%s", calls->lib.error(to[i].rc));
        if (to[i].rc == NVML_SUCCESS && want & NVML_MATRIX)
            ask_matrix(calls, want, to[i].device, gpus, gpu);
        if (to[i].rc == NVML_SUCCESS && want & NVML_REST)
            ask_rest(calls, to[i].device, gpu);
        if (to[i].rc == NVML_SUCCESS && want & NVML_HEALTH)
            nvml_health_ask(calls->lib.handle, to[i].device, &gpu->health);
    }
    for (unsigned i = 0; i < gpus->n; i++)
        for (unsigned j = 0; j < gpus->n; j++)
            if (i != j && to[i].rc == NVML_SUCCESS && to[j].rc == NVML_SUCCESS)
                ask_pair(calls, j < i && want & NVML_ONE_WAY ? want & NVML_MATRIX : want,
                         to[i].device, to[j].device, j, &facts->gpu[i]);
}

struct nvml_ask {
    const struct gpu_list *gpus;
    const char *sysroot;
    unsigned want;
    struct nvml_facts *shared;
    int fd; /* ends when the helper does, or has done */
    pid_t pid;
};

/* The file that was loaded: its name ends in the version of the driver that it came with. */
static void name_library(const struct nvml_lib *lib, struct nvml_facts *facts)
{
    Dl_info info;
    char path[PATH_MAX];
    if (dladdr(*(void *const *)&lib->init, &info) && realpath(info.dli_fname, path) &&
        strlen(path) < sizeof facts->library)
        memcpy(facts->library, path, strlen(path) + 1);
}

/* The write end is closed as soon as all is told: what NVML does at the end of its process need not be waited for. */
static _Noreturn void be_helper(const struct nvml_ask *ask, int write_end, pid_t parent)
{
    struct calls calls;
    struct nvml_facts *facts = ask->shared;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
    int null_fd =
        open("/dev/null", O_RDWR | O_CLOEXEC); /* a library that prints is not listened to */
    dup2(null_fd, STDOUT_FILENO);
    dup2(null_fd, STDERR_FILENO);
    if (!nvml_lib_open(&calls.lib, ask->sysroot)) {
        snprintf(facts->why, sizeof facts->why, "there is no usable %s", NVML_LIBRARY);
        _exit(0);
    }
    find_calls(&calls);
    name_library(&calls.lib, facts);
    int rc = calls.lib.init();
    if (rc != NVML_SUCCESS) {
        snprintf(facts->why, sizeof facts->why, "nvmlInit: %s", calls.lib.error(rc));
        _exit(0);
    }
    snprintf(facts->why, sizeof facts->why, "it went away while it told about the GPUs");
    ask_all(&calls, ask->gpus, ask->want, facts);
    facts->why[0] = '\0';
    facts->usable = true;
    close(write_end);
    _exit(0);
}

static void nothing_told(struct nvml_facts *facts, unsigned n)
{
    facts->n = n;
    snprintf(facts->why, sizeof facts->why, "it crashed while it began");
    for (unsigned i = 0; i < n; i++) {
        struct nvml_gpu *gpu = &facts->gpu[i];
        gpu->cc_major = gpu->cc_minor = gpu->numa_id = gpu->mig = gpu->ecc = -1;
        gpu->compute_mode = gpu->persistence = gpu->fabric = gpu->fabric_health = -1;
        gpu->fabric_status = gpu->most_gen = gpu->most_width = -1;
        gpu->link_version = gpu->link_mbps = -1;
        memset(&gpu->health, -1, sizeof gpu->health);
        memset(gpu->level, -1, sizeof gpu->level);
        memset(gpu->p2p, -1, sizeof gpu->p2p);
    }
}

/* The helper is ended and not waited for: the driver takes its time to let go of a process, or never does. */
static void let_go(struct nvml_ask *ask)
{
    close_fd(&ask->fd);
    if (ask->pid > 0)
        kill(ask->pid, SIGKILL); /* not reaped yet */
    munmap(ask->shared, sizeof *ask->shared);
    free(ask);
}

struct nvml_ask *nvml_ask_start(const struct gpu_list *gpus, const char *sysroot, unsigned want)
{
    int ends[2];
    pid_t self = getpid();
    struct nvml_ask *ask = malloc(sizeof *ask);
    if (!ask)
        return NULL;
    *ask = (struct nvml_ask){.gpus = gpus, .sysroot = sysroot, .want = want, .fd = -1};
    ask->shared =
        mmap(NULL, sizeof *ask->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (ask->shared == MAP_FAILED) {
        free(ask);
        return NULL;
    }
    nothing_told(ask->shared, gpus->n);
    if (pipe2(ends, O_CLOEXEC) < 0) {
        let_go(ask);
        return NULL;
    }
    ask->fd = ends[0];
    AUTO_FD write_end = ends[1];
    ask->pid = fork();
    if (ask->pid == 0)
        be_helper(ask, write_end, self);
    if (ask->pid < 0) {
        let_go(ask);
        return NULL;
    }
    return ask;
}

/* What a driver wrote is input. */
static void check_texts(struct nvml_facts *facts)
{
    facts->why[sizeof facts->why - 1] = facts->library[sizeof facts->library - 1] = '\0';
    for (unsigned i = 0; i < facts->n; i++) {
        struct nvml_gpu *gpu = &facts->gpu[i];
        gpu->error[sizeof gpu->error - 1] = gpu->name[sizeof gpu->name - 1] = '\0';
        if (gpu->links > NVML_LINKS_MAX || gpu->links < 0)
            gpu->links = 0;
    }
}

struct nvml_facts *nvml_ask_finish(struct nvml_ask *ask, unsigned limit_ms)
{
    struct pollfd end = {.fd = ask->fd, .events = POLLIN};
    int rc;
    do
        rc = poll(&end, 1, (int)limit_ms);
    while (rc < 0 && errno == EINTR);
    struct nvml_facts *facts = malloc(sizeof *facts);
    if (facts) {
        unsigned n = ask->gpus->n;
        memcpy(facts, ask->shared, sizeof *facts);
        facts->n = n;
        if (rc == 0) {
            facts->usable = false;
            snprintf(facts->why, sizeof facts->why, "it did not answer within %g s",
                     limit_ms / 1000.0);
        }
        check_texts(facts);
    }
    let_go(ask);
    return facts;
}
