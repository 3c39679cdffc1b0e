/* SPDX-License-Identifier: MIT */
/* Must never know who asks: no argv, no getenv, no file, nothing printed. All text is untrusted. */
#include "parse.h"

#include "../proto/board.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX_BYTES 63  /* run id (BOARD_RUN_ID_BYTES with its NUL) and role */
#define HOST_MAX_BYTES 253 /* longest name that DNS knows */

static_assert(TEXT_MAX_BYTES == BOARD_RUN_ID_BYTES - 1, "a run id must fit the board");
static_assert(PARSE_TIME_MAX_MS <= UINT32_MAX, "a timeout must fit the board");

#define MS_PER_S 1000
#define MS_PER_M (60 * MS_PER_S)
#define MS_PER_H (60 * MS_PER_M)

const char *field_quote(const char *text, size_t n, char buf[FIELD_QUOTE_BYTES])
{
    static const char DOTS[] = "...", NAMED[] = "\n\r\t\\";
    const size_t limit = FIELD_QUOTE_BYTES - sizeof DOTS; /* 60 */
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        char piece[5];
        const char *named = c ? strchr(NAMED, c) : NULL;
        if (named)
            snprintf(piece, sizeof piece, "\\%c", "nrt\\"[named - NAMED]);
        else
            snprintf(piece, sizeof piece, c >= 0x20 && c < 0x7f ? "%c" : "\\x%02x", c);
        if (used + strlen(piece) > limit) {
            memcpy(buf + used, DOTS, sizeof DOTS);
            return buf;
        }
        size_t piece_n = strlen(piece);
        memcpy(buf + used, piece, piece_n);
        used += piece_n;
    }
    buf[used] = '\0';
    return buf;
}

int parse_refuse(struct err *err, const char *text, const char *what, ...)
{
    char right[200], shown[FIELD_QUOTE_BYTES];
    va_list ap;
    va_start(ap, what);
    vsnprintf(right, sizeof right, what, ap);
    va_end(ap);
    field_quote(text, strlen(text), shown);
    return err_set(err, -EINVAL, "must be %s, not '%s'", right, shown);
}

/* "'a', 'b' or 'c'" */
static const char *list_choices(const char *const *choices, char *buf, size_t size)
{
    size_t used = 0;
    buf[0] = '\0';
    for (size_t i = 0; choices[i] && used < size; i++) {
        const char *before = i == 0 ? "" : choices[i + 1] ? ", " : " or ";
        used += (size_t)snprintf(buf + used, size - used, "%s'%s'", before, choices[i]);
    }
    return buf;
}

