/* SPDX-License-Identifier: MIT */
#include "words.h"

#include "../../config/siglist.h"
#include "../../proto/status.h"
#include "../clean.h"
#include "../log.h"
#include "commands.h"
#include "suggest.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum value { NO_VALUE, VALUE, VALUE_OR_NOT /* behind '=' */ };

static const struct {
    const char *name, *letter; /* letter: another spelling, or NULL */
    unsigned word;
    enum value value;
} OPTIONS[] = {
    {"--json", NULL, WORD_JSON, NO_VALUE},       {"--watch", "-w", WORD_WATCH, NO_VALUE},
    {"--follow", "-f", WORD_FOLLOW, NO_VALUE},   {"--now", NULL, WORD_NOW, NO_VALUE},
    {"--rank", "-r", WORD_RANK, VALUE},          {"--lease-dir", NULL, WORD_LEASE_DIR, VALUE},
    {"--clear", NULL, WORD_CLEAR, VALUE_OR_NOT}, {"--log", NULL, WORD_LOG, VALUE},
};

/* ---- wrong words ---- */

/* Returns 0 for those who count words. */
static int refuse(const char *command, const char *word, const char *why,
                  const char *const *options)
{
    struct err err;
    suggest_refuse(&err, command, word, why, options);
    log_error("%s", err.text);
    return 0;
}

static int help(const char *command)
{
    command_help(stdout, command_find(command));
    return EXIT_CODE_OK;
}

/* ---- words ---- */

static bool parse_number(const char *text, int most, int *ret)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end || *text < '0' || *text > '9' || value > most)
        return false;
    *ret = (int)value;
    return true;
}

static bool parse_signal(const char *text, int *ret)
{
    int sig = siglist_number(text, strlen(text));
    if (sig == 0 && !parse_number(text, SIGRTMAX, &sig))
        return false;
    *ret = sig;
    return sig > 0;
}

/* Its row of OPTIONS; -1: none. *ret_value: what stands behind '=', NULL: nothing. */
static int find_option(const char *word, unsigned takes, const char **ret_value)
{
    size_t n = strcspn(word, "=");
    *ret_value = word[n] ? word + n + 1 : NULL;
    for (int i = 0; i < (int)ARRAY_LEN(OPTIONS); i++) {
        bool named = strlen(OPTIONS[i].name) == n && memcmp(OPTIONS[i].name, word, n) == 0;
        bool lettered = OPTIONS[i].letter && strcmp(OPTIONS[i].letter, word) == 0;
        if ((takes & OPTIONS[i].word) && (named || lettered))
            return i;
    }
    return -1;
}

static int refuse_option(const char *command, const char *word, unsigned takes)
{
    const char *known[ARRAY_LEN(OPTIONS) + 1] = {NULL};
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(OPTIONS); i++)
        if (takes & OPTIONS[i].word)
            known[n++] = OPTIONS[i].name;
    return refuse(command, word, "unknown option", known);
}

/* Returns how many words were used; 0: wrong, which was said. */
static int take_option(struct words *w, char **argv, const char *command, unsigned takes)
{
    const char *value;
    int i = find_option(argv[0], takes, &value), used = 1;
    if (i < 0)
        return refuse_option(command, argv[0], takes);
    if (OPTIONS[i].value == VALUE && !value) {
        value = argv[1];
        used = 2;
    }
    if (OPTIONS[i].value == (value ? NO_VALUE : VALUE))
        return refuse(command, argv[0], value ? "takes no value" : "needs a value", NULL);
    if (OPTIONS[i].word == WORD_RANK && !parse_number(value, INT32_MAX, &w->rank))
        return refuse(command, argv[0], "must be the number of a rank", NULL);
    if (OPTIONS[i].word == WORD_LEASE_DIR)
        w->lease_dir = value;
    if (OPTIONS[i].word == WORD_CLEAR)
        w->clear = value;
    if (OPTIONS[i].word == WORD_LOG)
        w->log = value;
    w->given |= OPTIONS[i].word;
    return used;
}

