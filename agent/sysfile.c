/* SPDX-License-Identifier: MIT */
/* See sysfile.h. Must never know what a file means. */
#include "sysfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define BLANKS " \t\r\n"

static ssize_t read_up_to(int fd, char *buffer, size_t bytes)
{
    size_t used = 0;
    while (used < bytes) {
        ssize_t n = read(fd, buffer + used, bytes - used);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        used += (size_t)n;
    }
    return (ssize_t)used;
}

static ssize_t read_path(char *buffer, size_t bytes, const char *sysroot, const char *format,
                         va_list ap)
{
    char path[PATH_MAX];
    int root = snprintf(path, sizeof path, "%s", sysroot);
    if (root < 0 || (size_t)root >= sizeof path)
        return -ENAMETOOLONG;
    int rest = vsnprintf(path + root, sizeof path - (size_t)root, format, ap);
    if (rest < 0 || (size_t)rest >= sizeof path - (size_t)root)
        return -ENAMETOOLONG;
    /* O_NONBLOCK: a FIFO in its place must not hold us up. */
    AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -errno;
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EINVAL;
    ssize_t n = read_up_to(fd, buffer, bytes - 1);
    if (n >= 0)
        buffer[n] = '\0';
    return n;
}

ssize_t sysfile_read(char *buffer, size_t bytes, const char *sysroot, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    ssize_t n = read_path(buffer, bytes, sysroot, format, ap);
    va_end(ap);
    return n;
}

int sysfile_number(long long *ret, const char *sysroot, const char *format, ...)
{
    char text[32];
    va_list ap;
    va_start(ap, format);
    ssize_t n = read_path(text, sizeof text, sysroot, format, ap);
    va_end(ap);
    if (n < 0)
        return (int)n;
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || end == text || end[strspn(end, BLANKS)] != '\0' || end > text + n)
        return -EINVAL;
    *ret = value;
    return 0;
}

bool sysfile_list(struct bitset *ret, const char *sysroot, const char *format, ...)
{
    char text[4096];
    va_list ap;
    va_start(ap, format);
    ssize_t n = read_path(text, sizeof text, sysroot, format, ap);
    va_end(ap);
    return n >= 0 && bitset_parse(ret, text);
}

bool sysfile_field(const char *text, const char *key, char *ret_value, size_t bytes)
{
    size_t key_bytes = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, key_bytes) != 0 || !strchr(BLANKS, line[key_bytes]))
            continue;
        const char *value = line + key_bytes + strspn(line + key_bytes, " \t");
        size_t n = strcspn(value, "\r\n");
        while (n && strchr(BLANKS, value[n - 1]))
            n--;
        n = n < bytes ? n : bytes - 1;
        memcpy(ret_value, value, n);
        ret_value[n] = '\0';
        return true;
    }
    return false;
}
