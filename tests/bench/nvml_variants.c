/* SPDX-License-Identifier: MIT */
/* nvml_variants [ROUNDS]: where NVML's time goes on this machine, and which way to use it is the quickest. Each variant runs in
 * a fresh process, ROUNDS times, in turns; prints the median milliseconds of its steps; "told" is from the fork to the last
 * answer, "gone" from there to the end of the process. */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define GPUS_MAX 16
#define STEPS_MAX 96
#define ROUNDS_MAX 64
#define NO_GPUS 1u
#define NO_ATTACH 2u
#define LINKS 18

typedef void *device;

static struct steps {
    unsigned n;
    double told;
    struct {
        char name[48];
        double ms;
        int rc;
    } step[STEPS_MAX];
} * steps; /* shared with the child that fills it in */

static char pci[GPUS_MAX][32];
static unsigned gpus_n;
static double began, last;

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void step(const char *name, int rc)
{
    double now = now_ms();
    if (steps->n < STEPS_MAX) {
        snprintf(steps->step[steps->n].name, sizeof steps->step[0].name, "%s", name);
        steps->step[steps->n].ms = now - last;
        steps->step[steps->n++].rc = rc;
    }
    steps->told = now - began;
    last = now_ms();
}

/* ---- NVML ---- */

static void *library;
static int (*by_pci)(const char *, device *);

static void open_library(void)
{
    library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library)
        *(void **)&by_pci = dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2");
    step("dlopen", library && by_pci ? 0 : -1);
    if (!library || !by_pci)
        _exit(1);
}

static int call(const char *name)
{
    int (*f)(void);
    *(void **)&f = dlsym(library, name);
    return f ? f() : -1;
}

static void init(int flags)
{
    int (*f)(unsigned);
    *(void **)&f = dlsym(library, "nvmlInitWithFlags");
    int rc = flags < 0 ? call("nvmlInit_v2") : f ? f((unsigned)flags) : -1;
    step("init", rc);
    if (rc)
        _exit(1);
}

static void attach(device *d)
{
    char name[48];
    for (unsigned i = 0; i < gpus_n; i++) {
        int rc = by_pci(pci[i], &d[i]);
        snprintf(name, sizeof name, "handle %u", i);
        step(name, rc);
        if (rc)
            _exit(1);
    }
}

enum kind { ONE, TWO, WORDS, WORDS_SCOPE, TEXT, STRUCT, FABRIC, LINK, FIELDS, USERS, PAIR, PAIR_5 };

static const struct query {
    const char *name;
    enum kind kind;
} queries[] = {
    {"nvmlDeviceGetName", TEXT},
    {"nvmlDeviceGetCudaComputeCapability", TWO},
    {"nvmlDeviceGetMemoryInfo", STRUCT},
    {"nvmlDeviceGetNumaNodeId", ONE},
    {"nvmlDeviceGetMigMode", TWO},
    {"nvmlDeviceGetEccMode", TWO},
    {"nvmlDeviceGetComputeMode", ONE},
    {"nvmlDeviceGetPersistenceMode", ONE},
    {"nvmlDeviceGetCurrPcieLinkGeneration", ONE},
    {"nvmlDeviceGetCurrPcieLinkWidth", ONE},
    {"nvmlDeviceGetMaxPcieLinkGeneration", ONE},
    {"nvmlDeviceGetMaxPcieLinkWidth", ONE},
    {"nvmlDeviceGetCpuAffinity", WORDS},
    {"nvmlDeviceGetMemoryAffinity", WORDS_SCOPE},
    {"nvmlDeviceGetGpuFabricInfoV", FABRIC},
    {"nvmlDeviceGetFieldValues", FIELDS}, /* state, speed of all links at once */
    {"nvmlDeviceGetNvLinkState", LINK},
    {"nvmlDeviceGetNvLinkVersion", LINK},
    {"nvmlDeviceGetNvLinkRemoteDeviceType", LINK},
    {"nvmlDeviceGetNvLinkRemotePciInfo_v2", LINK},
    {"nvmlDeviceGetComputeRunningProcesses_v3", USERS},
    {"nvmlDeviceGetTopologyCommonAncestor", PAIR},
    {"nvmlDeviceGetP2PStatus", PAIR_5},
};

#define QUERIES_N (sizeof queries / sizeof *queries)

struct field {
    unsigned id, scope;
    long long at, latency;
    unsigned type;
    int result;
    unsigned long long value;
};

static int ask_fields(void *f, device d)
{
    struct field field[2 * LINKS] = {0};
    for (unsigned i = 0; i < LINKS; i++) {
        field[i] = (struct field){.id = 165, .scope = i};
        field[LINKS + i] = (struct field){.id = 164, .scope = i};
    }
    return ((int (*)(device, int, struct field *))f)(d, 2 * LINKS, field);
}

