/* SPDX-License-Identifier: MIT */
/* See nccl_log.h. A line is copied, cut to what NCCL itself cuts it to, and read with a few words that each either take
 * their part of it or leave it alone. */
#include "nccl_log.h"

#include "../proto/base.h"
#include "clean.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LINE_BYTES 1152 /* NCCL's 1024 and what a launcher puts before them */

/* Which lines a process wrote. */
enum { ANY = 1, START = 2, COMPLETE = 4, CONNECTING = 8, CONNECTED = 16 };

static const struct {
    const char *name, *words;
} vias[NCCL_VIAS_N] = {
#define X(id, name, words) {name, words},
    NCCL_VIAS(X)
#undef X
};

/* ---- words ---- */

/* Each moves *at behind what it takes; false: it is not there, and *at stays. */
static bool word(const char **at, const char *text)
{
    size_t n = strlen(text);
    if (strncmp(*at, text, n) != 0)
        return false;
    *at += n;
    return true;
}

static bool number_in(const char **at, unsigned base, uint64_t most, uint64_t *ret)
{
    uint64_t value = 0;
    const char *p = *at;
    for (;; p++) {
        unsigned digit = *p >= '0' && *p <= '9'   ? (unsigned)(*p - '0')
                         : *p >= 'a' && *p <= 'f' ? (unsigned)(*p - 'a') + 10
                                                  : 99;
        if (digit >= base)
            break;
        if (value > (most - digit) / base)
            return false;
        value = value * base + digit;
    }
    if (p == *at)
        return false;
    *at = p;
    *ret = value;
    return true;
}

static bool number(const char **at, unsigned most, unsigned *ret)
{
    uint64_t value;
    if (!number_in(at, 10, most, &value))
        return false;
    *ret = (unsigned)value;
    return true;
}

static bool skip_to(const char **at, const char *text)
{
    const char *found = strstr(*at, text);
    if (!found)
        return false;
    *at = found + strlen(text);
    return true;
}

/* A name without blanks, cut to what fits. */
static bool name(const char **at, char *ret, size_t bytes)
{
    size_t n = strcspn(*at, " ,:{");
    if (n == 0)
        return false;
    snprintf(ret, bytes, "%.*s", (int)n, *at);
    *at += n;
    return true;
}

/* ---- who wrote it ---- */

static struct nccl_log_process *find_process(struct nccl_log *log, long pid, int device)
{
    for (unsigned i = 0; i < log->processes_n; i++)
        if (log->process[i].pid == pid && log->process[i].device == device)
            return &log->process[i];
    if (log->processes_n == NCCL_LOG_RANKS_MAX)
        return NULL;
    struct nccl_log_process *process = &log->process[log->processes_n++];
    *process = (struct nccl_log_process){.pid = pid, .device = device, .rank = -1};
    return process;
}

/* "host:pid:tid [device] " ends at `end`; a WARN has "file:line " behind it. */
static bool read_writer(const char *line, const char *end, long *ret_pid, int *ret_device)
{
    for (const char *at = end; at > line; at--) {
        unsigned device, tid, pid;
        const char *p = at;
        if (!word(&p, " [") || !number(&p, 4096, &device) || !word(&p, "]"))
            continue;
        const char *first = at;
        while (first > line && first[-1] != ' ')
            first--;
        for (const char *q = first; q < at; q++) { /* the host's name may hold colons */
            p = q;
            if (q > first && word(&p, ":") && number(&p, INT32_MAX, &pid) && word(&p, ":") &&
                number(&p, INT32_MAX, &tid) && p == at) {
                *ret_pid = (long)pid;
                *ret_device = (int)device;
                return true;
            }
        }
    }
    return false;
}

/* ---- connections ---- */

static int read_via(const char *at)
{
    static const struct {
        const char *text;
        enum nccl_via via;
    } forms[] = {
        {"P2P/CUMEM", NCCL_VIA_P2P_CUMEM},
        {"P2P/IPC", NCCL_VIA_P2P_IPC},
        {"P2P/direct", NCCL_VIA_P2P_DIRECT},
        {"P2P/indirect", NCCL_VIA_P2P_INDIRECT},
        {"P2P/MNNVL", NCCL_VIA_MNNVL},
        {"SHM", NCCL_VIA_SHM},
        {"direct shared memory", NCCL_VIA_SHM},
        {"NET/Socket", NCCL_VIA_NET_SOCKET},
        {"NET/IB", NCCL_VIA_NET_IB},
        {"NET/", NCCL_VIA_NET_OTHER},
    };
    for (size_t i = 0; i < ARRAY_LEN(forms); i++)
        if (word(&at, forms[i].text))
            return (int)forms[i].via;
    return -1;
}

/* "3[2]", "3[3d000]", "3" */
static bool read_end(const char **at, unsigned *ret_rank)
{
    uint64_t device;
    return number(at, NCCL_LOG_RANKS_MAX - 1, ret_rank) &&
           (!word(at, "[") || (number_in(at, 16, UINT64_MAX, &device) && word(at, "]")));
}

