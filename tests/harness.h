/* SPDX-License-Identifier: MIT */
/* Unit tests register themselves; the runner (harness.c, one binary for all) runs each in a process of its own with a time
 * limit, prints one line a test and ends with "N passed, N failed, N skipped". Exit 0 only if none failed.
 *
 *     TEST(a_board_refuses_a_foreign_version)
 *     {
 *         CHECK_INT(board_open(&b, fd, &err), ==, -EPROTO);
 *     }
 *
 * A failed CHECK prints both values with file:line and ends the test. No sleeping in tests: wait for an event. */
#ifndef LAUNCH_TESTS_HARNESS_H
#define LAUNCH_TESTS_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct test {
    const char *name; /* a sentence with underscores */
    const char *file;
    void (*run)(void);
};

/* Rows land in an ELF section that the runner walks. */
#define TEST(sentence)                                                                             \
    static void test_##sentence(void);                                                             \
    static const struct test row_##sentence                                                        \
        __attribute__((used, section("launch_tests"), aligned(sizeof(void *)))) = {                \
            #sentence, __FILE__, test_##sentence};                                                 \
    static void test_##sentence(void)

/* Ends the test: failed, with a message, or skipped, with a reason (STRICT=1 in the environment makes that a
 * failure). */
void test_fail(const char *file, int line, const char *format, ...)
    __attribute__((noreturn, format(printf, 3, 4)));
void test_skip(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Built with SAN=thread. */
#ifdef __has_feature
#define UNDER_TSAN __has_feature(thread_sanitizer)
#elif defined(__SANITIZE_THREAD__)
#define UNDER_TSAN 1
#else
#define UNDER_TSAN 0
#endif

#define CHECK(expr)                                                                                \
    do {                                                                                           \
        if (!(expr))                                                                               \
            test_fail(__FILE__, __LINE__, "%s", #expr);                                            \
    } while (0)

/* Each operand is evaluated once; integers are compared as long long. */
#define CHECK_INT(a, op, b)                                                                        \
    do {                                                                                           \
        long long check_a = (long long)(a), check_b = (long long)(b);                              \
        if (!(check_a op check_b))                                                                 \
            test_fail(__FILE__, __LINE__, "%s %s %s: %lld, %lld", #a, #op, #b, check_a, check_b);  \
    } while (0)

#define CHECK_STR(a, b)                                                                            \
    do {                                                                                           \
        const char *check_a = (a), *check_b = (b);                                                 \
        if (!check_a || strcmp(check_a, check_b) != 0)                                             \
            test_fail(__FILE__, __LINE__, "%s is \"%s\", not \"%s\"", #a,                          \
                      check_a ? check_a : "(null)", check_b);                                      \
    } while (0)

/* The text contains the part. */
#define CHECK_HAS(text, part)                                                                      \
    do {                                                                                           \
        const char *check_t = (text), *check_p = (part);                                           \
        if (!check_t || !strstr(check_t, check_p))                                                 \
            test_fail(__FILE__, __LINE__, "%s is \"%s\", without \"%s\"", #text,                   \
                      check_t ? check_t : "(null)", check_p);                                      \
    } while (0)

/* A directory of the test's own, removed by the runner afterwards; valid for the whole test. */
const char *test_dir(void);

/* Writes a file below test_dir() (parents are made); for fake /proc, /sys and /dev trees. */
void test_write(const char *path, const char *content);

#endif
