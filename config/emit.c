/* SPDX-License-Identifier: MIT */
/* See emit.h. Owns how a value is written in YAML, so that jobfile.c, and any other reader, takes it for the same
 * text. */
#include "emit.h"

#include "fields.h"
#include "jobfile.h"

#include <string.h>
#include <strings.h>

#define WIDTH 79

/* ---- a text as a YAML scalar ---- */

/* The next character of UTF-8; 0: there is none. Returns how many bytes it has; 0: it is not UTF-8. */
static size_t decode(const char *text, uint32_t *ret)
{
    static const uint32_t LEAST[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *b = (const unsigned char *)text;
    size_t n = b[0] < 0x80   ? 1
               : b[0] < 0xc0 ? 0
               : b[0] < 0xe0 ? 2
               : b[0] < 0xf0 ? 3
               : b[0] < 0xf8 ? 4
                             : 0;
    uint32_t code = n == 1 ? b[0] : n ? b[0] & (0x7fu >> n) : 0;
    for (size_t i = 1; i < n; i++) {
        if ((b[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (b[i] & 0x3f);
    }
    bool surrogate = code >= 0xd800 && code < 0xe000;
    if (n && (code < LEAST[n] || code > 0x10ffff || surrogate))
        return 0;
    *ret = code;
    return n;
}

static bool is_utf8(const char *text)
{
    uint32_t code = 1;
    for (size_t n; code; text += n)
        if (!(n = decode(text, &code)))
            return false;
    return true;
}

/* Neither a break, a control nor a mark that reads as nothing. */
static bool shows_itself(uint32_t code)
{
    if (code < 0xa0)
        return code >= 0x20 && code < 0x7f;
    return code != 0x2028 && code != 0x2029 && code != 0xfeff && code != 0xfffe && code != 0xffff;
}

/* "0", "17", "30s", "1.5m", "64K": not "017" or "1e3", about which readers differ. */
static bool is_plain_number(const char *text)
{
    size_t digits = strspn(text, "0123456789."), rest = strlen(text + digits);
    if (rest > 2 || strspn(text + digits, "hmsKMG") != rest)
        return false;
    return text[0] != '0' || digits == 1 || text[1] == '.';
}

/* Whether it needs no quotes, and every reader of YAML takes it for a text, or for the number that it looks like. */
static bool is_plain(const char *text)
{
    static const char *const WORDS[] = {"null", "true", "false", "yes", "no",
                                        "on",   "off",  "y",     "n"};
    static const char SAFE[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./,=+@-";
    for (size_t i = 0; i < ARRAY_LEN(WORDS); i++)
        if (strcasecmp(text, WORDS[i]) == 0)
            return false;
    if (text[strspn(text, SAFE)] != '\0')
        return false;
    if (text[0] >= '0' && text[0] <= '9')
        return is_plain_number(text);
    return (text[0] >= 'A' && text[0] <= 'Z') || (text[0] >= 'a' && text[0] <= 'z') ||
           text[0] == '/' || (text[0] == '.' && text[1] == '/');
}

/* dollars: of a variable, where $$ is one. The text is UTF-8. */
static void put_text(FILE *out, const char *text, bool dollars)
{
    if (is_plain(text)) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    uint32_t code = 0;
    for (size_t n; *text; text += n) {
        n = decode(text, &code);
        if (code == '"' || code == '\\')
            fprintf(out, "\\%c", (int)code);
        else if (code == '$' && dollars)
            fputs("$$", out);
        else if (code == '\n')
            fputs("\\n", out);
        else if (shows_itself(code))
            fwrite(text, 1, n, out);
        else
            fprintf(out, "\\u%04x", code);
    }
    fputc('"', out);
}

static int no_utf8(const char *what, struct err *err)
{
    return err_set(err, -EINVAL, "%.60s is no UTF-8, so that no job file can hold it", what);
}

/* ---- values in effect ---- */

static void put_origin(FILE *out, const struct job_spec *spec, const struct field *field)
{
    const struct origin *origin = &spec->origin[field - FIELDS];
    char ours[FIELD_ENV_BYTES], path[FIELD_QUOTE_BYTES];
    switch (origin->source) {
    case SOURCE_FILE:
        fprintf(out, "%s:%u", field_quote(spec->config, strlen(spec->config), path), origin->line);
        break;
    case SOURCE_PET:
        fputs(field->pet, out);
        break;
    case SOURCE_LAUNCH:
        fputs(field_env(field, ours), out);
        break;
    case SOURCE_COMMAND_LINE:
        fprintf(out, "command line --%s", field->name);
        break;
    case SOURCE_IMPLIED:
        fputs("follows from other settings", out);
        break;
    default:
        fputs("default", out);
        break;
    }
}

/* One row. Rows without effect are left out: torchrun's, and those whose place another one has set. */
static int put_row(FILE *out, const struct job_spec *spec, const struct field *field,
                   struct err *err)
{
    const struct origin *origin = &spec->origin[field - FIELDS];
    char key[FIELD_ENV_BYTES];
    field_key(field->name, key);
    if (!origin->text &&
        (field_source(field, spec) != SOURCE_DEFAULT || field->group == GROUP_TORCHRUN))
        return 0;
    if (!origin->text && !field->def) {
        if (field->arg)
            fprintf(out, "# %s:  # not set\n", key);
        return 0;
    }
    const char *text = origin->text ? origin->text : field->def;
    if (!is_utf8(text))
        return no_utf8(key, err);
    fprintf(out, "%s%s: ", origin->source == SOURCE_IMPLIED ? "# " : "", key);
    put_text(out, text, false);
    fputs("  # ", out);
    put_origin(out, spec, field);
    fputc('\n', out);
    return 0;
}

static int put_program(FILE *out, const struct job_spec *spec, struct err *err)
{
    char path[FIELD_QUOTE_BYTES];
    for (char **word = spec->argv; word && *word; word++) {
        if (!is_utf8(*word))
            return no_utf8(word == spec->argv ? "program" : "args", err);
        fputs(word == spec->argv       ? "\nprogram: "
              : word == spec->argv + 1 ? "args:\n- "
                                       : "- ",
              out);
        put_text(out, *word, false);
        if (word == spec->argv && spec->argv == spec->file_argv)
            fprintf(out, "  # %s:%u", field_quote(spec->config, strlen(spec->config), path),
                    spec->argv_line);
        else if (word == spec->argv)
            fputs("  # command line", out);
        fputc('\n', out);
    }
    return 0;
}

static int put_env(FILE *out, char *const *env, struct err *err)
{
    if (env && *env)
        fputs("\nenv:\n", out);
    for (; env && *env; env++) {
        int n = (int)strcspn(*env, "=");
        if (!is_utf8(*env))
            return no_utf8(*env, err);
        fprintf(out, "  %.*s: ", n, *env);
        put_text(out, *env + n + 1, true);
        fputc('\n', out);
    }
    return 0;
}

static int put_job(FILE *out, const struct job_spec *spec, struct err *err)
{
    int r = 0;
    for (enum field_group group = 0; group < GROUPS_N; group++)
        for (size_t i = 0; i < FIELDS_N && r == 0 && group != GROUP_FILE; i++)
            if (FIELDS[i].group == group)
                r = put_row(out, spec, &FIELDS[i], err);
    if (r == 0)
        r = put_program(out, spec, err);
    return r < 0 ? r : put_env(out, spec->env, err);
}

/* A value is always on one line, so that a line is all that is to be moved. */
static void put_indented(FILE *out, const char *text)
{
    for (const char *end; *text; text = end) {
        end = strchrnul(text, '\n');
        end += *end == '\n';
        fprintf(out, "%s%.*s", *text == '\n' ? "" : "    ", (int)(end - text), text);
    }
}

static int put_one_of_jobs(FILE *out, const struct job_spec *job, struct err *err)
{
    char *text = NULL;
    size_t n;
    FILE *inner = open_memstream(&text, &n);
    if (!inner)
        return err_set(err, -ENOMEM, "out of memory");
    int r = put_job(inner, job, err);
    if (fclose(inner) != 0 && r == 0)
        r = err_set(err, -ENOMEM, "out of memory");
    if (r == 0) {
        fputs("  ", out);
        put_text(out, job->name, false);
        fputs(":\n", out);
        put_indented(out, text);
    }
    free(text);
    return r;
}

int emit_config(FILE *out, const struct job_spec *spec, struct err *err)
{
    if (!spec->jobs)
        return put_job(out, spec, err);
    int r = 0;
    fputs("jobs:\n", out);
    for (unsigned i = 0; i < spec->jobs_n && r == 0; i++) {
        fputs(i ? "\n" : "", out);
        r = put_one_of_jobs(out, &spec->jobs[i], err);
    }
    return r;
}

/* ---- the example ---- */

static void put_comment(FILE *out, const char *text)
{
    size_t column = 0;
    for (; *(text += strspn(text, " "));) {
        size_t n = strcspn(text, " ");
        bool fits = column > 0 && column + 1 + n <= WIDTH;
        if (!fits) {
            fputs(column > 0 ? "\n#" : "#", out);
            column = 1;
        }
        fprintf(out, " %.*s", (int)n, text);
        column += 1 + n;
        text += n;
    }
    fputc('\n', out);
}

void emit_example(FILE *out)
{
    fputs("# A job file: launch --config job.yaml [options] [-- further arguments]\n"
          "#\n"
          "# The command line goes before LAUNCH_* and PET_* variables, these before the\n"
          "# file, and that before the defaults, which are shown here. A value is what\n"
          "# would stand on the command line; lists with commas may be YAML lists.\n"
          "\n"
          "# What is run: found as on the command line, from the working directory.\n"
          "#program: ./train\n"
          "#args: [--lr, 1e-4]\n"
          "\n"
          "# Variables for the job, as if they had been exported before launch started.\n"
          "# ${NAME} is a variable from there, $$ a dollar.\n"
          "#env:\n"
          "#  NCCL_DEBUG: WARN\n"
          "#  DATA: ${HOME}/data\n"
          "\n"
          "# Several jobs at once: each has keys as this file has; what the file says\n"
          "# itself, all have. A job's name is its --name.\n"
          "#jobs:\n"
          "#  train: {gpus: 6, nproc_per_node: gpu, program: ./train}\n"
          "#  eval: {gpus: 2, program: ./eval, max_restarts: 3}\n",
          out);
    for (enum field_group group = 0; group < GROUPS_N; group++) {
        if (group == GROUP_FILE)
            continue;
        fprintf(out, "\n# ---- %s ----\n", FIELD_GROUPS[group]);
        for (size_t i = 0; i < FIELDS_N; i++) {
            const struct field *field = &FIELDS[i];
            char key[FIELD_ENV_BYTES];
            if (field->group != group)
                continue;
            fputc('\n', out);
            put_comment(out, field->help);
            if (field->arg)
                fprintf(out, "# %s\n", field->arg);
            fprintf(out, "#%s: ", field_key(field->name, key));
            put_text(out, field->def ? field->def : field->arg ? field->arg : "0", false);
            fputc('\n', out);
        }
    }
}