/* "Channel 00/0 : 0[0] -> 1[1] [send] via NET/Socket/0"; before 2.8: "Ring 00 : ..." */
static bool take_connection(struct nccl_log *log, const char *at)
{
    unsigned channel, connection, from, to;
    if ((!word(&at, "Channel ") && !word(&at, "Ring ")) || !number(&at, 4096, &channel) ||
        (word(&at, "/") && !number(&at, 4096, &connection)) || !word(&at, " : ") ||
        !read_end(&at, &from) || !word(&at, " -> ") || !read_end(&at, &to))
        return false;
    if (!word(&at, " [send]"))
        word(&at, " [receive]");
    int via = word(&at, " via ") ? read_via(at) : -1;
    if (via < 0 || from == to)
        return false;
    log->via[from][to] |= (uint16_t)(1u << via);
    log->channel[from][to] |= UINT64_C(1) << (channel < 64 ? channel : 63);
    log->gdr[from][to] |= strstr(at, "GDRDMA") != NULL;
    return true;
}

/* ---- the other lines ---- */

/* "... rank 0 nranks 8 cudaDev 0 nvmlDev 0 busId 18000 ... - Init START" */
static void take_init(struct nccl_log *log, struct nccl_log_process *process, const char *text)
{
    unsigned rank, ranks;
    uint64_t bus;
    const char *at = text;
    bool start = strstr(text, "Init START"), complete = strstr(text, "Init COMPLETE");
    if (!start && !complete)
        return;
    if (!skip_to(&at, " rank ") || !number(&at, NCCL_LOG_RANKS_MAX - 1, &rank) ||
        !word(&at, " nranks ") || !number(&at, NCCL_LOG_RANKS_MAX, &ranks) || rank >= ranks)
        return;
    log->ranks = ranks;
    process->rank = (int)rank;
    process->lines |= start ? START : START | COMPLETE;
    if (skip_to(&at, " busId ") && number_in(&at, 16, UINT32_MAX, &bus))
        snprintf(process->bus, sizeof process->bus, "%04" PRIx64 ":%02x:%02x.%x", bus >> 20,
                 (unsigned)(bus >> 12) & 0xff, (unsigned)(bus >> 4) & 0x1f, (unsigned)bus & 7);
}

static void take_nvls(struct nccl_log *log, const char *text)
{
    if (strncmp(text, "NVLS comm ", 10) == 0 || strstr(text, "Connected NVLS tree") ||
        strstr(text, "NVLS Created Multicast group"))
        log->nvls = 1;
    else if (!log->nvls && strstr(text, "NVLS multicast support is not available"))
        log->nvls = -1;
}

void nccl_log_choose(struct nccl_log *log, const struct nccl_log_choice *choice)
{
    for (unsigned i = 0; i < log->choices_n; i++) {
        const struct nccl_log_choice *old = &log->choice[i];
        if (old->bytes == choice->bytes && strcmp(old->what, choice->what) == 0 &&
            strcmp(old->algorithm, choice->algorithm) == 0 &&
            strcmp(old->protocol, choice->protocol) == 0)
            return;
    }
    if (log->choices_n < NCCL_LOG_LISTS_MAX)
        log->choice[log->choices_n++] = *choice;
}

/* "AllReduce: 4096 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}"; 2.18: "... Algo 1 proto 2 time 21.0". */
static void take_choice(struct nccl_log *log, const char *at)
{
    struct nccl_log_choice choice = {0};
    if (!name(&at, choice.what, sizeof choice.what) || !word(&at, ": ") ||
        !number_in(&at, 10, INT64_MAX, &choice.bytes) || !word(&at, " Bytes -> Algo ") ||
        !name(&at, choice.algorithm, sizeof choice.algorithm) || !word(&at, " proto ") ||
        !name(&at, choice.protocol, sizeof choice.protocol))
        return;
    nccl_log_choose(log, &choice);
}

/* "NCCL_P2P_LEVEL set by environment to LOC", with a full stop in older ones. From a file it reads the same. */
static void take_setting(struct nccl_log *log, const char *at)
{
    struct nccl_log_setting setting = {0};
    if ((strncmp(at, "NCCL_", 5) != 0 && strncmp(at, "RCCL_", 5) != 0) ||
        !name(&at, setting.name, sizeof setting.name) || !word(&at, " set by environment to "))
        return;
    clean(setting.value, sizeof setting.value, at);
    size_t n = strlen(setting.value);
    if (n && setting.value[n - 1] == '.')
        setting.value[n - 1] = '\0';
    for (unsigned i = 0; i < log->settings_n; i++)
        if (strcmp(log->setting[i].name, setting.name) == 0)
            return;
    if (log->settings_n < NCCL_LOG_LISTS_MAX)
        log->setting[log->settings_n++] = setting;
}

