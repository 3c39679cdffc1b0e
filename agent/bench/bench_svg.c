/* SPDX-License-Identifier: MIT */
/* Plain SVG with one style sheet, which knows light and dark; what does not read it shows light. */
#include "bench_svg.h"

#include "../topo.h"

#include <stdarg.h>
#include <string.h>

#define WIDTH 960
#define HEIGHT 540
#define LEFT 72
#define RIGHT (WIDTH - 28)
#define TOP 112
#define BOTTOM (HEIGHT - 56)
#define KEYS_Y 88
#define LABELS_X 12 /* at most about so many */
#define LABELS_Y 8
#define TITLE_FITS 84 /* characters of a line */
#define NOTE_FITS 140

static const char style[] = "<style>\n"
                            "text { fill: #1f2a37; font-size: 12px }\n"
                            ".title { font-size: 18px; font-weight: bold }\n"
                            ".paper { fill: #ffffff }\n"
                            ".note { fill: #5b6776 }\n"
                            ".grid { color: #dde2e9 }\n"
                            ".axis { color: #5b6776 }\n"
                            ".out { color: #1f6fc4 }\n"
                            ".in { color: #c7641a }\n"
                            ".then { color: #6b7684 }\n"
                            ".expected { color: #3d8b2a }\n"
                            ".slower { color: #c62828 }\n"
                            "text.expected { fill: currentColor }\n"
                            "@media (prefers-color-scheme: dark) {\n"
                            "text { fill: #e6eaf0 }\n"
                            ".paper { fill: #161b22 }\n"
                            ".note { fill: #9aa5b3 }\n"
                            ".grid { color: #2c343f }\n"
                            ".axis { color: #9aa5b3 }\n"
                            ".out { color: #5aa5f2 }\n"
                            ".in { color: #f0954a }\n"
                            ".then { color: #9aa5b3 }\n"
                            ".expected { color: #6cc455 }\n"
                            ".slower { color: #ff6b6b }\n"
                            "text.expected { fill: currentColor }\n"
                            "}\n"
                            "</style>\n";

#define FILL "fill=\"currentColor\""
#define STROKE "fill=\"none\" stroke=\"currentColor\" stroke-width=\"2\""
#define DASHES "stroke-dasharray=\"7 4\""
#define DOTS "stroke-dasharray=\"2 3\""

struct picture {
    FILE *out;
    const struct baseline *now, *then;
    const struct baseline_comparison *comparison;
    const struct expected *expected;
    double least, most; /* lg() of the sizes at the two ends */
    double top;         /* GB/s at the upper end */
    bool alg;           /* bus bandwidth is 0 for one rank: the algorithm's instead */
};

/* ---- scales ---- */

/* log2, straight between powers of two: nobody sees the difference, and it is exact where the labels are. */
static double lg(uint64_t size)
{
    if (size < 2)
        return 0;
    int power = 63 - __builtin_clzll(size);
    return power + (double)(size - ((uint64_t)1 << power)) / (double)((uint64_t)1 << power);
}

static double x_of(const struct picture *p, uint64_t size)
{
    if (p->most <= p->least)
        return (LEFT + RIGHT) / 2.0;
    return LEFT + (lg(size) - p->least) / (p->most - p->least) * (RIGHT - LEFT);
}

static double y_of(const struct picture *p, double bw)
{
    double part = bw / p->top;
    return BOTTOM - (part < 1 ? part : 1) * (BOTTOM - TOP);
}

/* A run of several types or operations: the first one is drawn. */
static bool is_drawn(const struct picture *p, unsigned i)
{
    const struct bench_result *r = &p->now->points[i].result, *first = &p->now->points[0].result;
    return r->size > 0 && r->type == first->type && r->op == first->op && r->root == first->root;
}

static double bw_of(const struct picture *p, const struct baseline *b, unsigned i,
                    enum baseline_half which)
{
    const struct bench_half *half = baseline_half(&b->points[i].result, which);
    return p->alg ? half->alg_bw : half->bus_bw;
}

static void grow(double *top, double value)
{
    *top = value > *top ? value : *top;
}

static void find_scales(struct picture *p)
{
    bool any = false;
    p->alg = baseline_peak(p->now) <= 0;
    for (unsigned i = 0; i < p->now->points_n; i++) {
        if (!is_drawn(p, i))
            continue;
        double x = lg(p->now->points[i].result.size);
        p->least = !any || x < p->least ? x : p->least;
        p->most = !any || x > p->most ? x : p->most;
        any = true;
        for (enum baseline_half half = 0; half < BASELINE_HALVES_N; half++) {
            grow(&p->top, bw_of(p, p->now, i, half));
            if (p->then)
                grow(&p->top, bw_of(p, p->then, i, half));
        }
    }
    if (p->expected && !p->alg)
        grow(&p->top, p->expected->high);
    p->top = p->top > 0 ? p->top * 1.06 : 1;
}

