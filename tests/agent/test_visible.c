/* SPDX-License-Identifier: MIT */
/* CUDA_VISIBLE_DEVICES: each form, each way to end, each mistake; all short texts over a small
 * alphabet. */
#include "../../agent/gpu.h"
#include "../harness.h"

#include <stdio.h>
#include <string.h>

#define A "GPU-8f000000-0000-0000-0000-00000000000a"
#define B "GPU-8f100000-0000-0000-0000-00000000000b"
#define C "GPU-c0000000-0000-0000-0000-00000000000c"
#define MIG "MIG-5c89852c-d268-c3f3-1b07-005d5ae1dc3f"
#define MIG_TOO_LONG MIG_OLD "0000000000000000000000000000000000000000"
#define MIG_OLD "MIG-GPU-8f000000-0000-0000-0000-00000000000a/9/0"

static struct gpu_set set;
static struct err err;

static struct gpu_list three(bool told)
{
    struct gpu_list list = {.vendor = GPU_NVIDIA, .n = 3};
    static const char *const uuid[] = {A, B, C};
    for (unsigned i = 0; i < 3 && told; i++)
        strcpy(list.gpu[i].uuid, uuid[i]);
    return list;
}

/* The chosen indices as text ("?" for unknown ones), or the error. */
static const char *choose_of(const struct gpu_list *list, const char *visible)
{
    static char text[4 * GPU_MAX];
    set.n = 12345;
    int rc = gpu_set_choose(&set, list, "CUDA_VISIBLE_DEVICES", visible, &err);
    if (rc < 0) {
        CHECK_INT(set.n, ==, 12345); /* untouched */
        CHECK_HAS(err.text, "CUDA_VISIBLE_DEVICES");
        return rc == -EINVAL ? "EINVAL" : rc == -E2BIG ? "E2BIG" : "other";
    }
    size_t n = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < set.n; i++)
        n += (size_t)sprintf(text + n, set.index[i] < 0 ? "?" : "%d", set.index[i]);
    return text;
}

static const char *choose(const char *visible)
{
    struct gpu_list list = three(true);
    return choose_of(&list, visible);
}

TEST(without_the_variable_all_gpus_are_chosen_by_index)
{
    CHECK_STR(choose(NULL), "012");
    CHECK(!set.given);
    CHECK_STR(set.entry[2], "2");
    CHECK_STR(set.stopped_at, "");
    CHECK_STR(choose("0"), "0");
    CHECK(set.given);
}

