/* SPDX-License-Identifier: MIT */
#include "corefile.h"

#include "sysfile.h"

#include <stdio.h>
#include <string.h>

/* Puts the pid in; what else the kernel fills in stays as "*". True: the pid was among it. */
static bool expand(const char *pattern, pid_t pid, char *text, size_t size)
{
    size_t used = 0;
    bool has_pid = false;
    text[0] = '\0';
    for (const char *at = pattern; *at && used + 1 < size; at++) {
        int n;
        if (*at != '%') {
            n = snprintf(text + used, size - used, "%c", *at < ' ' || *at == 127 ? '?' : *at);
        } else if (*++at == '\0') {
            break;
        } else if (*at == 'p' || *at == 'P') {
            n = snprintf(text + used, size - used, "%d", (int)pid);
            has_pid |= *at == 'p';
        } else {
            n = snprintf(text + used, size - used, "%c", *at == '%' ? '%' : '*');
        }
        used += (size_t)n;
    }
    return has_pid;
}

const char *corefile_describe(const char *pattern, bool uses_pid, pid_t pid, char *text,
                              size_t size)
{
    char name[128];
    if (pattern[0] == '|') {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(pattern + 1, " "), pattern + 1);
        char program[128];
        expand(name, pid, program, sizeof program);
        snprintf(text, size, "handed to %s%s", program,
                 strstr(program, "systemd-coredump") ? " (coredumpctl lists them)" : "");
        return text;
    }
    bool has_pid = expand(pattern, pid, name, sizeof name - 12);
    if (uses_pid && !has_pid) {
        size_t n = strlen(name);
        snprintf(name + n, sizeof name - n, ".%d", (int)pid);
    }
    snprintf(text, size, "%s%s", name,
             pattern[0] == '/' ? "" : " in the directory where the worker was");
    return text;
}

const char *corefile_find(const char *sysroot, pid_t pid, char *text, size_t size)
{
    char pattern[128];
    long long uses_pid = 0;
    text[0] = '\0';
    ssize_t n = sysfile_read(pattern, sizeof pattern, sysroot, "/proc/sys/kernel/core_pattern");
    if (n <= 0)
        return text;
    pattern[strcspn(pattern, "\n")] = '\0';
    if (sysfile_number(&uses_pid, sysroot, "/proc/sys/kernel/core_uses_pid") < 0)
        uses_pid = 0;
    return corefile_describe(pattern, uses_pid != 0, pid, text, size);
}
