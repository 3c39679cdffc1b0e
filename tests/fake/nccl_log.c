/* SPDX-License-Identifier: MIT */
/* The fake NCCL's log and transports: which way each pair of ranks would go, as the environment and the host ids have it, the
 * lines of NCCL_DEBUG_FILE with NCCL_DEBUG=INFO, in the form of 2.28, and faults that follow the way.
 *
 *   FAKE_NCCL_HANG=nvls|p2p|shm|always  no data comes through, unless NCCL_NVLS_ENABLE=0 | NCCL_P2P_DISABLE=1 |
 *                                       NCCL_SHM_DISABLE=1 | in any case
 *   FAKE_NCCL_WRONG=..., FAKE_NCCL_ERROR=...   likewise: a wrong element, an error
 *   FAKE_NCCL_VIA=shm                   no P2P although nothing forbids it */
#include "nccl_comm.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static FILE *file;

static bool env_is(const char *name, const char *value)
{
    const char *text = getenv(name);
    return text && strcmp(text, value) == 0;
}

/* %h the host, %p the pid. */
static void open_file(void)
{
    const char *name = getenv("NCCL_DEBUG_FILE");
    char path[4096], host[64] = "";
    size_t n = 0;

    if (!name || !env_is("NCCL_DEBUG", "INFO"))
        return;
    gethostname(host, sizeof(host) - 1);
    for (; *name && n < sizeof(path) - 100; name++) {
        if (strncmp(name, "%h", 2) == 0)
            n += (size_t)sprintf(path + n, "%s", host), name++;
        else if (strncmp(name, "%p", 2) == 0)
            n += (size_t)sprintf(path + n, "%d", getpid()), name++;
        else
            path[n++] = *name;
    }
    path[n] = '\0';
    file = fopen(path, "we");
    if (file)
        setvbuf(file, NULL, _IOLBF, 4096);
}

void fake_nccl_info(const char *format, ...)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    char line[1024], host[64] = "";
    int device = 0;
    va_list args;

    pthread_once(&once, open_file);
    if (!file)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    cudaGetDevice(&device);
    gethostname(host, sizeof(host) - 1);
    host[strcspn(host, ".")] = '\0';
    fprintf(file, "%s:%d:%ld [%d] NCCL INFO %s\n", host, getpid(), syscall(SYS_gettid), device,
            line);
}

void fake_nccl_log_init(const struct ncclComm *c, const char *bus_id, const char *what)
{
    static const char *const variables[] = {"NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL",
                                            "NCCL_SHM_DISABLE", "NCCL_NVLS_ENABLE", "NCCL_HOSTID"};
    int device = 0, version;

    cudaGetDevice(&device);
    ncclGetVersion(&version);
    for (size_t i = 0; i < sizeof(variables) / sizeof(*variables) && !strcmp(what, "START"); i++)
        if (getenv(variables[i]))
            fake_nccl_info("%s set by environment to %s", variables[i], getenv(variables[i]));
    if (c->rank == 0 && strcmp(what, "START") == 0 && file)
        fprintf(file, "NCCL version %d.%d.%d+cuda13.0\n", version / 10000, version / 100 % 100,
                version % 100);
    fake_nccl_info("ncclCommInitRankConfig comm %p rank %d nranks %d cudaDev %d nvmlDev %d busId "
                   "%lx commId 0x%lx - Init %s",
                   (const void *)c, c->rank, c->nranks, device, device,
                   fake_nccl_bus_number(bus_id), (unsigned long)c->m->nonce, what);
}

static const char *via(const struct ncclComm *c, int from, int to)
{
    if (c->m->seat[from].host != c->m->seat[to].host)
        return "NET/Socket/0";
    if (!env_is("NCCL_P2P_DISABLE", "1") && !env_is("NCCL_P2P_LEVEL", "LOC") &&
        !env_is("FAKE_NCCL_VIA", "shm"))
        return "P2P/CUMEM";
    return env_is("NCCL_SHM_DISABLE", "1") ? "NET/Socket/0" : "SHM/direct/direct";
}

/* How = "send", "receive". Only NET has both ends speak, and SHM has no connection's number. */
static void log_edge(const struct ncclComm *c, int channel, int connection, int from, int to,
                     const char *how)
{
    const char *way = via(c, from, to);
    bool net = strncmp(way, "NET", 3) == 0;
    char number[16] = "";

    if (from == to || (!net && strcmp(how, "send") != 0))
        return;
    if (strncmp(way, "SHM", 3) != 0)
        snprintf(number, sizeof(number), "/%d", connection);
    fake_nccl_info("Channel %02d%s : %d[%d] -> %d[%d]%s%s%s via %s", channel, number, from, from,
                   to, to, net ? " [" : "", net ? how : "", net ? "]" : "", way);
}

void fake_nccl_log_ring(const struct ncclComm *c)
{
    int next = (c->rank + 1) % c->nranks, previous = (c->rank + c->nranks - 1) % c->nranks;

    for (int channel = 0; channel < 2; channel++) {
        log_edge(c, channel, 0, c->rank, next, "send");
        log_edge(c, channel, 0, previous, c->rank, "receive");
    }
    fake_nccl_info("Connected all rings, use ring PXN 0 GDR 1");
}

void fake_nccl_log_pair(const struct ncclComm *c, int from, int to)
{
    log_edge(c, 0, 1, from, to, from == c->rank ? "send" : "receive");
}

bool fake_nccl_fault(const char *name)
{
    static const struct {
        const char *what, *variable, *cure;
    } faults[] = {{"nvls", "NCCL_NVLS_ENABLE", "0"},
                  {"p2p", "NCCL_P2P_DISABLE", "1"},
                  {"shm", "NCCL_SHM_DISABLE", "1"}};

    for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
        if (env_is(name, faults[i].what))
            return !env_is(faults[i].variable, faults[i].cure);
    return env_is(name, "always");
}
