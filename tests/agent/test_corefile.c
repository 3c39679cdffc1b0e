/* SPDX-License-Identifier: MIT */
#include "../../agent/corefile.h"
#include "../../proto/base.h"
#include "../harness.h"

TEST(every_form_of_the_kernels_pattern_is_told)
{
    static const struct {
        const char *pattern;
        bool uses_pid;
        const char *want;
    } CASES[] = {
        {"core", false, "core in the directory where the worker was"},
        {"core", true, "core.4711 in the directory where the worker was"},
        {"core.%p", true, "core.4711 in the directory where the worker was"},
        {"/var/core/%e-%p-%%-%t", false, "/var/core/*-4711-%-*"},
        {"/var/core/%P", true, "/var/core/4711.4711"},
        {"|/usr/lib/systemd/systemd-coredump %P %u", false,
         "handed to /usr/lib/systemd/systemd-coredump (coredumpctl lists them)"},
        {"|/usr/share/apport/apport -p%p", false, "handed to /usr/share/apport/apport"},
        {"c\x1b[0m%", false, "c?[0m in the directory where the worker was"},
    };
    char text[256];
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++)
        CHECK_STR(corefile_describe(CASES[i].pattern, CASES[i].uses_pid, 4711, text, sizeof text),
                  CASES[i].want);
}

TEST(a_long_pattern_fits_into_any_room)
{
    char pattern[300], text[300];
    memset(pattern, 'p', sizeof pattern - 1);
    pattern[sizeof pattern - 1] = '\0';
    for (size_t size = 1; size < sizeof text; size++) {
        corefile_describe(pattern, true, 4711, text, size);
        CHECK(strlen(text) < size);
    }
}

TEST(the_settings_are_read_below_the_root)
{
    char text[256];
    CHECK_STR(corefile_find(test_dir(), 7, text, sizeof text), "");
    test_write("proc/sys/kernel/core_pattern", "core\n");
    CHECK_STR(corefile_find(test_dir(), 7, text, sizeof text),
              "core in the directory where the worker was");
    test_write("proc/sys/kernel/core_uses_pid", "1\n");
    CHECK_STR(corefile_find(test_dir(), 7, text, sizeof text),
              "core.7 in the directory where the worker was");
}
