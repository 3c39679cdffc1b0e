/* SPDX-License-Identifier: MIT */
/* proto/board.c, what it makes and what it refuses; waiting and dying are in test_board_wait.c. */
#include "../../proto/board.h"
#include "../harness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void make(struct board *b, uint32_t world)
{
    struct err err = {0};
    struct board_config config = {.world_size = world, .generation = 1, .run_id = "r"};
    if (board_create(b, &config, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
}

/* The lowest free descriptor: unchanged if nothing leaked. */
static int next_fd(void)
{
    int fd = dup(0);
    close(fd);
    return fd;
}

TEST(a_new_board_holds_what_it_was_given)
{
    struct board b, copy;
    struct err err;
    struct board_config config = {.world_size = 3,
                                  .generation = 7,
                                  .rendezvous_timeout_ms = 1000,
                                  .spin_ns = 5,
                                  .restart_count = 2,
                                  .max_restarts = 4,
                                  .gpu_count = 3,
                                  .flags = BOARD_FLAG_SHARE_GPUS,
                                  .run_id = "run"};
    CHECK_INT(board_create(&b, &config, &err), ==, 0);
    CHECK_INT(board_open(&copy, b.fd, &err), ==, 0);
    const struct board_head *h = copy.head;
    CHECK(h != b.head);
    CHECK_INT(h->world_size, ==, 3);
    CHECK_INT(h->generation, ==, 7);
    CHECK_INT(h->rendezvous_timeout_ms, ==, 1000);
    CHECK_INT(h->spin_ns, ==, 5);
    CHECK_INT(h->restart_count, ==, 2);
    CHECK_INT(h->max_restarts, ==, 4);
    CHECK_INT(h->gpu_count, ==, 3);
    CHECK_INT(h->flags, ==, BOARD_FLAG_SHARE_GPUS);
    CHECK_INT(h->epoch + h->running + h->stop + h->id_generation, ==, 0);
    CHECK_STR(h->run_id, "run");
    for (uint32_t r = 0; r < 3; r++) {
        CHECK_INT(board_slot(&copy, r)->rank, ==, r);
        CHECK_INT(board_slot(&copy, r)->local_rank, ==, r);
        CHECK_INT(board_slot(&copy, r)->device, ==, -1);
        CHECK_INT(board_slot(&copy, r)->stage, ==, 0);
    }
    board_close(&copy);
    board_close(&b);
}

TEST(a_world_of_no_ranks_or_too_many_is_refused)
{
    static const uint32_t bad[] = {0, BOARD_MAX_RANKS + 1, UINT32_MAX};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct board b;
        struct err err;
        struct board_config config = {.world_size = bad[i], .generation = 1};
        CHECK_INT(board_create(&b, &config, &err), ==, -EINVAL);
        CHECK_INT(b.fd, ==, -1);
    }
}

TEST(generation_zero_is_refused)
{
    struct board b;
    struct err err;
    struct board_config config = {.world_size = 1};
    CHECK_INT(board_create(&b, &config, &err), ==, -EINVAL);
}

TEST(slots_and_data_of_every_rank_lie_inside_and_apart)
{
    static const uint32_t worlds[] = {1, 2, 4, 5, 8, 9, 64, 1000, BOARD_MAX_RANKS};
    for (size_t i = 0; i < ARRAY_LEN(worlds); i++) {
        struct board b;
        make(&b, worlds[i]);
        char *base = (char *)b.head, *end = base + b.bytes;
        CHECK_INT(b.head->total_bytes, ==, b.bytes);
        char *slots_end = (char *)(board_slot(&b, worlds[i] - 1) + 1);
        CHECK((char *)board_slot(&b, 0) == base + sizeof(struct board_head));
        CHECK((char *)board_data(&b, 0) >= slots_end);
        CHECK((char *)board_data(&b, 0) == base + b.head->data_offset);
        for (uint32_t r = 1; r < worlds[i]; r++) {
            CHECK(board_slot(&b, r) == board_slot(&b, r - 1) + 1);
            CHECK((char *)board_data(&b, r) == (char *)board_data(&b, r - 1) + BOARD_DATA_BYTES);
        }
        CHECK((char *)board_data(&b, worlds[i] - 1) + BOARD_DATA_BYTES == end);
        board_close(&b);
    }
}

TEST(a_long_run_id_is_cut_and_none_is_named_so)
{
    char text[200];
    memset(text, 'i', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    struct board b;
    struct err err;
    struct board_config config = {.world_size = 1, .generation = 1, .run_id = text};
    CHECK_INT(board_create(&b, &config, &err), ==, 0);
    CHECK_INT(strlen(b.head->run_id), ==, BOARD_RUN_ID_BYTES - 1);
    board_close(&b);
    config.run_id = NULL;
    CHECK_INT(board_create(&b, &config, &err), ==, 0);
    CHECK_STR(b.head->run_id, "none");
    board_close(&b);
}

TEST(closing_takes_closed_and_zeroed_boards)
{
    struct board zero = {0}, b;
    board_close(&zero);
    CHECK(fcntl(0, F_GETFD) >= 0); /* fd 0 of a zeroed board is not ours */
    make(&b, 1);
    int fd = b.fd;
    board_close(&b);
    CHECK_INT(b.fd, ==, -1);
    CHECK_INT(fcntl(fd, F_GETFD), ==, -1);
    board_close(&b);
}

TEST(opening_duplicates_and_does_not_outlive_exec)
{
    struct board b, copy;
    struct err err;
    make(&b, 1);
    CHECK(fcntl(b.fd, F_GETFD) & FD_CLOEXEC);
    CHECK_INT(board_open(&copy, b.fd, &err), ==, 0);
    CHECK_INT(copy.fd, !=, b.fd);
    CHECK(fcntl(copy.fd, F_GETFD) & FD_CLOEXEC);
    board_close(&b);
    CHECK_INT(board_slot(&copy, 0)->rank, ==, 0);
    board_close(&copy);
}

TEST(a_board_cannot_be_resized_by_anyone)
{
    struct board b;
    make(&b, 2);
    CHECK_INT(ftruncate(b.fd, 0), ==, -1);
    CHECK_INT(errno, ==, EPERM);
    CHECK_INT(ftruncate(b.fd, (off_t)b.bytes * 2), ==, -1);
    CHECK_INT(fcntl(b.fd, F_ADD_SEALS, F_SEAL_WRITE), ==, -1);
    board_close(&b);
}

/* ---- what is no board ---- */

static void refused(int fd, int want)
{
    struct board b;
    struct err err = {0};
    int before = next_fd();
    CHECK_INT(board_open(&b, fd, &err), ==, want);
    CHECK_INT(b.fd, ==, -1);
    CHECK(b.head == NULL);
    CHECK_HAS(err.text, "board: ");
    CHECK_INT(next_fd(), ==, before);
}

TEST(a_closed_descriptor_is_refused)
{
    refused(-1, -EBADF);
    refused(next_fd(), -EBADF);
}

TEST(pipes_directories_devices_and_plain_files_are_refused)
{
    int pipes[2];
    CHECK_INT(pipe(pipes), ==, 0);
    refused(pipes[0], -EPROTO);
    refused(open("/", O_RDONLY), -EPROTO);
    refused(open("/dev/zero", O_RDWR), -EPROTO);
    char path[4096];
    test_write("file", "short");
    snprintf(path, sizeof path, "%s/file", test_dir());
    int fd = open(path, O_RDWR);
    refused(fd, -EPROTO);
    struct board b;
    make(&b, 1);
    CHECK_INT(ftruncate(fd, (off_t)b.bytes), ==, 0);
    CHECK_INT(pwrite(fd, b.head, 4096, 0), ==, 4096); /* a true head in a file without seals */
    refused(fd, -EPROTO);
}

/* A memfd with the head of a true board, of the given size. */
static int forge(const struct board *b, size_t bytes, int seals)
{
    int fd = memfd_create("forged", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    size_t head = bytes < 4096 ? bytes : 4096;
    CHECK(fd >= 0);
    CHECK_INT(pwrite(fd, b->head, head, 0), ==, head);
    CHECK_INT(ftruncate(fd, (off_t)bytes), ==, 0);
    CHECK_INT(fcntl(fd, F_ADD_SEALS, seals), ==, 0);
    return fd;
}

TEST(a_board_that_can_still_shrink_is_refused)
{
    struct board b, copy;
    struct err err;
    make(&b, 1);
    refused(forge(&b, b.bytes, 0), -EPROTO);
    refused(forge(&b, b.bytes, F_SEAL_GROW), -EPROTO);
    CHECK_INT(board_open(&copy, forge(&b, b.bytes, F_SEAL_SHRINK), &err), ==, 0);
}

TEST(a_file_of_another_length_is_refused)
{
    struct board b;
    make(&b, 2);
    size_t sizes[] = {0,
                      1,
                      sizeof(struct board_head) - 1,
                      sizeof(struct board_head),
                      4096,
                      b.bytes - 4096,
                      b.bytes - 1,
                      b.bytes + 1,
                      b.bytes + 4096,
                      2 * b.bytes};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        refused(forge(&b, sizes[i], F_SEAL_SHRINK), -EPROTO);
}

TEST(a_read_only_descriptor_is_refused)
{
    struct board b;
    make(&b, 1);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", b.fd);
    refused(open(path, O_RDONLY), -EACCES);
}

/* Every bit of the constant part of the head is turned in turn; those that describe the layout matter. */
TEST(every_bit_of_the_layout_counts)
{
    struct board b, copy;
    struct err err;
    make(&b, 2);
    unsigned char *head = (unsigned char *)b.head;
    for (size_t bit = 0; bit < 8 * offsetof(struct board_head, epoch); bit++) {
        if (bit / 8 >= offsetof(struct board_head, total_bytes) + sizeof b.head->total_bytes)
            break; /* padding */
        head[bit / 8] ^= (unsigned char)(1u << bit % 8);
        if (board_open(&copy, b.fd, &err) != -EPROTO)
            test_fail(__FILE__, __LINE__, "bit %zu of byte %zu is not looked at", bit % 8, bit / 8);
        head[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    CHECK_INT(board_open(&copy, b.fd, &err), ==, 0);
}

TEST(another_version_is_named)
{
    struct board b, copy;
    struct err err;
    make(&b, 1);
    b.head->version = 99;
    CHECK_INT(board_open(&copy, b.fd, &err), ==, -EPROTO);
    CHECK_HAS(err.text, "version 99");
}

/* ---- limits ---- */

TEST(no_descriptor_left_is_an_error_and_no_leak)
{
    struct board b, copy;
    struct err err;
    struct board_config config = {.world_size = 1, .generation = 1};
    make(&b, 1);
    struct rlimit normal, none;
    CHECK_INT(getrlimit(RLIMIT_NOFILE, &normal), ==, 0);
    none = (struct rlimit){.rlim_cur = (rlim_t)next_fd(), .rlim_max = normal.rlim_max};
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &none), ==, 0);
    CHECK_INT(board_create(&copy, &config, &err), ==, -EMFILE);
    CHECK_HAS(err.text, "memfd_create");
    CHECK(board_open(&copy, b.fd, &err) < 0);
    CHECK_INT(copy.fd, ==, -1);
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &normal), ==, 0);
}

TEST(a_file_size_limit_is_an_error_and_no_signal)
{
    for (rlim_t kib = 0; kib <= 1024; kib += 64) {
        struct board b;
        struct err err;
        struct board_config config = {.world_size = 1, .generation = 1};
        struct rlimit limit = {.rlim_cur = kib * 1024, .rlim_max = RLIM_INFINITY};
        CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), ==, 0);
        int before = next_fd();
        CHECK_INT(board_create(&b, &config, &err), ==, -EFBIG);
        CHECK_HAS(err.text, "File too large");
        CHECK_INT(next_fd(), ==, before);
        sigset_t pending;
        sigpending(&pending);
        CHECK(!sigismember(&pending, SIGXFSZ));
    }
}

