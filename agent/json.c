/* SPDX-License-Identifier: MIT */
#include "json.h"

#include <math.h>
#include <string.h>

#define NUMBER_BYTES 40 /* longer ones are not meant seriously */

struct reader {
    const char *at, *end;
};

static void skip_blanks(struct reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
        r->at++;
}

static bool take(struct reader *r, char c)
{
    if (r->at >= r->end || *r->at != c)
        return false;
    r->at++;
    return true;
}

static bool take_word(struct reader *r, const char *word)
{
    size_t n = strlen(word);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0)
        return false;
    r->at += n;
    return true;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Four hex digits; -1: not there. */
static int hex4(const char *at, const char *end)
{
    int value = 0;
    if (end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(at[i]);
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

static bool take_string(struct reader *r)
{
    if (!take(r, '"'))
        return false;
    while (r->at < r->end) {
        unsigned char c = (unsigned char)*r->at++;
        if (c == '"')
            return true;
        if (c < ' ')
            return false;
        if (c != '\\')
            continue;
        if (r->at >= r->end)
            return false;
        char escape = *r->at++;
        if (escape == 'u') {
            if (hex4(r->at, r->end) < 0)
                return false;
            r->at += 4;
        } else if (!memchr("\"\\/bfnrt", escape, 8)) {
            return false;
        }
    }
    return false;
}

static bool take_digits(struct reader *r)
{
    const char *first = r->at;
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
        r->at++;
    return r->at > first;
}

static bool take_number(struct reader *r)
{
    take(r, '-');
    if (!take(r, '0') && !take_digits(r))
        return false;
    if (take(r, '.') && !take_digits(r))
        return false;
    if (r->at < r->end && (*r->at | 0x20) == 'e') {
        r->at++;
        if (!take(r, '+'))
            take(r, '-');
        return take_digits(r);
    }
    return true;
}

/* A value that holds no others. */
static bool take_scalar(struct reader *r)
{
    if (r->at >= r->end)
        return false;
    switch (*r->at) {
    case '"':
        return take_string(r);
    case 't':
        return take_word(r, "true");
    case 'f':
        return take_word(r, "false");
    case 'n':
        return take_word(r, "null");
    default:
        return take_number(r);
    }
}

static bool take_name(struct reader *r)
{
    skip_blanks(r);
    if (!take_string(r))
        return false;
    skip_blanks(r);
    return take(r, ':');
}

/* Closes what ends here. open[0 .. *depth]: the closing characters that are awaited. Then either everything is closed,
 * or a comma has led to the next value. */
static bool close_open(struct reader *r, const char *open, unsigned *depth)
{
    while (*depth > 0) {
        skip_blanks(r);
        char closing = open[*depth - 1];
        if (take(r, ',')) {
            return closing == ']' || take_name(r);
        }
        if (!take(r, closing))
            return false;
        --*depth;
    }
    return true;
}

static bool take_value(struct reader *r)
{
    char open[JSON_DEPTH_MAX];
    unsigned depth = 0;
    do {
        skip_blanks(r);
        bool object = take(r, '{');
        if (!object && !take(r, '[')) {
            if (!take_scalar(r))
                return false;
        } else {
            if (depth == JSON_DEPTH_MAX)
                return false;
            open[depth++] = object ? '}' : ']';
            skip_blanks(r);
            if (!take(r, open[depth - 1])) {
                if (object && !take_name(r))
                    return false;
                continue;
            }
            depth--;
        }
        if (!close_open(r, open, &depth))
            return false;
    } while (depth > 0);
    return true;
}

static enum json_type type_of(char first)
{
    switch (first) {
    case '{':
        return JSON_OBJECT;
    case '[':
        return JSON_ARRAY;
    case '"':
        return JSON_STRING;
    case 't':
        return JSON_TRUE;
    case 'f':
        return JSON_FALSE;
    case 'n':
        return JSON_NULL;
    default:
        return JSON_NUMBER;
    }
}

static bool read_value(struct reader *r, struct json_value *ret)
{
    skip_blanks(r);
    const char *first = r->at;
    if (!take_value(r))
        return false;
    *ret = (struct json_value){.type = type_of(*first), .at = first, .n = (size_t)(r->at - first)};
    return true;
}

int json_parse(struct json_value *ret, const char *text, size_t n)
{
    struct reader r = {.at = text, .end = text + n};
    struct json_value value;
    if (!read_value(&r, &value))
        return -EINVAL;
    skip_blanks(&r);
    if (r.at != r.end)
        return -EINVAL;
    *ret = value;
    return 0;
}

bool json_member(const struct json_value *object, const char *name, struct json_value *ret)
{
    if (object->type != JSON_OBJECT)
        return false;
    struct reader r = {.at = object->at + 1, .end = object->at + object->n - 1};
    size_t name_n = strlen(name);
    bool found = false;
    for (;;) {
        skip_blanks(&r);
        const char *key = r.at + 1;
        if (!take_string(&r))
            return found; /* an empty object */
        size_t key_n = (size_t)(r.at - key - 1);
        struct json_value value;
        skip_blanks(&r);
        if (!take(&r, ':') || !read_value(&r, &value))
            return found;
        if (key_n == name_n && memcmp(key, name, name_n) == 0) {
            *ret = value;
            found = true;
        }
        skip_blanks(&r);
        if (!take(&r, ','))
            return found;
    }
}

/* UTF-8 of a code point; returns its length. */
static size_t encode(unsigned long point, char bytes[4])
{
    if (point < 0x80) {
        bytes[0] = (char)point;
        return 1;
    }
    size_t n = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n - 1; i > 0; i--, point >>= 6)
        bytes[i] = (char)(0x80 | (point & 0x3f));
    bytes[0] = (char)(lead[n] | point);
    return n;
}

/* Behind "\u"; takes the second half of a pair too. */
static unsigned long take_code_point(struct reader *r)
{
    unsigned long point = (unsigned long)hex4(r->at, r->end);
    r->at += 4;
    if (point >= 0xd800 && point < 0xdc00 && r->end - r->at >= 6 && memcmp(r->at, "\\u", 2) == 0) {
        int low = hex4(r->at + 2, r->end);
        if (low >= 0xdc00 && low < 0xe000) {
            r->at += 6;
            return 0x10000 + ((point - 0xd800) << 10) + ((unsigned long)low - 0xdc00);
        }
    }
    return point == 0 || (point >= 0xd800 && point < 0xe000) ? 0xfffd : point;
}

/* Length of the UTF-8 character there; 0: none. */
static size_t utf8_length(const unsigned char *at, size_t n)
{
    size_t len = at[0] < 0x80 ? 1 : at[0] < 0xc2 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
    if (len == 0 || len > n || at[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    /* Too long a form, surrogates, beyond the last code point. */
    if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) ||
        (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f))
        return 0;
    return len;
}

/* The next character of a string, decoded; a byte that is no UTF-8 is one. Returns its length. */
static size_t take_character(struct reader *r, char bytes[4])
{
    static const char escaped[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    if (*r->at != '\\') {
        size_t n = utf8_length((const unsigned char *)r->at, (size_t)(r->end - r->at));
        n = n ? n : 1;
        memcpy(bytes, r->at, n);
        r->at += n;
        return n;
    }
    char escape = r->at[1];
    r->at += 2;
    if (escape == 'u')
        return encode(take_code_point(r), bytes);
    bytes[0] = meant[strchr(escaped, escape) - escaped];
    return 1;
}

size_t json_string(const struct json_value *string, char *text, size_t size)
{
    size_t used = 0;
    struct reader r = {.at = string->at + 1, .end = string->at + string->n - 1};
    while (string->type == JSON_STRING && r.at < r.end) {
        char bytes[4];
        size_t n = take_character(&r, bytes);
        if (used + n >= size)
            break;
        memcpy(text + used, bytes, n);
        used += n;
    }
    text[used] = '\0';
    return used;
}

size_t json_line(const struct json_value *string, char *text, size_t size)
{
    size_t n = json_string(string, text, size);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 127)
            text[i] = '?';
    return n;
}

/* A number with a NUL behind it; false: it is none, or too long for one. */
static bool copy_number(const struct json_value *value, char text[NUMBER_BYTES])
{
    if (value->type != JSON_NUMBER || value->n >= NUMBER_BYTES)
        return false;
    memcpy(text, value->at, value->n);
    text[value->n] = '\0';
    return true;
}

bool json_get_whole(const struct json_value *value, int64_t min, int64_t max, int64_t *ret)
{
    char text[NUMBER_BYTES], *end;
    if (!copy_number(value, text))
        return false;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (*end || errno || number < min || number > max)
        return false;
    *ret = number;
    return true;
}

bool json_get_real(const struct json_value *value, double *ret)
{
    char text[NUMBER_BYTES];
    double number = copy_number(value, text) ? strtod(text, NULL) : -1;
    if (!isfinite(number) || signbit(number))
        return false;
    *ret = number;
    return true;
}

bool json_next(const struct json_value *array, struct json_value *at)
{
    if (array->type != JSON_ARRAY)
        return false;
    struct reader r = {.at = at->at ? at->at + at->n : array->at + 1,
                       .end = array->at + array->n - 1};
    skip_blanks(&r);
    if (at->at && !take(&r, ','))
        return false;
    skip_blanks(&r);
    return r.at < r.end && read_value(&r, at);
}

void json_put_string(FILE *out, const char *text, size_t n)
{
    fputc('"', out);
    while (n > 0) {
        unsigned char c = (unsigned char)*text;
        size_t len = utf8_length((const unsigned char *)text, n);
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c == '\n')
            fputs("\\n", out);
        else if (c < ' ' || c == 127)
            fprintf(out, "\\u%04x", c);
        else if (len == 0)
            fputs("\\ufffd", out);
        else
            fwrite(text, 1, len, out);
        text += len ? len : 1;
        n -= len ? len : 1;
    }
    fputc('"', out);
}

void json_put_member(FILE *out, const char *name, const char *text)
{
    fprintf(out, ", \"%s\": ", name);
    json_put_string(out, text, strlen(text));
}

void json_name(struct json_members *m, const char *name)
{
    fprintf(m->out, "%s\"%s\": ", m->before, name);
    m->before = m->between;
}

void json_bytes(struct json_members *m, const char *name, const char *text, size_t n)
{
    json_name(m, name);
    if (text && n)
        json_put_string(m->out, text, n);
    else
        fputs("null", m->out);
}

void json_text(struct json_members *m, const char *name, const char *text)
{
    json_bytes(m, name, text, text ? strlen(text) : 0);
}

void json_number(struct json_members *m, const char *name, bool known, long long number)
{
    json_name(m, name);
    if (known)
        fprintf(m->out, "%lld", number);
    else
        fputs("null", m->out);
}

void json_real(struct json_members *m, const char *name, double number)
{
    json_name(m, name);
    fprintf(m->out, "%.9g", number);
}

void json_bool(struct json_members *m, const char *name, int value)
{
    json_name(m, name);
    fputs(value < 0 ? "null" : value ? "true" : "false", m->out);
}