/* One query of one GPU, and of all its links or pairs. */
static int ask(const struct query *q, void *f, const device *d, unsigned i)
{
    static __thread unsigned long long buffer[1 << 14];
    unsigned *value = (unsigned *)buffer;
    int rc = -1;
    switch (q->kind) {
    case ONE:
    case STRUCT:
        return ((int (*)(device, void *))f)(d[i], buffer);
    case TWO:
        return ((int (*)(device, void *, void *))f)(d[i], buffer, buffer + 1);
    case WORDS:
        return ((int (*)(device, unsigned, void *))f)(d[i], 64, buffer);
    case WORDS_SCOPE:
        return ((int (*)(device, unsigned, void *, unsigned))f)(d[i], 16, buffer, 0);
    case TEXT:
        return ((int (*)(device, void *, unsigned))f)(d[i], buffer, 96);
    case FABRIC:
        *value = 36 | 2u << 24;
        return ((int (*)(device, void *))f)(d[i], buffer);
    case FIELDS:
        return ask_fields(f, d[i]);
    case LINK:
        for (unsigned link = 0; link < LINKS; link++)
            rc = ((int (*)(device, unsigned, void *))f)(d[i], link, buffer);
        return rc;
    case USERS:
        *value = 1024;
        return ((int (*)(device, void *, void *))f)(d[i], value, buffer + 1);
    case PAIR:
        for (unsigned j = 0; j < gpus_n; j++)
            if (j != i)
                rc = ((int (*)(device, device, void *))f)(d[i], d[j], buffer);
        return rc;
    case PAIR_5:
        for (unsigned j = 0; j < gpus_n; j++)
            for (int kind = 0; j != i && kind < 5; kind++)
                rc = ((int (*)(device, device, int, void *))f)(d[i], d[j], kind, buffer);
        return rc;
    }
    return rc;
}

static void ask_gpu(const device *d, unsigned i)
{
    for (unsigned k = 0; k < QUERIES_N; k++) {
        void *f = dlsym(library, queries[k].name);
        if (f)
            ask(&queries[k], f, d, i);
    }
}

/* ---- variants ---- */

static void each_query(void)
{
    device d[GPUS_MAX];
    open_library();
    init(-1);
    attach(d);
    for (unsigned k = 0; k < QUERIES_N; k++) {
        void *f = dlsym(library, queries[k].name);
        int rc = -1;
        for (unsigned i = 0; f && i < gpus_n; i++)
            rc = ask(&queries[k], f, d, i);
        step(queries[k].name + strlen("nvmlDeviceGet"), rc);
    }
}

static void with_shutdown(void)
{
    each_query();
    step("shutdown", call("nvmlShutdown"));
}

static void serial(int flags)
{
    device d[GPUS_MAX];
    open_library();
    init(flags);
    attach(d);
    for (unsigned i = 0; i < gpus_n; i++)
        ask_gpu(d, i);
    step("all queries", 0);
}

static void flags_0(void)
{
    serial(0);
}

static void flags_no_attach(void)
{
    serial(NO_ATTACH);
}

static void flags_both(void)
{
    serial(NO_ATTACH | NO_GPUS);
}

static void init_only(void)
{
    open_library();
    init(-1);
}

static void init_only_no_attach(void)
{
    open_library();
    init(NO_ATTACH | NO_GPUS);
}

static void twice(void)
{
    open_library();
    init(-1);
    init(NO_ATTACH);
    device d[GPUS_MAX];
    attach(d);
    attach(d);
}

/* What the driver does for a device that nobody has open. */
static void held_open(void)
{
    device d[GPUS_MAX];
    char path[32];
    step("open nvidiactl", open("/dev/nvidiactl", O_RDWR | O_CLOEXEC) < 0);
    for (unsigned i = 0; i < gpus_n; i++) {
        snprintf(path, sizeof path, "/dev/nvidia%u", i);
        step(path, open(path, O_RDWR | O_CLOEXEC) < 0);
    }
    open_library();
    init(-1);
    attach(d);
}

static void by_index(void)
{
    int (*f)(unsigned, device *);
    device d;
    open_library();
    init(-1);
    *(void **)&f = dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
    for (unsigned i = 0; i < gpus_n; i++)
        step("handle by index", f ? f(i, &d) : -1);
}

static device shared_device[GPUS_MAX];
static pthread_barrier_t all_attached;

static void *one_gpu(void *index)
{
    unsigned i = (unsigned)(uintptr_t)index;
    by_pci(pci[i], &shared_device[i]);
    pthread_barrier_wait(&all_attached);
    ask_gpu(shared_device, i);
    return NULL;
}

static void thread_per_gpu(void)
{
    pthread_t thread[GPUS_MAX];
    open_library();
    init(-1);
    pthread_barrier_init(&all_attached, NULL, gpus_n + 1);
    for (unsigned i = 0; i < gpus_n; i++)
        pthread_create(&thread[i], NULL, one_gpu, (void *)(uintptr_t)i);
    pthread_barrier_wait(&all_attached);
    step("all handles", 0);
    for (unsigned i = 0; i < gpus_n; i++)
        pthread_join(thread[i], NULL);
    step("all queries", 0);
}

