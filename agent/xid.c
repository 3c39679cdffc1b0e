/* SPDX-License-Identifier: MIT */
#include "xid.h"

#include "../proto/base.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define RECORD_BYTES 8192   /* of /dev/kmsg at most (CONSOLE_EXT_LOG_MAX) */
#define RECORDS_MAX 100000u /* a log that grows while it is read has an end all the same */
#define MARK "NVRM: Xid (PCI:"
#define KMSG makedev(1, 11)
#define ACTION_CHANGED 154 /* "GPU recovery action changed from 0x0 (None) to 0x1 (...)" */

/* "6,1234,5678901,-;NVRM: Xid (PCI:0000:18:00): 31, pid=4711, name=python, ...": the third number is the time in us since boot. */
static bool parse(const char *line, struct xid *ret)
{
    unsigned action;
    unsigned long long us;
    struct xid xid = {0};
    const char *message = strchr(line, ';');
    const char *mark = message ? strstr(message, MARK) : NULL;
    if (!mark || sscanf(line, "%*u,%*u,%19llu", &us) != 1)
        return false;
    if (sscanf(mark + strlen(MARK), "%23[0-9a-fA-F:.]): %9u", xid.pci, &xid.number) != 2)
        return false;
    xid.at_us = us;
    const char *process = strstr(mark, "pid=");
    if (process && sscanf(process, "pid=%9d", &xid.pid) == 1 && xid.pid < 0)
        xid.pid = 0;
    const char *to = xid.number == ACTION_CHANGED ? strstr(mark, " to 0x") : NULL;
    xid.fault = (struct gpu_fault){GPU_FAULT_XID, xid.number};
    if (to && sscanf(to, " to 0x%8x", &action) == 1)
        xid.fault = (struct gpu_fault){GPU_FAULT_RECOVERY, action};
    *ret = xid;
    return true;
}

int xid_open(const char *sysroot, bool from_end)
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/dev/kmsg", sysroot) >= (int)sizeof path)
        return -ENAMETOOLONG;
    AUTO_FD fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    bool log = S_ISCHR(st.st_mode) && st.st_rdev == KMSG;
    if (!log && !(*sysroot && S_ISREG(st.st_mode)))
        return -ENODEV; /* containers have had the console under that name */
    if (from_end)
        lseek(fd, 0, SEEK_END);
    return take_fd(&fd);
}

/* The kernel gives one record a read, lines that explain it included; a plain file as many as fit. */
static void read_lines(char *text, void (*on_xid)(void *user, const struct xid *xid), void *user)
{
    struct xid xid;
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (parse(line, &xid))
            on_xid(user, &xid);
}

void xid_read(int fd, void (*on_xid)(void *user, const struct xid *xid), void *user)
{
    char text[RECORD_BYTES + 1];
    for (unsigned i = 0; fd >= 0 && i < RECORDS_MAX; i++) {
        ssize_t n = read(fd, text, RECORD_BYTES);
        if (n < 0 && (errno == EINTR || errno == EPIPE)) /* EPIPE: overtaken by new records */
            continue;
        if (n <= 0)
            return;
        text[n] = '\0';
        read_lines(text, on_xid, user);
    }
}

bool xid_is_of(const struct xid *xid, const char *pci)
{
    size_t n = strlen(xid->pci);
    return n >= strlen("0000:18:00") && strncasecmp(xid->pci, pci, n) == 0;
}