TEST(an_existing_board_does_not_mind_a_file_size_limit)
{
    struct board b, copy;
    struct err err;
    make(&b, 2);
    struct rlimit limit = {.rlim_cur = 0, .rlim_max = RLIM_INFINITY};
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), ==, 0);
    CHECK_INT(board_open(&copy, b.fd, &err), ==, 0);
    memset(board_data(&copy, 0), 1, 2 * BOARD_DATA_BYTES);
    board_slot(&copy, 1)->join_flags = 1;
}

TEST(no_address_space_is_an_error_and_no_leak)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    test_skip("the sanitizer needs the address space itself");
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    test_skip("the sanitizer needs the address space itself");
#endif
#endif
    struct board b;
    struct err err;
    struct board_config config = {.world_size = BOARD_MAX_RANKS, .generation = 1};
    struct rlimit limit = {.rlim_cur = 1ull << 30, .rlim_max = 1ull << 30};
    CHECK_INT(setrlimit(RLIMIT_AS, &limit), ==, 0);
    int before = next_fd();
    CHECK_INT(board_create(&b, &config, &err), ==, -ENOMEM);
    CHECK_HAS(err.text, "mmap");
    CHECK_INT(next_fd(), ==, before);
}

/* ---- error texts ---- */

TEST(an_error_text_arrives)
{
    struct board b;
    char text[BOARD_ERROR_BYTES + 1];
    make(&b, 1);
    CHECK_INT(board_get_error(board_slot(&b, 0), text, sizeof text), ==, 0);
    CHECK_STR(text, "");
    board_put_error(board_slot(&b, 0), "no GPU");
    CHECK_INT(board_get_error(board_slot(&b, 0), text, sizeof text), ==, 6);
    CHECK_STR(text, "no GPU");
}