static void *one_query(void *index)
{
    unsigned k = (unsigned)(uintptr_t)index;
    void *f = dlsym(library, queries[k].name);
    for (unsigned i = 0; f && i < gpus_n; i++)
        ask(&queries[k], f, shared_device, i);
    return NULL;
}

static void thread_per_query(void)
{
    pthread_t thread[QUERIES_N];
    open_library();
    init(-1);
    attach(shared_device);
    for (unsigned k = 0; k < QUERIES_N; k++)
        pthread_create(&thread[k], NULL, one_query, (void *)(uintptr_t)k);
    for (unsigned k = 0; k < QUERIES_N; k++)
        pthread_join(thread[k], NULL);
    step("all queries", 0);
}

/* A process for each GPU, which attaches no other. */
static void process_per_gpu(void)
{
    int ends[2];
    char byte;
    open_library();
    if (pipe(ends))
        _exit(1);
    for (unsigned i = 0; i < gpus_n; i++)
        if (fork() == 0) {
            device d[GPUS_MAX] = {0};
            close(ends[0]);
            init(-1);
            if (by_pci(pci[i], &d[i]) == 0)
                for (unsigned k = 0; k < QUERIES_N; k++) {
                    void *f = dlsym(library, queries[k].name);
                    if (f && queries[k].kind < PAIR)
                        ask(&queries[k], f, d, i);
                }
            close(ends[1]);
            _exit(0);
        }
    close(ends[1]);
    steps->n = 1; /* theirs overwrite each other */
    while (read(ends[0], &byte, 1) > 0)
        ;
    steps->n = 1;
    step("all told but pairs", 0);
}

static const struct variant {
    const char *name;
    void (*run)(void);
} variants[] = {
    {"init alone", init_only},
    {"init alone, no attach", init_only_no_attach},
    {"each query of all GPUs", each_query},
    {"the same, then shutdown", with_shutdown},
    {"initWithFlags(0)", flags_0},
    {"initWithFlags(NO_ATTACH)", flags_no_attach},
    {"initWithFlags(NO_ATTACH | NO_GPUS)", flags_both},
    {"init and handles twice", twice},
    {"devices held open", held_open},
    {"by index", by_index},
    {"a thread for each GPU", thread_per_gpu},
    {"a thread for each query", thread_per_query},
    {"a process for each GPU", process_per_gpu},
};

#define VARIANTS_N (sizeof variants / sizeof *variants)

static struct steps taken[VARIANTS_N][ROUNDS_MAX];
static double gone[VARIANTS_N][ROUNDS_MAX];

static void run(unsigned v, unsigned round)
{
    memset(steps, 0, sizeof *steps);
    began = now_ms();
    pid_t pid = fork();
    if (pid == 0) {
        last = now_ms();
        variants[v].run();
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    gone[v][round] = now_ms() - began - steps->told;
    taken[v][round] = *steps;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, unsigned n)
{
    qsort(values, n, sizeof *values, compare);
    return values[n / 2];
}

static void show(unsigned v, unsigned rounds)
{
    double values[ROUNDS_MAX];
    printf("%s:\n", variants[v].name);
    for (unsigned s = 0; s < taken[v][0].n; s++) {
        for (unsigned r = 0; r < rounds; r++)
            values[r] = taken[v][r].step[s].ms;
        printf("  %8.3f  %s", median(values, rounds), taken[v][0].step[s].name);
        if (taken[v][0].step[s].rc)
            printf(" (result %d)", taken[v][0].step[s].rc);
        printf("\n");
    }
    for (unsigned r = 0; r < rounds; r++)
        values[r] = taken[v][r].told;
    printf("  %8.3f  told\n", median(values, rounds));
    printf("  %8.3f  gone\n", median(gone[v], rounds));
}

int main(int argc, char **argv)
{
    unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 11;
    DIR *dir = opendir("/proc/driver/nvidia/gpus");
    struct dirent *entry;
    if (!dir || rounds == 0 || rounds > ROUNDS_MAX) {
        fprintf(stderr, "nvml_variants: no NVIDIA driver here, or not 1 to %d rounds\n",
                ROUNDS_MAX);
        return 2;
    }
    while ((entry = readdir(dir)) && gpus_n < GPUS_MAX)
        if (strchr(entry->d_name, ':'))
            snprintf(pci[gpus_n++], sizeof pci[0], "%.31s", entry->d_name);
    closedir(dir);
    steps = mmap(NULL, sizeof *steps, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (steps == MAP_FAILED)
        return 2;
    for (unsigned r = 0; r < rounds; r++)
        for (unsigned v = 0; v < VARIANTS_N; v++)
            run(v, r);
    printf("%u GPUs, medians of %u in ms\n", gpus_n, rounds);
    for (unsigned v = 0; v < VARIANTS_N; v++)
        show(v, rounds);
    return 0;
}
