/* SPDX-License-Identifier: MIT */
/* Any bytes as the file of a baseline: taken, or refused with one line; what is taken and written comes back the same, and can
 * be compared with itself. */
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

/* Written and read again. */
static void take_written(struct baseline *b, const char *text)
{
    struct err err = {0};
    must(baseline_parse(b, text, strlen(text), &err) == 0, "what was written is not taken");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct baseline b, again, third;
    struct err err = {0};
    if (baseline_parse(&b, (const char *)data, n, &err) < 0) {
        check_line(&err);
        return 0;
    }
    check_shown(&b);
    /* The first writing replaces what is no UTF-8. */
    char *first = write_out(&b);
    take_written(&again, first);
    char *second = write_out(&again);
    take_written(&third, second);
    char *last = write_out(&third);
    must(strcmp(second, last) == 0, "what was written is another baseline");
    free(first);
    free(second);
    free(last);
    baseline_finish(&b);
    baseline_finish(&again);
    baseline_finish(&third);
    return 0;
}
