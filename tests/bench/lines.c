/* SPDX-License-Identifier: MIT */
/* lines COUNT CHUNK_BYTES [RANK]: a worker that writes lines of 100 bytes, "RANK NUMBER xxx...", in writes of
 * CHUNK_BYTES wherever lines end. COUNT 0: for ever. With RANK only that rank writes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 100
#define DIGITS 15
#define CHUNK_MAX (1024 * 1024)

static int rank_of_us(void)
{
    static const char *const names[] = {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value)
            return atoi(value);
    }
    return 0;
}

static void write_all(const char *data, size_t n)
{
    while (n) {
        ssize_t w = write(STDOUT_FILENO, data, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            exit(1);
        data += w;
        n -= (size_t)w;
    }
}

/* Adds 1 to a decimal number that ends at *last: formatting each line anew would be slower than any launcher. */
static void count_up(char *last)
{
    for (; *last == '9'; last--)
        *last = '0';
    if (*last != ' ')
        ++*last;
}

int main(int argc, char **argv)
{
    unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    size_t chunk = argc > 2 ? strtoul(argv[2], NULL, 10) : 65536;
    int rank = rank_of_us();
    static char buffer[CHUNK_MAX + LINE_BYTES];
    if (argc < 3 || chunk < 1 || chunk > CHUNK_MAX) {
        fprintf(stderr, "usage: lines COUNT CHUNK_BYTES [RANK]\n");
        return 2;
    }
    if (argc > 3 && atoi(argv[3]) != rank)
        return 0;
    char line[LINE_BYTES + 1];
    memset(line, 'x', LINE_BYTES);
    line[LINE_BYTES - 1] = '\n';
    char *last = line + snprintf(line, sizeof line, "%d %0*d ", rank, DIGITS, 0) - 2;
    last[2] = 'x'; /* over snprintf's NUL */
    size_t used = 0;
    for (unsigned long i = 0; count == 0 || i < count; i++) {
        memcpy(buffer + used, line, LINE_BYTES);
        used += LINE_BYTES;
        count_up(last);
        size_t done = 0;
        for (; used - done >= chunk; done += chunk)
            write_all(buffer + done, chunk);
        memmove(buffer, buffer + done, used - done);
        used -= done;
    }
    write_all(buffer, used);
    return 0;
}
