/* SPDX-License-Identifier: MIT */
#include "errorfile.h"

#include "json.h"

#include <inttypes.h>
#include <string.h>

/* Keeps the end of a text that is too long. */
static void copy_end(char *to, size_t size, const char *text, size_t n)
{
    size_t skip = n < size ? 0 : n - size + 1;
    memcpy(to, text + skip, n - skip);
    to[n - skip] = '\0';
}

/* First line is the message, all of it the traceback when there is more. */
static void take_text(struct errorfile *e, const char *text, size_t n)
{
    while (n > 0 && memchr(" \t\r\n", *text, 4)) {
        text++;
        n--;
    }
    const char *newline = memchr(text, '\n', n);
    size_t first = newline ? (size_t)(newline - text) : n;
    if (first >= sizeof e->message)
        first = sizeof e->message - 1;
    memcpy(e->message, text, first);
    e->message[first] = '\0';
    if (first < n)
        copy_end(e->traceback, sizeof e->traceback, text, n);
}

static uint64_t number_of(const struct json_value *value)
{
    char digits[24] = "";
    if (value->type == JSON_STRING)
        json_string(value, digits, sizeof digits);
    else if (value->type == JSON_NUMBER && value->n < sizeof digits)
        memcpy(digits, value->at, value->n);
    return strtoull(digits, NULL, 10);
}

static void take_traceback(struct errorfile *e, const struct json_value *stack)
{
    char *text = malloc(stack->n + 1); /* decoding only makes shorter, but for \u: 6 bytes give 3 */
    if (!text)
        return;
    size_t n = json_string(stack, text, stack->n + 1);
    copy_end(e->traceback, sizeof e->traceback, text, n);
    free(text);
}

void errorfile_parse(struct errorfile *ret, const char *bytes, size_t n)
{
    *ret = (struct errorfile){.is_json = false};
    struct json_value root, message, inner, value;
    if (n == 0)
        return;
    if (json_parse(&root, bytes, n) < 0 || !json_member(&root, "message", &message)) {
        take_text(ret, bytes, n);
        return;
    }
    ret->is_json = true;
    if (json_member(&root, "timestamp", &value))
        ret->timestamp = number_of(&value);
    if (message.type == JSON_STRING)
        json_string(&message, ret->message, sizeof ret->message);
    else if (json_member(&message, "message", &inner))
        json_string(&inner, ret->message, sizeof ret->message);
    struct json_value extra;
    if (!json_member(&message, "extraInfo", &extra))
        return;
    if (json_member(&extra, "timestamp", &value))
        ret->timestamp = number_of(&value);
    if (json_member(&extra, "py_callstack", &value) && value.type == JSON_STRING)
        take_traceback(ret, &value);
}

static char *finish_text(FILE *out, char **text)
{
    if (fclose(out) == 0)
        return *text;
    free(*text);
    return NULL;
}

char *errorfile_make(const char *message, const char *traceback, int code, uint64_t timestamp,
                     size_t *ret_n)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, ret_n);
    if (!out)
        return NULL;
    fputs("{\"message\": {\"message\": ", out);
    json_put_string(out, message, strlen(message));
    fputs(", \"extraInfo\": {\"py_callstack\": ", out);
    json_put_string(out, traceback, strlen(traceback));
    fprintf(out, ", \"timestamp\": \"%" PRIu64 "\"}, \"errorCode\": %d}}\n", timestamp, code);
    return finish_text(out, &text);
}

char *errorfile_with_code(const char *bytes, size_t n, int code, size_t *ret_n)
{
    struct json_value root, message;
    bool known = json_parse(&root, bytes, n) == 0 && json_member(&root, "message", &message);
    if (!known || (message.type != JSON_OBJECT && message.type != JSON_STRING)) {
        struct errorfile said;
        errorfile_parse(&said, bytes, n);
        return errorfile_make(said.message, said.traceback, code, said.timestamp, ret_n);
    }
    char *text = NULL;
    FILE *out = open_memstream(&text, ret_n);
    if (!out)
        return NULL;
    if (message.type == JSON_STRING) { /* the short form has no place for a code */
        fwrite(bytes, 1, n, out);
        return finish_text(out, &text);
    }
    /* Last in its object, so that it wins over one that is there already. */
    const char *brace = message.at + message.n - 1;
    bool first = strspn(message.at + 1, " \t\r\n") == message.n - 2;
    fwrite(bytes, 1, (size_t)(brace - bytes), out);
    fprintf(out, "%s\"errorCode\": %d", first ? "" : ", ", code);
    fwrite(brace, 1, (size_t)(bytes + n - brace), out);
    return finish_text(out, &text);
}
