/* SPDX-License-Identifier: MIT */
/* Owns how options look on the command line, their names in the environment, and --help. Must never
 * know what a setting means or how its value is parsed: that is config/fields.c. Prints nothing on
 * its own account; errors go up as one line. */
#include "opts.h"

#include "../config/fields.h"
#include "../config/jobfile.h"
#include "../proto/status.h"

#include <string.h>

#define HELP_WIDTH 79
#define HELP_INDENT 28
#define USAGE "usage: launch [options] program [arguments]"

/* ---- command line ---- */

/* One option word, taken apart. */
struct option {
    const struct field *field; /* NULL: unknown, or --help and the like */
    const char *name;          /* without dashes; not terminated */
    size_t name_bytes;
    const char *value; /* what stands in the same word; NULL: nothing does */
};

static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] != '\0' && strcmp(word, "--") != 0;
}

static struct option split(const char *word)
{
    bool one_dash = word[1] != '-';
    struct option option = {.name = word + (one_dash ? 1 : 2)};
    option.name_bytes = strcspn(option.name, "=");
    if (option.name[option.name_bytes] == '=')
        option.value = option.name + option.name_bytes + 1;
    if (one_dash && option.name_bytes == 1) {
        option.field = field_find_letter(option.name[0]);
        return option;
    }
    /* mpirun's "-np" is no -n with the value "p", so a whole name goes first. */
    option.field = field_find(option.name, option.name_bytes);
    if (!option.field && one_dash) {
        option.field = field_find_letter(option.name[0]);
        if (option.field)
            option.value = option.name + 1;
    }
    return option;
}

static bool is_action(const struct option *option, enum opts_action *ret_action)
{
    static const struct {
        const char *name;
        enum opts_action action;
    } NAMES[] = {
        {"help", OPTS_HELP}, {"h", OPTS_HELP}, {"version", OPTS_VERSION}, {"V", OPTS_VERSION}};

    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        if (!option->value && strlen(NAMES[i].name) == option->name_bytes &&
            memcmp(NAMES[i].name, option->name, option->name_bytes) == 0) {
            *ret_action = NAMES[i].action;
            return true;
        }
    }
    return false;
}

static int refuse_unknown(const char *word, const struct option *option, struct err *err)
{
    char shown[FIELD_QUOTE_BYTES];
    size_t n = (size_t)(option->name - word) + option->name_bytes;
    const char *nearest = field_nearest(option->name, option->name_bytes);
    field_quote(word, n, shown);
    if (nearest)
        return err_set(err, -EINVAL, "%s: unknown option; did you mean --%s?", shown, nearest);
    return err_set(err, -EINVAL, "%s: unknown option; --help lists them all", shown);
}

/* A forgotten value must not swallow the next option; a negative number gets the parser's error. */
static bool is_value(const char *word)
{
    return word && (word[0] != '-' || (word[1] >= '0' && word[1] <= '9'));
}

/* Returns how many words were used, 1 or 2. words: NULL-terminated, the first one is an option. */
static int take_option(struct job_spec *spec, char **words, enum opts_action *action,
                       struct err *err)
{
    struct option option = split(words[0]);
    if (is_action(&option, action))
        return 1;
    if (!option.field)
        return refuse_unknown(words[0], &option, err);

    int used = 1;
    const char *value = option.value;
    if (!value && !option.field->arg) {
        value = "1";
    } else if (!value) {
        if (!is_value(words[1]))
            return err_set(err, -EINVAL, "--%s: needs a value: --%s=%s", option.field->name,
                           option.field->name, option.field->arg);
        value = words[1];
        used = 2;
    }
    char where[FIELD_ENV_BYTES];
    snprintf(where, sizeof where, "--%s", option.field->name);
    int r = field_set(option.field, spec, value, where, err);
    return r < 0 ? r : used;
}

/* ---- environment ---- */