/* 1, 2 or 5 times a power of ten. */
static double step_of(double top)
{
    double step = 1;
    while (step > top / LABELS_Y && step > 1e-9)
        step /= 10;
    for (unsigned i = 0; step * LABELS_Y < top; i++)
        step *= i % 3 == 1 ? 2.5 : 2;
    return step;
}

/* ---- shapes ---- */

static void PRINTF_LIKE(6, 7) put_text(FILE *out, double x, double y, const char *attributes,
                                       size_t fits, const char *format, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    if (strlen(text) > fits)
        memcpy(text + fits - 3, "...", 4);
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, attributes);
    topo_put_xml(out, text);
    fputs("</text>\n", out);
}

static void put_line(FILE *out, const char *class, const char *attributes, double x1, double y1,
                     double x2, double y2)
{
    fprintf(out,
            "<line class=\"%s\" stroke=\"currentColor\" %s x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" "
            "y2=\"%.1f\"/>\n",
            class, attributes, x1, y1, x2, y2);
}

static void put_ring(FILE *out, double x, double y)
{
    fprintf(out, "<circle class=\"slower\" " STROKE " cx=\"%.1f\" cy=\"%.1f\" r=\"7\"/>\n", x, y);
}

static void put_axes(const struct picture *p)
{
    double step = step_of(p->top);
    for (int i = 0; i * step <= p->top; i++) {
        double y = y_of(p, i * step);
        put_line(p->out, i ? "grid" : "axis", "", LEFT, y, RIGHT, y);
        put_text(p->out, LEFT - 8, y + 4, "class=\"note\" text-anchor=\"end\"", 20, "%g", i * step);
    }
    int stride = (int)((p->most - p->least) / LABELS_X) + 1;
    for (int power = 0; power < 63; power += stride) {
        char size[24];
        if (power < p->least || power > p->most)
            continue;
        double x = x_of(p, (uint64_t)1 << power);
        put_line(p->out, "axis", "", x, BOTTOM, x, BOTTOM + 5);
        put_text(p->out, x, BOTTOM + 20, "class=\"note\" text-anchor=\"middle\"", 20, "%s",
                 baseline_put_size((uint64_t)1 << power, size));
    }
    put_text(p->out, (LEFT + RIGHT) / 2.0, HEIGHT - 14, "text-anchor=\"middle\"", 80,
             "message size in bytes");
    fprintf(p->out,
            "<text transform=\"translate(20 %d) rotate(-90)\" text-anchor=\"middle\">%s bandwidth "
            "in GB/s</text>\n",
            (TOP + BOTTOM) / 2, p->alg ? "algorithm" : "bus");
}

static void put_curve(const struct picture *p, const struct baseline *b, enum baseline_half which,
                      const char *class, const char *attributes)
{
    fprintf(p->out, "<polyline class=\"%s\" " STROKE " %s points=\"", class, attributes);
    for (unsigned i = 0; i < b->points_n; i++)
        if (is_drawn(p, i))
            fprintf(p->out, "%.1f,%.1f ", x_of(p, b->points[i].result.size),
                    y_of(p, bw_of(p, b, i, which)));
    fputs("\"/>\n", p->out);
}

/* A dot tells its numbers to a mouse; a ring is around one that is slower. */
static void put_dots(const struct picture *p, enum baseline_half which, const char *class)
{
    for (unsigned i = 0; i < p->now->points_n; i++) {
        const struct bench_result *r = &p->now->points[i].result;
        if (!is_drawn(p, i))
            continue;
        char size[24];
        double x = x_of(p, r->size), y = y_of(p, bw_of(p, p->now, i, which));
        fprintf(p->out,
                "<circle class=\"%s\" " FILL
                " cx=\"%.1f\" cy=\"%.1f\" r=\"3\"><title>%s: %.2f GB/s, %.2f "
                "us</title></circle>\n",
                class, x, y, baseline_put_size(r->size, size), bw_of(p, p->now, i, which),
                baseline_half(r, which)->time);
        if (p->comparison && p->comparison->points[i][which].verdict == BASELINE_SLOWER)
            put_ring(p->out, x, y);
    }
}

/* Where a run would be called as fast: a time longer or shorter by the limit. */
static void put_band(const struct picture *p)
{
    const struct baseline *b = p->then;
    fputs("<polygon class=\"then\" " FILL " fill-opacity=\"0.2\" points=\"", p->out);
    for (unsigned i = 0; i < b->points_n; i++)
        if (is_drawn(p, i))
            fprintf(p->out, "%.1f,%.1f ", x_of(p, b->points[i].result.size),
                    y_of(p, bw_of(p, b, i, BASELINE_OUT) *
                                (1 + p->comparison->points[i][BASELINE_OUT].limit)));
    for (unsigned i = b->points_n; i-- > 0;)
        if (is_drawn(p, i))
            fprintf(p->out, "%.1f,%.1f ", x_of(p, b->points[i].result.size),
                    y_of(p, bw_of(p, b, i, BASELINE_OUT) /
                                (1 + p->comparison->points[i][BASELINE_OUT].limit)));
    fputs("\"/>\n", p->out);
}

