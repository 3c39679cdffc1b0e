/* SPDX-License-Identifier: MIT */
/* Lock files that another user has written: the input is cut at form feeds into the record of quarantine and the pages of a
 * GPU's holders and of the queue in turn, which are held. What is shown is fit for a terminal, or JSON. */
#include "../../agent/holdings.h"
#include "../../agent/quarantine.h"

#include "fuzz.h"

#include <fcntl.h>

#define RECORD "launch quarantine\n"

static int gpu_fd, queue_fd, holders[2];

/* A second open file of the same bytes, which holds them. */
static int open_again(int fd)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int other = open(path, O_RDWR | O_CLOEXEC);
    must(other >= 0, "no file");
    return other;
}

/* The file and its first pages. */
static void hold(int fd, unsigned pages)
{
    struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    (void)!fcntl(fd, F_OFD_SETLK, &lock);
    lock = (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 + (off_t)pages};
    must(fcntl(fd, F_OFD_SETLK, &lock) == 0, "no lock");
}

static void put(int fd, const void *bytes, size_t n, off_t at)
{
    must(pwrite(fd, bytes, n, at) == (ssize_t)n, "no file");
}

static void fill(struct fuzz_in *in)
{
    const off_t record_at = (off_t)HOLDER_PAGES * HOLDER_PAGE_BYTES;
    must(ftruncate(gpu_fd, 0) == 0 && ftruncate(queue_fd, 0) == 0, "no file");
    unsigned i = 0;
    for (; in_left(in) && i < 2 * HOLDER_PAGES; i++) {
        const uint8_t *end = memchr(in->at, '\f', in_left(in));
        size_t n = end ? (size_t)(end - in->at) : in_left(in);
        const uint8_t *chunk = in_bytes(in, n);
        (void)in_u8(in);
        if (i > 0) {
            put(i % 2 ? gpu_fd : queue_fd, chunk, n, (off_t)((i - 1) / 2) * HOLDER_PAGE_BYTES);
            continue;
        }
        put(gpu_fd, RECORD, strlen(RECORD), record_at);
        put(gpu_fd, chunk, n, record_at + (off_t)strlen(RECORD));
    }
    hold(holders[0], i / 2);
    hold(holders[1], i / 2);
}

static void show(const struct units *u, const struct gpu_list *gpus, const struct gpu_users *users)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    must(out != NULL, "no memory");
    holdings_print(out, u, gpus, users, "");
    fclose(out);
    check_lines(text, n);
    free(text);
    out = open_memstream(&text, &n);
    must(out != NULL, "no memory");
    holdings_print_json(out, u, gpus, users);
    fclose(out);
    check_json(text, n);
    free(text);
}

static void take_turns(const struct units *u)
{
    static struct turn_table table;
    units_look(u, &table);
    must(table.jobs <= GPU_MAX && table.asks <= GPU_MAX, "more jobs than fit");
    for (unsigned wants = 1; wants <= 3; wants++) {
        struct turn_ask job = {.ticket = UINT64_MAX, .among = 3, .wants = wants};
        uint64_t got = turn_grant(&table, &job);
        must((got & ~table.free) == 0, "a GPU that is not free");
        must(turn_before(&table, &job) <= table.asks, "too many before it");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct fuzz_in in = {data, data + n};
    struct gpu_list gpus = {.vendor = GPU_NVIDIA, .n = 2};
    static struct units u;
    if (!gpu_fd) {
        gpu_fd = file_of("", 0, 0);
        queue_fd = file_of("", 0, 0);
        holders[0] = open_again(gpu_fd);
        holders[1] = open_again(queue_fd);
        /* The second GPU is held by nobody: pages of the queue may want it. */
        u = (struct units){.n = 3,
                           .sysroot = "/nowhere",
                           .name = {"launch-gpu-0", "launch-gpu-1", "launch-mig-2"},
                           .fd = {gpu_fd, file_of("", 0, 0), gpu_fd},
                           .parent = {-1, -1, 0},
                           .queue = queue_fd};
    }
    fill(&in);
    show(&u, &gpus, &(struct gpu_users){0});
    take_turns(&u);
    return 0;
}
