/* SPDX-License-Identifier: MIT */
/* Any bytes as the error file of a worker, and as its last output: what is shown of them is fit for a terminal, what is
 * written is JSON. */
#include "../../agent/errorfile.h"
#include "../../agent/report.h"
#include "../../agent/culprit.h"

#include "fuzz.h"

#define CODE 17

static void check_code(const char *bytes, size_t n)
{
    struct json_value root, message, code;
    size_t written_n;
    char *written = errorfile_with_code(bytes, n, CODE, &written_n);
    check_json(written, written_n);
    must(json_parse(&root, written, written_n) == 0 && json_member(&root, "message", &message),
         "a document without a message");
    if (message.type == JSON_OBJECT)
        must(json_member(&message, "errorCode", &code) && code.n == 2 &&
                 memcmp(code.at, "17", 2) == 0,
             "another code");
    free(written);
}

static void check_report(const struct errorfile *said, const char *tail, size_t tail_n)
{
    struct failure f = {.happened = true, .has_rank = true, .what = "exited with code 17"};
    struct report r = {.failure = &f,
                       .program = "job",
                       .run_id = "night",
                       .world_size = 2,
                       .said = said,
                       .tail = tail,
                       .tail_n = tail_n,
                       .exit_code = CODE};
    size_t n;
    char *text = report_text(&r, &n);
    must(text != NULL, "no memory");
    check_lines(text, n);
    free(text);
    text = report_json(&r, &n);
    check_json(text, n);
    free(text);
}

/* Cut anywhere, a string ends with a whole character. */
static void check_strings(const char *bytes, size_t n)
{
    struct json_value root, value;
    if (json_parse(&root, bytes, n) < 0)
        return;
    if (!json_member(&root, "message", &value))
        value = root;
    for (size_t size = 1; size < 12; size++) {
        char *text = malloc(size);
        must(text != NULL, "no memory");
        must(json_string(&value, text, size) == strlen(text) || value.type != JSON_STRING,
             "another length");
        free(text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const char *bytes = (const char *)data;
    struct errorfile said;
    errorfile_parse(&said, bytes, n);
    must(memchr(said.message, '\0', sizeof said.message) &&
             memchr(said.traceback, '\0', sizeof said.traceback),
         "a text without an end");
    check_code(bytes, n);
    check_report(&said, bytes, n);
    check_strings(bytes, n);
    (void)culprit_is_consequence(bytes, n);
    return 0;
}