TEST(an_accepted_text_keeps_order_and_notation)
{
    static const struct {
        const char *visible, *chosen, *stopped_at;
    } cases[] = {
        {"", "", ""},
        {"  ", "", ""},
        {"2", "2", ""},
        {"2,0", "20", ""},
        {"0, 1\t, 2", "012", ""},
        {"0,", "0", ""},
        {"0, ", "0", ""},
        {"002,1", "21", ""},
        {"-1", "", "-1"},
        {"0,-1,1", "0", "-1"},
        {"1,-2,1", "1", "-2"},
        {"0,3,1", "0", "3"},
        {"0,99999999999999999999999999,1", "0", "99999999999999999999999999"},
        {"0,4294967297", "0", "4294967297"},
        {"none", "", "none"},
        {"NoDevFiles", "", "NoDevFiles"},
        {"void", "", "void"},
        {A, "0", ""},
        {"GPU-8f0,GPU-c", "02", ""},
        {"GPU-8F1", "1", ""},
        {C "," A "," B, "201", ""},
        {"GPU-8f,0", "", "GPU-8f"},      /* two devices */
        {"2,GPU-8fa,0", "2", "GPU-8fa"}, /* none */
        {"GPU-c,0,GPU-8f1", "201", ""},
        {MIG, "?", ""},
        {MIG "," MIG_OLD, "??", ""},
        {"MIG-GPU-8f000000-0000-0000-0000-00000000000a/9/1," MIG_OLD, "??", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_STR(choose(cases[i].visible), cases[i].chosen);
        CHECK_STR(set.stopped_at, cases[i].stopped_at);
    }
    choose("002,GPU-8f1," MIG_OLD);
    CHECK_STR(set.entry[0], "002");
    CHECK_STR(set.entry[1], "GPU-8f1");
    CHECK_STR(set.entry[2], MIG_OLD);
}

TEST(a_gpu_named_twice_is_an_error)
{
    static const char *const texts[] = {
        "0,0",        "1,01",      "0," A,         "GPU-c,2",
        A "," A,      MIG "," MIG, "GPU-c,GPU-c0", MIG_OLD "," MIG_OLD,
        "GPU-c,GPU-C"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        CHECK_STR(choose(texts[i]), "EINVAL");
        CHECK_HAS(err.text, "already");
    }
    CHECK_STR(choose("0,-1,0"), "0"); /* behind the end nothing is read */
}

TEST(junk_is_an_error_that_shows_it)
{
    static const char *const texts[] = {",",
                                        "0,,1",
                                        ",0",
                                        "foo",
                                        "0,1,foo",
                                        "1foo",
                                        "0x1",
                                        "+0",
                                        "--1",
                                        "-",
                                        "1-2",
                                        "all",
                                        "GPU",
                                        "GPU-",
                                        "GPU-xyz",
                                        A "0",
                                        "gpu-8f0",
                                        "MIG-",
                                        "MIG-GPU-",
                                        "0;1",
                                        "0 1",
                                        "MIG-GPU-8f000000-0000-0000-0000-00000000000a/9",
                                        "MIG-GPU-8f/1/1",
                                        "\xff",
                                        "MIG-GPU-8f000000-0000-0000-0000-00000000000a/9/0/",
                                        "0\n",
                                        "1.0",
                                        MIG_TOO_LONG};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        CHECK_STR(choose(texts[i]), "EINVAL");
    choose("0,1,fo\no\x1b[31m");
    CHECK_HAS(err.text, "\"fo?o?[31m\"");
}

TEST(an_uuid_that_the_driver_did_not_tell_is_believed)
{
    struct gpu_list list = three(false);
    CHECK_STR(choose_of(&list, A "," C), "??");
    CHECK_STR(choose_of(&list, A ",0"), "?0");
    CHECK_STR(choose_of(&list, A "," A), "EINVAL");
    strcpy(list.gpu[1].uuid, B);
    CHECK_STR(choose_of(&list, "GPU-c," B), "?1");
    struct gpu_list empty = {.n = 0};
    CHECK_STR(choose_of(&empty, "0"), "");
    CHECK_STR(choose_of(&empty, A), "");
    CHECK_STR(choose_of(&empty, NULL), "");
}

TEST(more_entries_than_gpus_can_be_are_an_error)
{
    char text[(GPU_MAX + 1) * 64], *end = text;
    for (unsigned i = 0; i < GPU_MAX + 1; i++)
        end += sprintf(end, "%sMIG-%08x-0000-0000-0000-000000000000", i ? "," : "", i);
    CHECK_STR(choose(text), "E2BIG");
    *strrchr(text, ',') = '\0';
    choose(text);
    CHECK_INT(set.n, ==, GPU_MAX);
}

/* What a list of indices means, said another way. */
static const char *oracle(const char *text)
{
    static char chosen[16];
    char copy[16], *rest = copy, *entry;
    size_t n = 0;
    strcpy(copy, text);
    chosen[0] = '\0';
    while ((entry = strsep(&rest, ","))) {
        if (!*entry)
            return rest ? "EINVAL" : chosen;
        int value, used = -1;
        if (sscanf(entry, "%d%n", &value, &used) != 1 || entry[used])
            return "EINVAL";
        if (value < 0 || value > 2 || *entry == '-')
            return chosen;
        if (strchr(chosen, '0' + value))
            return "EINVAL";
        chosen[n++] = (char)('0' + value);
        chosen[n] = '\0';
    }
    return chosen;
}

TEST(all_short_texts_of_digits_commas_and_signs_mean_what_they_should)
{
    static const char letters[] = "0123,-x";
    for (unsigned length = 0; length <= 6; length++) {
        unsigned total = 1;
        for (unsigned i = 0; i < length; i++)
            total *= 7;
        for (unsigned code = 0; code < total; code++) {
            char text[8] = "";
            for (unsigned i = 0, rest = code; i < length; i++, rest /= 7)
                text[i] = letters[rest % 7];
            const char *is = choose(text), *should = oracle(text);
            if (strcmp(is, should) != 0)
                test_fail(__FILE__, __LINE__, "\"%s\": %s, not %s", text, is, should);
        }
    }
}

TEST(each_vendor_has_its_variable)
{
    CHECK_STR(gpu_visible_variable(GPU_NVIDIA), "CUDA_VISIBLE_DEVICES");
    CHECK_STR(gpu_visible_variable(GPU_AMD), "HIP_VISIBLE_DEVICES");
    CHECK_STR(gpu_visible_variable(GPU_NONE), "CUDA_VISIBLE_DEVICES");
}
