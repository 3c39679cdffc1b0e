/* SPDX-License-Identifier: MIT */
/* Any words as a command line and an environment: a line NAME=value is a variable, if that of a setting, any other line
 * a word. Taken, or refused with one line; what is taken comes back from what is shown. */
#include "../../agent/opts.h"

#include "round_trip.h"

#define WORDS_MAX 64

static bool is_variable(const char *line)
{
    return (strncmp(line, "LAUNCH_", 7) == 0 || strncmp(line, "PET_", 4) == 0) && strchr(line, '=');
}

/* Words and variables of the text, which is cut up. Returns the number of words. */
static int cut(char *text, char *words[WORDS_MAX + 1])
{
    int n = 0;
    clearenv();
    words[n++] = (char *)"launch";
    for (char *line = text, *next; line && n < WORDS_MAX; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        if (is_variable(line)) {
            char *value = strchr(line, '=');
            *value = '\0';
            setenv(line, value + 1, 1);
        } else {
            words[n++] = line;
        }
    }
    words[n] = NULL;
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct job_spec spec;
    struct err err;
    enum opts_action action = OPTS_HELP;
    char *words[WORDS_MAX + 1], *text = malloc(n + 1);
    must(text && spec_init(&spec) == 0, "no memory");
    memcpy(text, data, n);
    text[n] = '\0';
    /* Job files have a fuzzer of their own; this one shall not read whatever files there are. */
    if (!strstr(text, "config")) {
        int argc = cut(text, words);
        if (opts_parse(&spec, argc, words, &action, &err) < 0)
            check_line(&err);
        else if (action == OPTS_RUN)
            check_round_trip(&spec);
    }
    spec_finish(&spec);
    free(text);
    return 0;
}
