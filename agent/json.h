/* SPDX-License-Identifier: MIT */
/* A strict, bounded reader of JSON (RFC 8259) over text in memory that a worker wrote: no allocation, no recursion, any
 * bytes may come in. And the writer's half: a string with its escapes. Knows no document. */
#ifndef LAUNCH_AGENT_JSON_H
#define LAUNCH_AGENT_JSON_H

#include "../proto/base.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_DEPTH_MAX 32

enum json_type {
    JSON_OBJECT,
    JSON_ARRAY,
    JSON_STRING,
    JSON_NUMBER,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL
};

/* A value inside a text that stays the caller's: from its first to its last character, quotes and braces included. */
struct json_value {
    enum json_type type;
    const char *at;
    size_t n;
};

/* The one value that the whole text is. -EINVAL: not JSON, or nested deeper than JSON_DEPTH_MAX. All other functions
 * take values that came from here only. */
MUST_CHECK int json_parse(struct json_value *ret, const char *text, size_t n);

/* The member of that name; the last one, if there are several. False: there is none, or no object. Names with escapes
 * are not found. */
bool json_member(const struct json_value *object, const char *name, struct json_value *ret);

/* Decodes a string to UTF-8 with a NUL behind it: as many whole characters as fit into size. NUL characters and lone
 * surrogates become U+FFFD, bytes that are no UTF-8 stay. Returns the length; 0 and "" for a value that is no string. */
size_t json_string(const struct json_value *string, char *text, size_t size);

/* As json_string(), for a line on a terminal: control characters become '?'. */
size_t json_line(const struct json_value *string, char *text, size_t size);

/* A whole number from min to max; a number that is not negative and finite. False: it is something else, *ret is untouched. */
bool json_get_whole(const struct json_value *value, int64_t min, int64_t max, int64_t *ret);
bool json_get_real(const struct json_value *value, double *ret);

/* The element of an array behind *at, or the first one of all, if *at is zeroed. False: there is none, or no array. */
bool json_next(const struct json_value *array, struct json_value *at);

/* Writes text as a JSON string. Bytes that are no UTF-8 become U+FFFD. */
void json_put_string(FILE *out, const char *text, size_t n);

/* Writes a member of an object that is not its first: `, "name": "text"`. */
void json_put_member(FILE *out, const char *name, const char *text);

/* Writes the members of one object, each with what separates it from the last one. Members are always there: what is
 * none, or not known, is null. */
struct json_members {
    FILE *out;
    const char *before;  /* the next one; then, */
    const char *between; /* from then on, this */
};

/* `"name": ` only: the value is the caller's. */
void json_name(struct json_members *m, const char *name);
/* n bytes; null: NULL or none. */
void json_bytes(struct json_members *m, const char *name, const char *text, size_t n);
/* null: NULL or "". */
void json_text(struct json_members *m, const char *name, const char *text);
void json_number(struct json_members *m, const char *name, bool known, long long number);
/* Nine digits. */
void json_real(struct json_members *m, const char *name, double number);
/* null: negative. */
void json_bool(struct json_members *m, const char *name, int value);

#endif