/* Likewise. */
static int take_operand(struct words *w, const char *word, const char *command, unsigned takes)
{
    if ((takes & (WORD_RUN | WORD_MAY_RUN)) && !w->run) {
        w->run = word;
        return 1;
    }
    if ((takes & WORD_SIGNAL) && !(w->given & WORD_SIGNAL)) {
        w->given |= WORD_SIGNAL;
        if (parse_signal(word, &w->number))
            return 1;
        return refuse(command, word, "is no signal; USR1 or 10 is one", NULL);
    }
    return refuse(command, word,
                  strcmp(command, "ps") == 0 ? "one word too many; launch status RUN shows one job"
                                             : "one word too many",
                  NULL);
}

int words_parse(struct words *ret, int argc, char **argv, unsigned takes)
{
    *ret = (struct words){.rank = WIRE_ALL_RANKS};
    for (int i = 1; i < argc;) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return help(argv[0]);
        bool option = argv[i][0] == '-' && argv[i][1];
        int used = option ? take_option(ret, argv + i, argv[0], takes)
                          : take_operand(ret, argv[i], argv[0], takes);
        if (!used)
            return EXIT_CODE_USAGE;
        i += used;
    }
    if ((takes & WORD_RUN) && (!ret->run || !*ret->run))
        refuse(argv[0], "", "which job? launch ps lists them", NULL);
    else if ((takes & WORD_SIGNAL) && !(ret->given & WORD_SIGNAL))
        refuse(argv[0], "", "which signal? USR1 or 10 is one", NULL);
    else
        return -1;
    return EXIT_CODE_USAGE;
}

int words_open(struct words *ret, int argc, char **argv, unsigned takes, struct client_job *job)
{
    struct err err;
    int exit_code = words_parse(ret, argc, argv, takes | WORD_RUN);
    if (exit_code >= 0)
        return exit_code;
    int rc = client_find(ret->run, job, &err);
    if (rc == 0)
        return -1;
    struct err unknown = err;
    if (rc == -ENOENT && (strcmp(argv[0], "logs") == 0 || strcmp(argv[0], "attach") == 0))
        err_set(&err, rc, "%s; what an ended one wrote is in its --log-dir", unknown.text);
    return words_tell(&err);
}

int words_ask(struct client_job *job, enum wire_verb verb, const struct words *words,
              void (*on_packet)(void *user, const union wire_packet *packet), void *user)
{
    struct err err;
    int rc = client_ask(job, verb, words->rank, words->number, on_packet, user, &err);
    return rc < 0 ? words_tell(&err) : EXIT_CODE_OK;
}

int words_tell(const struct err *err)
{
    static const int theirs[] = {-EINVAL, -ERANGE, -ENOENT, -EEXIST, -EBUSY, -EPROTO, -EPERM};
    char line[ERR_TEXT_BYTES]; /* a job may have put anything into its answer */
    log_error("%s", clean(line, sizeof line, err->text));
    for (size_t i = 0; i < ARRAY_LEN(theirs); i++)
        if (err->code == theirs[i])
            return EXIT_CODE_USAGE;
    return EXIT_CODE_OURS;
}

/* ---- for people ---- */

const char *words_age(uint64_t ms, char text[WORDS_AGE_BYTES])
{
    uint64_t s = ms / 1000;
    if (s < 60)
        snprintf(text, WORDS_AGE_BYTES, "%" PRIu64 "s", s);
    else if (s < 3600)
        snprintf(text, WORDS_AGE_BYTES, "%" PRIu64 "m%02" PRIu64 "s", s / 60, s % 60);
    else if (s < 86400)
        snprintf(text, WORDS_AGE_BYTES, "%" PRIu64 "h%02" PRIu64 "m", s / 3600, s % 3600 / 60);
    else
        snprintf(text, WORDS_AGE_BYTES, "%" PRIu64 "d%02" PRIu64 "h", s / 86400, s % 86400 / 3600);
    return text;
}