/* Whole from the size on from which it is to be had. */
static void put_expected(const struct picture *p)
{
    const struct expected *e = p->expected;
    double low = y_of(p, e->low), high = y_of(p, e->high), from = x_of(p, e->from_bytes);
    char value[EXPECTED_BYTES], machine[EXPECTED_BYTES];
    from = from < LEFT ? LEFT : from > RIGHT ? RIGHT : from;
    if (e->low < e->high)
        fprintf(p->out,
                "<rect class=\"expected\" " FILL " fill-opacity=\"0.2\" x=\"%.1f\" y=\"%.1f\" "
                "width=\"%.1f\" height=\"%.1f\"/>\n",
                from, high, RIGHT - from, low - high);
    put_line(p->out, "expected", "stroke-width=\"2\" " DOTS, LEFT, low, from, low);
    put_line(p->out, "expected", "stroke-width=\"2\"", from, low, RIGHT, low);
    put_text(p->out, LEFT + 8, high > TOP + 16 ? high - 7 : low + 18, "class=\"expected\"",
             NOTE_FITS, "expected: %s (%s; source: %s)", expected_value(e, value),
             expected_machine(e, machine), e->source);
}

/* ---- words ---- */

static double put_key(const struct picture *p, double x, const char *class, const char *attributes,
                      const char *label)
{
    fprintf(p->out, "<path class=\"%s\" " STROKE " %s d=\"M%.1f %dh28\"/>\n", class, attributes, x,
            KEYS_Y);
    put_text(p->out, x + 34, KEYS_Y + 4, "", 60, "%s", label);
    return x + 34 + 6.3 * (double)strlen(label) + 24;
}

static void put_keys(const struct picture *p)
{
    char label[80], date[BASELINE_DATE_BYTES];
    double x = put_key(p, LEFT, "out", "", "out of place");
    if (p->now->points[0].result.has_in_place)
        x = put_key(p, x, "in", DASHES, "in place");
    if (!p->then)
        return;
    snprintf(label, sizeof label, "baseline of %s, and its limits",
             baseline_put_date(p->then->date, date));
    x = put_key(p, x, "then", DOTS, label);
    if (p->comparison->slower_n) {
        put_ring(p->out, x + 8, KEYS_Y);
        put_text(p->out, x + 22, KEYS_Y + 4, "", 60, "slower");
    }
}

static void put_title(const struct picture *p)
{
    const struct bench_result *first = &p->now->points[0].result;
    char sweep[BASELINE_WORDS_BYTES], machine[BASELINE_WORDS_BYTES], date[BASELINE_DATE_BYTES];
    put_text(p->out, LEFT, 34, "class=\"title\"", TITLE_FITS, "%s of %s%s%s",
             baseline_sweep(p->now, sweep), bench_type_name(first->type),
             first->op >= 0 ? ", " : "", first->op >= 0 ? bench_op_name(first->op) : "");
    put_text(p->out, LEFT, 58, "class=\"note\"", NOTE_FITS, "%s; %s UTC",
             baseline_machine(p->now, machine), baseline_put_date(p->now->date, date));
}

void bench_svg(FILE *out, const struct baseline *now, const struct baseline *then,
               const struct baseline_comparison *comparison, const struct expected *expected)
{
    struct picture p = {
        .out = out, .now = now, .then = then, .comparison = comparison, .expected = expected};
    find_scales(&p);
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d "
            "%d\" font-family=\"Helvetica, Arial, sans-serif\">\n",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    fputs(style, out);
    fprintf(out, "<title>%s over message size</title>\n",
            p.alg ? "Algorithm bandwidth" : "Bus bandwidth");
    fprintf(out, "<rect class=\"paper\" width=\"%d\" height=\"%d\"/>\n", WIDTH, HEIGHT);
    put_title(&p);
    put_keys(&p);
    put_axes(&p);
    if (then) {
        put_band(&p);
        put_curve(&p, then, BASELINE_OUT, "then", DOTS);
    }
    if (expected && !p.alg)
        put_expected(&p);
    if (now->points[0].result.has_in_place) {
        put_curve(&p, now, BASELINE_IN, "in", DASHES);
        put_dots(&p, BASELINE_IN, "in");
    }
    put_curve(&p, now, BASELINE_OUT, "out", "");
    put_dots(&p, BASELINE_OUT, "out");
    fputs("</svg>\n", out);
}