TEST(error_texts_of_every_length_fit_buffers_of_every_size)
{
    struct board b;
    make(&b, 1);
    struct board_slot *slot = board_slot(&b, 0);
    static char long_text[2 * BOARD_ERROR_BYTES];
    memset(long_text, 'x', sizeof long_text - 1);
    for (size_t n = 0; n < sizeof long_text; n++) {
        board_put_error(slot, long_text + sizeof long_text - 1 - n);
        size_t kept = n < BOARD_ERROR_BYTES ? n : BOARD_ERROR_BYTES;
        for (size_t size = 0; size <= BOARD_ERROR_BYTES + 2; size += size < 3 ? 1 : 89) {
            char *text = malloc(size + 1); /* the byte behind is a guard, and ASan's */
            text[size] = 'g';
            size_t got = board_get_error(slot, text, size);
            size_t want = size == 0 ? 0 : kept < size - 1 ? kept : size - 1;
            CHECK_INT(got, ==, want);
            CHECK(size == 0 || strlen(text) == want);
            CHECK_INT(text[size], ==, 'g');
            free(text);
        }
    }
}

TEST(hostile_error_bytes_come_out_printable)
{
    struct board b;
    char text[BOARD_ERROR_BYTES + 1];
    make(&b, 1);
    struct board_slot *slot = board_slot(&b, 0);
    for (int i = 0; i < BOARD_ERROR_BYTES; i++)
        slot->error[i] = (char)i;
    static const uint32_t lengths[] = {BOARD_ERROR_BYTES, BOARD_ERROR_BYTES + 1, INT32_MAX,
                                       UINT32_MAX};
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        slot->error_bytes = lengths[i];
        CHECK_INT(board_get_error(slot, text, sizeof text), ==, BOARD_ERROR_BYTES);
        CHECK_INT(strlen(text), ==, BOARD_ERROR_BYTES);
        for (int c = 0; c < BOARD_ERROR_BYTES; c++) {
            int byte = c % 256;
            CHECK_INT(text[c], ==, byte >= ' ' && byte < 127 ? byte : '?');
        }
    }
}