/* Nothing but decimal digits, at least one, the value at most max. Leading zeros are decimal. */
static bool parse_decimal(const char *text, size_t n, uint64_t max, uint64_t *ret)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        uint64_t digit = (uint64_t)(text[i] - '0');
        if (digit > max || value > (max - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    if (n == 0)
        return false;
    *ret = value;
    return true;
}

static bool in_range(const struct field *field, const char *text, uint64_t *ret)
{
    uint64_t value;
    if (!parse_decimal(text, strlen(text), (uint64_t)field->max, &value) ||
        value < (uint64_t)field->min)
        return false;
    *ret = value;
    return true;
}

static int parse_number(const struct field *field, const char *text, uint64_t *ret, struct err *err)
{
    if (in_range(field, text, ret))
        return 0;
    if (field->min == field->max)
        return parse_refuse(err, text, "%lld", (long long)field->min);
    return parse_refuse(err, text, "a number from %lld to %lld", (long long)field->min,
                        (long long)field->max);
}

int parse_u32(const struct field *field, const char *text, void *into, struct err *err)
{
    uint64_t value = 0;
    int r = parse_number(field, text, &value, err);
    if (r == 0)
        *(uint32_t *)into = (uint32_t)value;
    return r;
}

int parse_u16(const struct field *field, const char *text, void *into, struct err *err)
{
    uint64_t value = 0;
    int r = parse_number(field, text, &value, err);
    if (r == 0)
        *(uint16_t *)into = (uint16_t)value;
    return r;
}

/* "1.5s": whole part, fraction of at most 9 digits, unit. Rounded up to whole milliseconds: a time
 * that is not 0 never becomes the 0 that stands for "none". */
static bool parse_ms(const char *text, uint64_t max, uint64_t *ret)
{
    static const struct {
        const char *name;
        uint64_t ms;
    } UNITS[] = {{"", MS_PER_S}, {"ms", 1}, {"s", MS_PER_S}, {"m", MS_PER_M}, {"h", MS_PER_H}};

    size_t whole_n = strspn(text, "0123456789"), fraction_n = 0;
    const char *fraction = text + whole_n, *unit = fraction;
    if (*fraction == '.') {
        fraction++;
        fraction_n = strspn(fraction, "0123456789");
        unit = fraction + fraction_n;
        if (fraction_n == 0)
            return false;
    }
    uint64_t whole, parts = 0, scale = 1;
    if (!parse_decimal(text, whole_n, max, &whole) || fraction_n > 9)
        return false;
    for (size_t i = 0; i < fraction_n; i++) {
        parts = parts * 10 + (uint64_t)(fraction[i] - '0');
        scale *= 10;
    }
    for (size_t i = 0; i < ARRAY_LEN(UNITS); i++) {
        if (strcmp(unit, UNITS[i].name) != 0)
            continue;
        uint64_t ms = whole * UNITS[i].ms + (parts * UNITS[i].ms + scale - 1) / scale;
        if (ms > max)
            return false;
        *ret = ms;
        return true;
    }
    return false;
}

int parse_duration(const struct field *field, const char *text, void *into, struct err *err)
{
    uint64_t ms;
    if (!parse_ms(text, (uint64_t)field->max, &ms) || ms < (uint64_t)field->min)
        return parse_refuse(err, text, "a time%s of at most %lldh such as 30, 1.5s, 500ms or 10m",
                            field->min > 0 ? " above 0 and" : "", (long long)field->max / MS_PER_H);
    *(uint64_t *)into = ms;
    return 0;
}

static bool find_choice(const struct field *field, const char *text, unsigned *ret)
{
    for (unsigned i = 0; field->choices[i]; i++) {
        if (strcmp(text, field->choices[i]) == 0) {
            *ret = i;
            return true;
        }
    }
    return false;
}

int parse_choice(const struct field *field, const char *text, void *into, struct err *err)
{
    unsigned choice;
    char list[128];
    if (!find_choice(field, text, &choice))
        return parse_refuse(err, text, "%s", list_choices(field->choices, list, sizeof list));
    *(unsigned *)into = choice;
    return 0;
}

static bool find_switch(const char *text, bool *ret)
{
    static const char *const WORDS[] = {"0", "1", "false", "true", "no", "yes", "off", "on"};
    for (size_t i = 0; i < ARRAY_LEN(WORDS); i++) {
        if (strcasecmp(text, WORDS[i]) == 0) {
            *ret = i % 2;
            return true;
        }
    }
    return false;
}

int parse_switch(const struct field *field, const char *text, void *into, struct err *err)
{
    (void)field;
    bool on;
    if (!find_switch(text, &on))
        return parse_refuse(err, text, "1, 0, true, false, yes, no, on or off");
    *(bool *)into = on;
    return 0;
}

int parse_wait(const struct field *field, const char *text, void *into, struct err *err)
{
    bool on = false;
    if (!find_switch(text, &on))
        return parse_duration(field, text, into, err);
    *(uint64_t *)into = on ? SPEC_WAIT_FOR_EVER : 0;
    return 0;
}

int parse_virtual_rank(const struct field *field, const char *text, void *into, struct err *err)
{
    bool on = false;
    int r = parse_switch(field, text, &on, err);
    if (r == 0)
        *(enum gpu_visibility *)into = on ? GPU_VISIBILITY_RANK : GPU_VISIBILITY_JOB;
    return r;
}

int parse_nproc(const struct field *field, const char *text, void *into, struct err *err)
{
    struct job_spec *spec = CONTAINER_OF(into, struct job_spec, nproc_mode);
    uint64_t number = 0;
    unsigned choice;
    char list[64];
    if (in_range(field, text, &number))
        spec->nproc_mode = NPROC_NUMBER;
    else if (find_choice(field, text, &choice))
        spec->nproc_mode = (enum nproc_mode)(NPROC_GPU + choice);
    else
        return parse_refuse(err, text, "a number from %lld to %lld, %s", (long long)field->min,
                            (long long)field->max, list_choices(field->choices, list, sizeof list));
    spec->nproc = (uint32_t)number;
    return 0;
}

int parse_put_text(const char *text, void *into, struct err *err)
{
    char *copy = strdup(text);
    if (!copy)
        return err_set(err, -ENOMEM, "out of memory");
    free(*(char **)into);
    *(char **)into = copy;
    return 0;
}

/* Not isalnum(): that one asks the locale. */
static bool is_alnum(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

int parse_signals(const struct field *field, const char *text, void *into, struct err *err)
{
    struct siglist list;
    if (siglist_parse(&list, text) < 0 || list.n < field->min)
        return parse_refuse(
            err, text,
            "%ssignals such as SIGTERM,USR1 (KILL, STOP, CHLD, PIPE, TSTP and CONT can't "
            "be had)",
            field->min ? "" : "'none' or ");
    *(struct siglist *)into = list;
    return 0;
}

int parse_codes(const struct field *field, const char *text, void *into, struct err *err)
{
    (void)field;
    if (codeset_parse(into, text) < 0)
        return parse_refuse(err, text,
                            "'all', 'none' or a list of exit codes 1 to 255, signals, 'signal' and "
                            "'hang' such as 1,3-5,SIGSEGV");
    return 0;
}

int parse_limits(const struct field *field, const char *text, void *into, struct err *err)
{
    (void)field;
    if (limits_parse(into, text) < 0)
        return parse_refuse(
            err, text,
            "'none' or a list of startup:N, same:N, signal:N, hang:N, exit:N with N up to "
            "%u",
            LIMITS_MAX);
    return 0;
}

/* Becomes part of file names, so no slash, no blank, no leading dot or dash. */
int parse_run_id(const struct field *field, const char *text, void *into, struct err *err)
{
    (void)field;
    size_t n = 0;
    while (text[n] && (is_alnum(text[n]) || (n > 0 && strchr("._-", text[n]))))
        n++;
    if (n == 0 || text[n] || n > TEXT_MAX_BYTES)
        return parse_refuse(err, text, "1 to %d of A-Z a-z 0-9 . _ -, a letter or digit first",
                            TEXT_MAX_BYTES);
    return parse_put_text(text, into, err);
}

int parse_host(const struct field *field, const char *text, void *into, struct err *err)
{
    (void)field;
    size_t n = 0;
    while (text[n] && (is_alnum(text[n]) || strchr(n > 0 ? "._-:%[]" : ":[", text[n])))
        n++;
    if (n == 0 || text[n] || n > HOST_MAX_BYTES)
        return parse_refuse(err, text, "a host name or an IP address");
    return parse_put_text(text, into, err);
}

int parse_role(const struct field *field, const char *text, void *into, struct err *err)
{
    (void)field;
    size_t n = 0;
    while (text[n] >= 0x20 && text[n] < 0x7f)
        n++;
    if (n == 0 || text[n] || n > TEXT_MAX_BYTES)
        return parse_refuse(err, text, "1 to %d printable ASCII characters", TEXT_MAX_BYTES);
    return parse_put_text(text, into, err);
}
