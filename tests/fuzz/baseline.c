/* SPDX-License-Identifier: MIT */
/* Any bytes as the file of a baseline: taken, or refused with one line; what is taken is written as it was read, and can be
 * compared with itself. */
#include "../../agent/bench/bench_svg.h"
#include "round_trip.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static char *write_out(const struct baseline *b)
{
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    must(out != NULL, "no memory");
    baseline_write(out, b);
    fclose(out);
    return text;
}

static void check_shown(const struct baseline *b)
{
    struct baseline_comparison c;
    struct err err;
    FILE *out = fopen("/dev/null", "w");
    must(out != NULL, "no /dev/null");
    must(baseline_comparable(b, b, false, &err) == 0, "not comparable with itself");
    must(baseline_compare(&c, b, b, -1, &err) == 0, "no memory");
    must(c.verdict == BASELINE_SAME, "slower than itself");
    baseline_put_comparison(out, b, b, &c);
    baseline_put_history(out, b);
    bench_svg(out, b, b, &c, &EXPECTED[0]);
    baseline_comparison_finish(&c);
    fclose(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct baseline b, again;
    struct err err = {0};
    if (baseline_parse(&b, (const char *)data, n, &err) < 0) {
        check_line(&err);
        return 0;
    }
    char *first = write_out(&b);
    must(baseline_parse(&again, first, strlen(first), &err) == 0, "what was written is not taken");
    char *second = write_out(&again);
    must(strcmp(first, second) == 0, "what was written is another baseline");
    check_shown(&b);
    free(first);
    free(second);
    baseline_finish(&b);
    baseline_finish(&again);
    return 0;
}