TEST(a_rank_outside_the_board_is_our_bug)
{
    for (int data = 0; data < 2; data++) {
        pid_t pid = fork();
        if (pid == 0) {
            struct board b;
            struct rlimit no_core = {0};
            setrlimit(RLIMIT_CORE, &no_core);
            make(&b, 2);
            if (data)
                board_data(&b, 2);
            else
                board_slot(&b, 2);
            _exit(0);
        }
        int status;
        CHECK_INT(waitpid(pid, &status, 0), ==, pid);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
}

TEST(spares_lie_behind_the_ranks_and_have_no_rank)
{
    struct err err = {0};
    struct board_config config = {.world_size = 3, .spares = 2, .generation = 1};
    struct board b, other;
    CHECK_INT(board_create(&b, &config, &err), ==, 0);
    CHECK_INT(board_open(&other, b.fd, &err), ==, 0);
    CHECK_INT(other.places, ==, 5);
    CHECK_INT(other.head->members, ==, 3);
    for (uint32_t i = 0; i < 5; i++)
        CHECK_INT(board_slot(&other, i)->rank, ==, i < 3 ? i : BOARD_NO_RANK);
    CHECK((char *)board_data(&other, 4) + BOARD_DATA_BYTES == (char *)other.head + other.bytes);
    board_close(&other);
    b.head->spares = 1; /* the sizes contradict each other */
    CHECK_INT(board_open(&other, b.fd, &err), ==, -EPROTO);
    board_close(&b);
    config.spares = BOARD_MAX_RANKS + 1;
    CHECK_INT(board_create(&b, &config, &err), ==, -EINVAL);
}
