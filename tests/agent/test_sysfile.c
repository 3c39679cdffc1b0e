/* SPDX-License-Identifier: MIT */
/* Small files with large, binary, missing or wrong content. */
#include "../../agent/sysfile.h"
#include "../harness.h"

TEST(a_long_file_is_cut_and_a_missing_one_is_named_by_its_error)
{
    char text[5];
    test_write("a", "123456789");
    CHECK_INT(sysfile_read(text, sizeof text, test_dir(), "/%s", "a"), ==, 4);
    CHECK_STR(text, "1234");
    CHECK_INT(sysfile_read(text, sizeof text, test_dir(), "/b"), ==, -ENOENT);
    CHECK_INT(sysfile_read(text, sizeof text, test_dir(), "/"), ==, -EINVAL);
    CHECK_INT(sysfile_read(text, sizeof text, test_dir(), "/%05000d", 0), ==, -ENAMETOOLONG);
}

TEST(a_number_is_a_number_and_nothing_else)
{
    static const char *const bad[] = {"", "\n", "x", "1x", "1 2", "99999999999999999999", "\xff"};
    long long n = 7;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        test_write("n", bad[i]);
        CHECK_INT(sysfile_number(&n, test_dir(), "/n"), ==, -EINVAL);
        CHECK_INT(n, ==, 7);
    }
    test_write("n", "-12\n");
    CHECK_INT(sysfile_number(&n, test_dir(), "/n"), ==, 0);
    CHECK_INT(n, ==, -12);
}

TEST(a_field_is_found_at_line_starts_only)
{
    static const char text[] = "Model: \t\t X 1 \nOld Model: Y\r\nEmpty:\nModelx 3\nlast 4";
    char value[8];
    CHECK(sysfile_field(text, "Model:", value, sizeof value));
    CHECK_STR(value, "X 1");
    CHECK(sysfile_field(text, "Old Model:", value, 2));
    CHECK_STR(value, "Y");
    CHECK(sysfile_field(text, "Empty:", value, sizeof value));
    CHECK_STR(value, "");
    CHECK(!sysfile_field(text, "Model", value, sizeof value));
    CHECK(sysfile_field(text, "last", value, sizeof value));
    CHECK_STR(value, "4");
    CHECK(!sysfile_field("", "x", value, sizeof value));
}

TEST(a_list_is_read_as_a_set)
{
    struct bitset set;
    test_write("list", "0-3,8\n");
    CHECK(sysfile_list(&set, test_dir(), "/%s", "list"));
    CHECK_INT(bitset_count(&set), ==, 5);
    test_write("list", "0-x\n");
    CHECK(!sysfile_list(&set, test_dir(), "/list"));
    CHECK(!sysfile_list(&set, test_dir(), "/missing"));
}
