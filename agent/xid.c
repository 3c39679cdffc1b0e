/* SPDX-License-Identifier: MIT */
#include "xid.h"

#include "../proto/base.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define RECORD_BYTES 8192   /* of /dev/kmsg at most (CONSOLE_EXT_LOG_MAX) */
#define RECORDS_MAX 100000u /* a log that grows while it is read has an end all the same */
#define MARK "NVRM: Xid (PCI:"

/* NVIDIA's public list of Xid errors: those that end programs. */
static const struct {
    unsigned number;
    const char *meaning;
} meanings[] = {
    {13, "an exception in a kernel: out-of-range access or illegal instruction"},
    {31, "access to GPU memory that is not mapped"},
    {43, "the GPU stopped working on this program"},
    {45, "clean-up after another error"},
    {48, "an uncorrectable memory error"},
    {63, "memory pages or rows are being retired"},
    {64, "memory pages or rows could not be retired"},
    {74, "an NVLink error"},
    {79, "the GPU has fallen off the bus"},
    {92, "many correctable memory errors"},
    {94, "a contained memory error"},
    {95, "an uncontained memory error"},
    {119, "the GPU's system processor does not answer"},
};

static const char *meaning_of(unsigned number)
{
    for (size_t i = 0; i < ARRAY_LEN(meanings); i++)
        if (meanings[i].number == number)
            return meanings[i].meaning;
    return NULL;
}

/* "6,1234,5678901,-;NVRM: Xid (PCI:0000:18:00): 31, pid=4711, name=python, ...": the third number is the time in us
 * since boot, on the clock that CLOCK_MONOTONIC is. */
static bool parse(const char *line, pid_t pid, struct xid *ret)
{
    unsigned long long us;
    struct xid xid = {0};
    const char *message = strchr(line, ';');
    const char *mark = message ? strstr(message, MARK) : NULL;
    if (!mark || sscanf(line, "%*u,%*u,%llu", &us) != 1)
        return false;
    if (sscanf(mark + strlen(MARK), "%23[0-9a-fA-F:.]): %u", xid.pci, &xid.number) != 2)
        return false;
    int named = 0;
    const char *process = strstr(mark, "pid=");
    if (process && sscanf(process, "pid=%d", &named) == 1)
        xid.by_process = named == pid;
    xid.meaning = meaning_of(xid.number);
    xid.at_us = us;
    *ret = xid;
    return true;
}

int xid_read(const char *sysroot, pid_t pid, void (*each)(void *user, const struct xid *xid),
             void *user)
{
    char path[PATH_MAX], record[RECORD_BYTES + 1];
    snprintf(path, sizeof path, "%s/dev/kmsg", sysroot);
    AUTO_FD fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    for (unsigned i = 0; i < RECORDS_MAX; i++) {
        ssize_t n = read(fd, record, RECORD_BYTES);
        if (n < 0 && (errno == EINTR || errno == EPIPE)) /* EPIPE: overtaken by new records */
            continue;
        if (n < 0 && errno != EAGAIN)
            return -errno;
        if (n <= 0)
            break;
        record[n] = '\0';
        /* The kernel gives one record a read; a file in its place, what fits. */
        char *rest;
        for (char *line = strtok_r(record, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
            struct xid xid;
            if (parse(line, pid, &xid))
                each(user, &xid);
        }
    }
    return 0;
}

struct search {
    uint64_t since_us;
    struct xid *ret;
    bool found;
};

/* What another process did is kept only until ours is found. */
static void take(void *user, const struct xid *xid)
{
    struct search *s = user;
    if (xid->at_us < s->since_us || (s->found && s->ret->by_process && !xid->by_process))
        return;
    *s->ret = *xid;
    s->found = true;
}

bool xid_find(const char *sysroot, pid_t pid, uint64_t since_ns, struct xid *ret)
{
    struct search s = {.since_us = since_ns / 1000, .ret = ret};
    (void)!xid_read(sysroot, pid, take, &s);
    return s.found;
}

void xid_explain(const struct xid *xid, char *what, size_t size)
{
    size_t n = strlen(what);
    snprintf(what + n, size - n, ", after Xid %u%s%s%s of GPU %s%s", xid->number,
             xid->meaning ? " (" : "", xid->meaning ? xid->meaning : "", xid->meaning ? ")" : "",
             xid->pci, xid->by_process ? "" : ", which the driver does not ascribe to it");
}