/* "Pattern 4, ..., type NVL/PIX, sameChannels 1": pattern 4 is the ring; between GPUs/to the NIC. */
static void take_path(struct nccl_log *log, const char *at)
{
    if (!word(&at, "Pattern 4, ") || !skip_to(&at, ", type "))
        return;
    size_t n = strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
    if (n && n < sizeof log->path)
        snprintf(log->path, sizeof log->path, "%.*s", (int)n, at);
}

static void take_info(struct nccl_log *log, struct nccl_log_process *process, const char *text)
{
    if (take_connection(log, text))
        process->lines |= CONNECTING;
    else if (strncmp(text, "Connected ", 10) == 0 && strstr(text, "all "))
        process->lines |= CONNECTED;
    log->collnet |= strncmp(text, "CollNet ", 8) == 0 && strstr(text, " via COLLNET/");
    log->p2p_disabled_n += strncmp(text, "P2P is disabled between ", 24) == 0;
    take_init(log, process, text);
    take_nvls(log, text);
    take_choice(log, text);
    take_setting(log, text);
    take_path(log, text);
}

void nccl_log_line(struct nccl_log *log, const char *line, size_t n)
{
    char copy[LINE_BYTES];
    n = n < sizeof copy - 1 ? n : sizeof copy - 1;
    n = strnlen(line, n);
    memcpy(copy, line, n);
    copy[n] = '\0';
    copy[strcspn(copy, "\r\n")] = '\0';

    const char *at = copy;
    if (!log->version[0] && (skip_to(&at, "NCCL version ") || skip_to(&at, "RCCL version : "))) {
        char version[sizeof log->version];
        if (name(&at, version, sizeof version))
            clean(log->version, sizeof log->version, version);
    }
    at = copy;
    bool warn = !skip_to(&at, "NCCL INFO ");
    long pid;
    int device;
    if (warn && !skip_to(&at, "NCCL WARN "))
        return;
    if (!read_writer(copy, at - strlen("NCCL INFO "), &pid, &device))
        return;
    struct nccl_log_process *process = find_process(log, pid, device);
    if (!process)
        return;
    process->lines |= ANY;
    if (warn)
        clean(process->warning, sizeof process->warning, at);
    take_info(log, process, at); /* what is INFO in one version is WARN in another */
}

void nccl_log_text(struct nccl_log *log, const char *text, size_t n)
{
    while (n) {
        const char *newline = memchr(text, '\n', n);
        size_t length = newline ? (size_t)(newline - text) + 1 : n;
        nccl_log_line(log, text, length);
        text += length;
        n -= length;
    }
}

/* ---- what is asked ---- */

enum nccl_phase nccl_log_phase(const struct nccl_log_process *process)
{
    if (!process || !process->lines)
        return NCCL_PHASE_SILENT;
    if (!(process->lines & START))
        return NCCL_PHASE_BOOTSTRAP;
    /* Versions before 2.22, and NCCL_RUNTIME_CONNECT=0, connect before the communicator is complete. */
    if (process->lines & CONNECTED)
        return NCCL_PHASE_DATA;
    if (process->lines & CONNECTING)
        return NCCL_PHASE_CONNECT;
    return process->lines & COMPLETE ? NCCL_PHASE_READY : NCCL_PHASE_INIT;
}

const char *nccl_phase_words(enum nccl_phase phase)
{
    static const char *const words[] = {
        [NCCL_PHASE_SILENT] = "NCCL not called, or no communicator begun",
        [NCCL_PHASE_BOOTSTRAP] = "NCCL called, no communicator begun",
        [NCCL_PHASE_INIT] =
            "in the set-up of the communicator: meeting the others, looking at the machine",
        [NCCL_PHASE_READY] = "communicator set up, connected to nobody",
        [NCCL_PHASE_CONNECT] = "setting up connections",
        [NCCL_PHASE_DATA] = "connected; no data comes through",
    };
    return words[phase];
}

const struct nccl_log_process *nccl_log_rank(const struct nccl_log *log, int rank)
{
    for (unsigned i = 0; i < log->processes_n; i++)
        if (rank >= 0 && log->process[i].rank == rank)
            return &log->process[i];
    return NULL;
}

const char *nccl_via_name(enum nccl_via via)
{
    return vias[via].name;
}

const char *nccl_via_words(enum nccl_via via)
{
    return vias[via].words;
}

const char *nccl_log_cell(const struct nccl_log *log, unsigned from, unsigned to,
                          char text[NCCL_VIA_BYTES])
{
    size_t n = 0;
    text[0] = '\0';
    for (unsigned via = 0; via < NCCL_VIAS_N; via++)
        if (log->via[from][to] & 1u << via)
            n += (size_t)snprintf(text + n, NCCL_VIA_BYTES - n, "%s%s", n ? "+" : "",
                                  vias[via].name);
    if (n == 0)
        snprintf(text, NCCL_VIA_BYTES, "-");
    return text;
}

unsigned nccl_log_channels(const struct nccl_log *log, unsigned from, unsigned to)
{
    return (unsigned)__builtin_popcountll(log->channel[from][to]);
}