static int take_environment(struct job_spec *spec, struct err *err)
{
    for (size_t i = 0; i < FIELDS_N; i++) {
        char ours[FIELD_ENV_BYTES];
        struct origin from = {.source = SOURCE_LAUNCH};
        const char *where = field_env(&FIELDS[i], ours);
        if (FIELDS[i].group == GROUP_FILE || field_given(&FIELDS[i], spec))
            continue;
        const char *text = getenv(where);
        if ((!text || !*text) && FIELDS[i].pet) {
            from.source = SOURCE_PET;
            where = FIELDS[i].pet;
            text = getenv(where);
        }
        int r = text && *text ? field_set_from(&FIELDS[i], spec, text, from, where, err) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

static bool shows_config(const struct job_spec *spec)
{
    return spec->print_config || spec->example_config;
}

/* words: from the program on, or behind "--"; NULL: there are none. */
static int take_program(struct job_spec *spec, char **words, bool dashes, struct err *err)
{
    if (spec->file_argv && (dashes || !words)) {
        int r = words ? spec_add_arguments(spec, words, err) : 0;
        spec->argv = spec->file_argv;
        return r;
    }
    if (!words && !shows_config(spec))
        return err_set(err, -EINVAL,
                       "no program given, neither here nor as 'program' in %s; " USAGE,
                       spec->config);
    if (words && !*words[0])
        return err_set(err, -EINVAL, "the program's name is empty; " USAGE);
    spec->argv = words;
    return 0;
}

int opts_parse(struct job_spec *spec, int argc, char **argv, enum opts_action *ret_action,
               struct err *err)
{
    enum opts_action action = OPTS_RUN;
    int i = 1;
    while (i < argc && is_option(argv[i])) {
        int used = take_option(spec, argv + i, &action, err);
        if (used < 0)
            return used;
        if (action != OPTS_RUN) {
            *ret_action = action;
            return 0;
        }
        i += used;
    }
    bool dashes = i < argc && strcmp(argv[i], "--") == 0;
    i += dashes;
    if (i >= argc && !spec->config && !shows_config(spec))
        return err_set(err, -EINVAL, "no program given; " USAGE);

    int r = take_environment(spec, err);
    if (r == 0 && spec->config)
        r = jobfile_read(spec, spec->config, err);
    if (r == 0)
        r = take_program(spec, i < argc ? argv + i : NULL, dashes, err);
    if (r == 0)
        r = spec_check(spec, err);
    if (r < 0)
        return r;
    *ret_action = spec->example_config ? OPTS_EXAMPLE_CONFIG
                  : spec->print_config ? OPTS_PRINT_CONFIG
                                       : OPTS_RUN;
    return 0;
}

/* ---- help ---- */

/* Prints text and a newline: the first word at `column`, further lines from `indent` on. */
static void print_wrapped(FILE *out, size_t column, size_t indent, const char *text)
{
    for (bool first = true; *(text += strspn(text, " ")); first = false) {
        int n = (int)strcspn(text, " ");
        if (column < indent) {
            fprintf(out, "%*s", (int)(indent - column), "");
            column = indent;
        } else if (!first && column + 1 + (size_t)n > HELP_WIDTH) {
            fprintf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (!first) {
            fputc(' ', out);
            column++;
        }
        fprintf(out, "%.*s", n, text);
        column += (size_t)n;
        text += n;
    }
    fputc('\n', out);
}

/* An option: its flag in the left column, or on a line of its own when it is too long for that. */
static void print_entry(FILE *out, const char *flag, const char *text)
{
    size_t column = (size_t)fprintf(out, "%s", flag);
    if (column + 2 > HELP_INDENT) {
        fputc('\n', out);
        column = 0;
    }
    print_wrapped(out, column, HELP_INDENT, text);
}

static void print_field(FILE *out, const struct field *field)
{
    char flag[128], text[512], letter[8] = "    ";
    if (field->letter)
        snprintf(letter, sizeof letter, "-%c, ", field->letter);
    snprintf(flag, sizeof flag, "  %s--%s%s%s", letter, field->name, field->arg ? "=" : "",
             field->arg ? field->arg : "");

    char notes[128] = "";
    size_t used = 0;
    if (field->arg && field->def)
        used += (size_t)snprintf(notes, sizeof notes, "; default %s", field->def);
    if (field->aliases)
        used += (size_t)snprintf(notes + used, sizeof notes - used, "; also --%s", field->aliases);
    if (field->pet)
        snprintf(notes + used, sizeof notes - used, "; %s", field->pet);
    snprintf(text, sizeof text, *notes ? "%s [%s]" : "%s", field->help, notes + 2);
    print_entry(out, flag, text);
}

static void print_paragraph(FILE *out, const char *title, const char *text)
{
    fprintf(out, "\n%s\n  ", title);
    print_wrapped(out, 2, 2, text);
}

static void print_exit_codes(FILE *out)
{
#define EXIT_ROW(n, name, text) {#n, text},
    static const struct {
        const char *code, *text;
    } ROWS[] = {EXIT_CODE_LIST(EXIT_ROW){
        "other", "the code of the first worker that failed; 128+n for signal n"}};
#undef EXIT_ROW

    fprintf(out, "\nExit codes\n");
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        fprintf(out, "  %-7s", ROWS[i].code);
        print_wrapped(out, 9, 9, ROWS[i].text);
    }
}

void opts_print_help(FILE *out)
{
    fputs(USAGE "\n"
                "\n"
                "Starts the workers of a job on this server, gives each its rank and its GPU,\n"
                "watches over them, and brings the job back when one of them dies.\n"
                "\n"
                "Examples\n"
                "  launch --nproc-per-node=gpu ./train          one worker per GPU\n"
                "  launch -n 4 --max-restarts=3 ./train --lr 1  four, up to 3 fresh starts\n",
          out);
    for (int group = 0; group < GROUPS_N; group++) {
        fprintf(out, "\n%s\n", FIELD_GROUPS[group]);
        for (size_t i = 0; i < FIELDS_N; i++) {
            if (FIELDS[i].group == (enum field_group)group)
                print_field(out, &FIELDS[i]);
        }
    }
    fputs("\nOther\n", out);
    print_entry(out, "  -h, --help", "This text.");
    print_entry(out, "  -V, --version", "The version.");
    print_paragraph(out, "Command line",
                    "The first word that is no option is the program; it and all that follows "
                    "belong to the job, whatever they look like. --x=v and --x v are the same, and "
                    "so are dashes and underscores in names. Options can't be abbreviated. A "
                    "switch takes =1, =0, =true, =false, =yes, =no, =on or =off.");
    print_paragraph(out, "Environment",
                    "Every option has a variable, LAUNCH_MAX_RESTARTS for --max-restarts, and some "
                    "have torchrun's, named above in brackets. The command line goes first, then "
                    "LAUNCH_, then PET_, then the job file. An empty variable counts as not set.");
    print_paragraph(out, "OMP_NUM_THREADS",
                    "When it is not set, each worker gets its fair share of the CPUs that the job "
                    "may use (affinity mask and cgroup quota), at least 1.");
    print_paragraph(out, "When a worker fails",
                    "All workers are ended, and with --max-restarts=N all are started again, at "
                    "most N times; with --restart-window only restarts younger than that count, "
                    "with --restart-refill progress gives all N back. The first failure is tried "
                    "again at once, the same one again after 100 ms, 200 ms, ... up to 30 s, and "
                    "up to a quarter more by chance. --restart-limits lets a class of failure use "
                    "fewer: startup (before all workers met or, in jobs without liblaunch, within "
                    "10 s), signal, hang, exit; and same, in a row. A job that ends with 93 asks "
                    "not to be started again; what can't be started at all never is.");
    print_exit_codes(out);
}
