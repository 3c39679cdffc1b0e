/* SPDX-License-Identifier: MIT */
/* Any text as the value of any setting (rank maps, signals, exit codes, limits, GPUs, sizes, times, ...): NAME=TEXT, or, for
 * no name that there is, the row of its first byte. And as a list of the kernel's. */
#include "../../agent/bitset.h"
#include "../../config/fields.h"

#include "round_trip.h"

static void check_bitset(const char *text)
{
    struct bitset set, again;
    char *shown = malloc(BITSET_MAX * 6);
    must(shown != NULL, "no memory");
    if (bitset_parse(&set, text)) {
        must(bitset_parse(&again, bitset_text(&set, shown, BITSET_MAX * 6)), "a list of ours");
        must(memcmp(&set, &again, sizeof set) == 0, "another list");
        char little[16];
        must(strlen(bitset_text(&set, little, sizeof little)) < sizeof little, "too long");
    } else {
        must(bitset_empty(&set), "half a list");
    }
    free(shown);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct fuzz_in in = {data, data + n};
    struct job_spec spec;
    struct err err;
    char *input = in_text(&in), *argv[] = {(char *)"job", NULL};
    size_t name = strcspn(input, "=");
    const char *text = input[name] ? input + name + 1 : input;
    const struct field *field = field_find(input, name);
    if (!field)
        field = &FIELDS[(unsigned char)*input % FIELDS_N];
    must(spec_init(&spec) == 0, "no memory");
    spec.argv = argv;
    if (field_set(field, &spec, text, field->name, &err) < 0 || spec_check(&spec, &err) < 0)
        check_line(&err);
    else
        check_round_trip(&spec);
    spec_finish(&spec);
    check_bitset(text);
    free(input);
    return 0;
}
