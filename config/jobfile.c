/* SPDX-License-Identifier: MIT */
/* See jobfile.h. Owns what the keys of a job file mean. Must never know how YAML looks: yaml.c does; nor how a
 * setting's value does: fields.c. */
#include "jobfile.h"

#include "../proto/env.h"
#include "fields.h"
#include "foreign.h"
#include "yaml.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define VALUE_MAX_BYTES (128 * 1024) /* the kernel takes no longer string (MAX_ARG_STRLEN) */
#define LIST_MAX_BYTES 4096          /* a list of signals, ranks, codes as one text */

const char *const JOBFILE_KEYS[] = {"program", "args", "env", "jobs", NULL};

enum { KEY_PROGRAM, KEY_ARGS, KEY_ENV, KEY_JOBS, KEYS_N };

/* A map of settings and further keys: the file's root, or one of its jobs. */
struct jobfile {
    const struct yaml_tree *tree;
    const struct jobfile
        *root; /* of a job: what it has in common with the others; NULL: this is it */
    struct job_spec *spec;
    struct job_spec scratch;              /* takes the values that something else goes before */
    unsigned seen[SPEC_FIELDS_MAX];       /* line of each setting; 0: not there yet */
    const struct yaml_node *keys[KEYS_N]; /* value of each further key; NULL: not there */
    struct err *err;
};

static const char *kind_of(const struct yaml_node *node)
{
    return node->kind == YAML_MAP ? "a map" : node->kind == YAML_LIST ? "a list" : "a text";
}

static bool is_null(const struct yaml_node *node)
{
    static const char *const WORDS[] = {"", "~", "null", "Null", "NULL"};
    for (size_t i = 0; node->plain && i < ARRAY_LEN(WORDS); i++)
        if (strcmp(node->text, WORDS[i]) == 0)
            return true;
    return false;
}

static int no_memory(const struct jobfile *f)
{
    return err_set(f->err, -ENOMEM, "%.150s: out of memory", f->tree->name);
}

/* ---- settings ---- */

static bool has_leading_zero(const struct yaml_node *node)
{
    size_t digits = strspn(node->text, "0123456789");
    return node->plain && node->text[0] == '0' && digits > 1 && node->text[digits] == '\0';
}

static int check_word(const struct jobfile *f, const char *key, const struct yaml_node *word)
{
    if (word->kind != YAML_TEXT)
        return yaml_refuse(f->tree, word, f->err, "%s: must be one value, not %s", key,
                           kind_of(word));
    if (is_null(word))
        return yaml_refuse(f->tree, word, f->err,
                           "%s: has no value; leave it out for the default, or quote what is meant",
                           key);
    if (has_leading_zero(word))
        return yaml_refuse(
            f->tree, word, f->err,
            "%s: %.40s is octal to some readers of YAML and decimal to others; leave the "
            "zeros out, or quote it",
            key, word->text);
    return 0;
}

/* The items with commas between them. */
static int join(const struct jobfile *f, const char *key, const struct yaml_node *list,
                char text[LIST_MAX_BYTES])
{
    size_t used = 0;
    text[0] = '\0';
    if (!list->first)
        return yaml_refuse(f->tree, list, f->err,
                           "%s: the list is empty; leave it out for the default", key);
    for (const struct yaml_node *item = list->first; item; item = item->next) {
        int r = check_word(f, key, item);
        if (r < 0)
            return r;
        if (strchr(item->text, ','))
            return yaml_refuse(f->tree, item, f->err,
                               "%s: a comma in an item of a list; write all as one text", key);
        int n = snprintf(text + used, LIST_MAX_BYTES - used, "%s%s", used ? "," : "", item->text);
        if ((size_t)n >= LIST_MAX_BYTES - used)
            return yaml_refuse(f->tree, item, f->err, "%s: the list is too long", key);
        used += (size_t)n;
    }
    return 0;
}

static int take_setting(struct jobfile *f, const struct field *field, const struct yaml_node *key,
                        const struct yaml_node *value)
{
    unsigned *seen = &f->seen[field - FIELDS];
    char list[LIST_MAX_BYTES], name[FIELD_ENV_BYTES], where[256];
    field_key(field->name, name);
    if (field->group == GROUP_FILE)
        return yaml_refuse(f->tree, key, f->err, "%s belongs on the command line", name);
    if (*seen)
        return yaml_refuse(f->tree, key, f->err, "%s: is set a second time, after line %u", name,
                           *seen);
    *seen = key->line;
    bool is_list = value->kind == YAML_LIST && field->list;
    int r = is_list ? join(f, name, value, list) : check_word(f, name, value);
    if (r < 0)
        return r;
    snprintf(where, sizeof where, "%.150s:%u:%u: %s", f->tree->name, value->line, value->column,
             name);
    bool overruled = field_source(field, f->spec) > SOURCE_FILE;
    return field_set_from(field, overruled ? &f->scratch : f->spec, is_list ? list : value->text,
                          (struct origin){.source = SOURCE_FILE, .line = key->line}, where, f->err);
}

static int refuse_key(const struct jobfile *f, const struct yaml_node *key)
{
    char shown[FIELD_QUOTE_BYTES], near[FIELD_ENV_BYTES];
    if (strcmp(key->text, "<<") == 0)
        return yaml_refuse(f->tree, key, f->err, "'<<' is not there: write the keys out");
    const char *nearest = field_nearest_of(key->text, strlen(key->text), JOBFILE_KEYS);
    const char *instead = foreign_find(FOREIGN_KEY, key->text, strlen(key->text));
    field_quote(key->text, strlen(key->text), shown);
    if (instead)
        return yaml_refuse(f->tree, key, f->err, "unknown key '%s'; %s", shown, instead);
    if (!nearest)
        return yaml_refuse(f->tree, key, f->err,
                           "unknown key '%s'; launch --example-config shows them all", shown);
    return yaml_refuse(f->tree, key, f->err, "unknown key '%s' (did you mean '%s'?)", shown,
                       field_key(nearest, near));
}

static int take_pair(struct jobfile *f, const struct yaml_node *key, const struct yaml_node *value)
{
    if (key->kind != YAML_TEXT)
        return yaml_refuse(f->tree, key, f->err, "a key must be a word, not %s", kind_of(key));
    for (int k = 0; k < KEYS_N; k++) {
        if (strcmp(key->text, JOBFILE_KEYS[k]) != 0)
            continue;
        if (k == KEY_JOBS && f->root)
            return yaml_refuse(f->tree, key, f->err, "jobs: a job can't have jobs of its own");
        if (f->keys[k])
            return yaml_refuse(f->tree, key, f->err, "%s: is there a second time, after line %u",
                               JOBFILE_KEYS[k], f->keys[k]->line);
        f->keys[k] = value;
        if (value->kind == YAML_TEXT && is_null(value))
            return yaml_refuse(f->tree, value, f->err, "%s: has no value; leave it out then",
                               key->text);
        return 0;
    }
    const struct field *field = field_find(key->text, strlen(key->text));
    return field ? take_setting(f, field, key, value) : refuse_key(f, key);
}

/* ---- program and arguments ---- */

static size_t count(const struct yaml_node *parent)
{
    size_t n = 0;
    for (const struct yaml_node *child = parent ? parent->first : NULL; child; child = child->next)
        n++;
    return n;
}

static int check_program(const struct jobfile *f)
{
    const struct yaml_node *program = f->keys[KEY_PROGRAM], *args = f->keys[KEY_ARGS];
    if (args && args->kind != YAML_LIST)
        return yaml_refuse(f->tree, args, f->err,
                           "args: must be a list such as [--lr, 1e-4], not %s", kind_of(args));
    for (const struct yaml_node *arg = args ? args->first : NULL; arg; arg = arg->next)
        if (arg->kind != YAML_TEXT)
            return yaml_refuse(f->tree, arg, f->err, "args: an argument must be a text, not %s",
                               kind_of(arg));
    if (args && !program)
        return yaml_refuse(f->tree, args, f->err,
                           "args: there is no 'program' that they belong to");
    if (program && (program->kind != YAML_TEXT || !*program->text))
        return yaml_refuse(f->tree, program, f->err,
                           "program: must be one word, not %s; 'args' has the rest",
                           program->kind == YAML_TEXT ? "an empty one" : kind_of(program));
    return 0;
}

static int take_program(struct jobfile *f)
{
    const struct yaml_node *program = f->keys[KEY_PROGRAM], *args = f->keys[KEY_ARGS];
    int r = check_program(f);
    if (r < 0 || !program)
        return r;
    char **argv = calloc(count(args) + 2, sizeof *argv);
    f->spec->file_argv = argv;
    f->spec->argv_line = program->line;
    if (!argv || !(*argv++ = strdup(program->text)))
        return no_memory(f);
    for (const struct yaml_node *arg = args ? args->first : NULL; arg; arg = arg->next)
        if (!(*argv++ = strdup(arg->text)))
            return no_memory(f);
    return 0;
}

/* ---- environment ---- */

static int check_name(const struct jobfile *f, const struct yaml_node *map,
                      const struct yaml_node *key)
{
    static const char *const DECIDED[] = {ENV_DECIDED};
    char shown[FIELD_QUOTE_BYTES], ours[FIELD_ENV_BYTES], name[FIELD_ENV_BYTES];
    if (key->kind != YAML_TEXT || !field_names_variable(key->text, strlen(key->text)))
        return yaml_refuse(f->tree, key, f->err,
                           "env: '%s' is no name of a variable (A-Z a-z 0-9 _)",
                           key->kind == YAML_TEXT ? field_quote(key->text, strlen(key->text), shown)
                                                  : kind_of(key));
    field_quote(key->text, strlen(key->text), shown);
    for (size_t i = 0; i < ARRAY_LEN(DECIDED); i++)
        if (strcmp(key->text, DECIDED[i]) == 0)
            return yaml_refuse(f->tree, key, f->err,
                               "env: %s is what launch itself sets for each worker", shown);
    bool maybe_setting =
        strncmp(key->text, "LAUNCH_", 7) == 0 || strncmp(key->text, "PET_", 4) == 0;
    for (size_t i = 0; i < FIELDS_N && maybe_setting; i++)
        if (strcmp(key->text, field_env(&FIELDS[i], ours)) == 0 ||
            (FIELDS[i].pet && strcmp(key->text, FIELDS[i].pet) == 0))
            return yaml_refuse(f->tree, key, f->err,
                               "env: %s is a setting; write '%s:' outside of env", shown,
                               field_key(FIELDS[i].name, name));
    for (const struct yaml_node *other = map->first; other != key; other = other->next->next)
        if (strcmp(other->text, key->text) == 0)
            return yaml_refuse(f->tree, key, f->err,
                               "env: %s is there a second time, after line %u", shown, other->line);
    return 0;
}

/* Moves *at behind "$$" or "${NAME}" and gives what it stands for. */
static int expand_one(const struct jobfile *f, const char *key, const struct yaml_node *value,
                      const char **at, const char **ret)
{
    if ((*at)[1] == '$') {
        *at += 2;
        *ret = "$";
        return 0;
    }
    char name[128];
    const char *begin = (*at)[1] == '{' ? *at + 2 : "";
    size_t n = strcspn(begin, "}");
    if (begin[n] != '}' || !field_names_variable(begin, n) || n >= sizeof name)
        return yaml_refuse(f->tree, value, f->err,
                           "env: %.60s: a $ must be ${NAME} or, for itself, $$", key);
    memcpy(name, begin, n);
    name[n] = '\0';
    *ret = getenv(name);
    *at = begin + n + 1;
    if (!*ret)
        return yaml_refuse(f->tree, value, f->err,
                           "env: %.60s: ${%s} is not set where launch was started", key, name);
    return 0;
}

static int write_value(const struct jobfile *f, const char *key, const struct yaml_node *value,
                       FILE *out)
{
    for (const char *at = value->text; *at;) {
        const char *piece = at;
        size_t n = strcspn(at, "$");
        if (n == 0) {
            int r = expand_one(f, key, value, &at, &piece);
            if (r < 0)
                return r;
            n = strlen(piece);
        } else {
            at += n;
        }
        if (fwrite(piece, 1, n, out) != n)
            return no_memory(f);
        if (ftell(out) >= VALUE_MAX_BYTES)
            return yaml_refuse(f->tree, value, f->err,
                               "env: %.60s: longer than %d kB, which no program can be given", key,
                               VALUE_MAX_BYTES / 1024);
    }
    return 0;
}

/* "NAME=value" */
static int make_variable(const struct jobfile *f, const struct yaml_node *map,
                         const struct yaml_node *key, char **ret)
{
    const struct yaml_node *value = key->next;
    int r = check_name(f, map, key);
    if (r < 0)
        return r;
    if (value->kind != YAML_TEXT)
        return yaml_refuse(f->tree, value, f->err, "env: %.60s: must be a text, not %s", key->text,
                           kind_of(value));
    size_t n;
    FILE *out = open_memstream(ret, &n);
    if (!out)
        return no_memory(f);
    if (fprintf(out, "%s=", key->text) < 0)
        r = no_memory(f);
    else
        r = write_value(f, key->text, value, out);
    if ((fclose(out) != 0 || !*ret) && r == 0)
        r = no_memory(f);
    return r;
}

/* A job's own goes before the one of that name which all jobs have. */
static void put_variable(char **env, char *variable)
{
    size_t name_n = strcspn(variable, "=") + 1;
    while (*env && strncmp(*env, variable, name_n) != 0)
        env++;
    free(*env);
    *env = variable;
}

static int take_variables(struct jobfile *f, const struct yaml_node *map)
{
    if (!map)
        return 0;
    if (map->kind != YAML_MAP)
        return yaml_refuse(f->tree, map, f->err,
                           "env: must be a map such as {NCCL_DEBUG: INFO}, not %s", kind_of(map));
    int r = 0;
    for (const struct yaml_node *key = map->first; key && r == 0; key = key->next->next) {
        char *variable = NULL;
        r = make_variable(f, map, key, &variable);
        if (r == 0 && variable)
            put_variable(f->spec->env, variable);
        else
            free(variable);
    }
    return r;
}

static int take_env(struct jobfile *f)
{
    const struct yaml_node *all = f->root ? f->root->keys[KEY_ENV] : NULL, *own = f->keys[KEY_ENV];
    if (!all && !own)
        return 0;
    f->spec->env = calloc(count(all) / 2 + count(own) / 2 + 1, sizeof *f->spec->env);
    if (!f->spec->env)
        return no_memory(f);
    int r = take_variables(f, all);
    return r < 0 ? r : take_variables(f, own);
}

/* ---- several jobs ---- */

static int take_pairs(struct jobfile *f, const struct yaml_node *map)
{
    int r = 0;
    for (const struct yaml_node *key = map->first; key && r == 0; key = key->next->next)
        r = take_pair(f, key, key->next);
    return r;
}

/* The key is its --name, unless that is set. */
static int name_job(const struct jobfile *f, const struct yaml_node *key)
{
    const struct field *field = field_find("name", 4);
    char where[256];
    snprintf(where, sizeof where, "%.150s:%u:%u: jobs: a name", f->tree->name, key->line,
             key->column);
    if (field_source(field, f->spec) > SOURCE_FILE)
        return 0;
    return field_set_from(field, f->spec, key->text,
                          (struct origin){.source = SOURCE_FILE, .line = key->line}, where, f->err);
}

static int check_job(const struct jobfile *root, const struct yaml_node *key)
{
    if (key->kind != YAML_TEXT)
        return yaml_refuse(root->tree, key, root->err, "jobs: a name must be a word, not %s",
                           kind_of(key));
    for (const struct yaml_node *other = root->keys[KEY_JOBS]->first; other != key;
         other = other->next->next)
        if (strcmp(other->text, key->text) == 0)
            return yaml_refuse(root->tree, key, root->err,
                               "jobs: %.60s is there a second time, after line %u", key->text,
                               other->line);
    if (key->next->kind != YAML_MAP)
        return yaml_refuse(root->tree, key->next, root->err,
                           "jobs: %.60s: must be a map with 'program' and settings, not %s",
                           key->text, kind_of(key->next));
    return 0;
}

/* What it says itself goes before what is said for all. */
static int take_job(const struct jobfile *root, const struct yaml_node *key, struct job_spec *spec)
{
    struct jobfile f = {.tree = root->tree, .root = root, .spec = spec, .err = root->err};
    int r = check_job(root, key);
    if (r == 0)
        r = spec_inherit(spec, root->spec, f.err);
    if (r == 0)
        r = name_job(&f, key);
    if (r == 0)
        r = take_pairs(&f, key->next);
    spec_finish(&f.scratch);
    if (r < 0)
        return r;
    if (!f.keys[KEY_PROGRAM]) {
        f.keys[KEY_PROGRAM] = root->keys[KEY_PROGRAM];
        if (!f.keys[KEY_ARGS])
            f.keys[KEY_ARGS] = root->keys[KEY_ARGS];
    }
    if (!f.keys[KEY_PROGRAM])
        return yaml_refuse(f.tree, key, f.err, "jobs: %.60s: has no 'program'", key->text);
    r = take_program(&f);
    spec->argv = spec->file_argv;
    return r < 0 ? r : take_env(&f);
}

static int take_jobs(struct jobfile *f)
{
    const struct yaml_node *map = f->keys[KEY_JOBS];
    size_t n = count(map) / 2;
    if (map->kind != YAML_MAP || n == 0 || n > SPEC_JOBS_MAX)
        return yaml_refuse(f->tree, map, f->err,
                           "jobs: must be a map of names and jobs, 1 to %d of them, not %s",
                           SPEC_JOBS_MAX,
                           map->kind != YAML_MAP ? kind_of(map)
                           : n                   ? "that many"
                                                 : "an empty one");
    f->spec->jobs = calloc(n, sizeof *f->spec->jobs);
    if (!f->spec->jobs)
        return no_memory(f);
    int r = 0;
    for (const struct yaml_node *key = map->first; key && r == 0; key = key->next->next)
        r = take_job(f, key, &f->spec->jobs[f->spec->jobs_n++]);
    return r;
}

/* ---- the file ---- */

static int take_root(struct jobfile *f)
{
    const struct yaml_node *root = f->tree->root;
    if (!root || (root->kind == YAML_TEXT && is_null(root)))
        return 0;
    if (root->kind != YAML_MAP)
        return yaml_refuse(f->tree, root, f->err,
                           "must be settings such as nproc_per_node: 4, not %s", kind_of(root));
    int r = take_pairs(f, root);
    if (r == 0 && f->keys[KEY_JOBS])
        return take_jobs(f);
    if (r == 0)
        r = take_program(f);
    return r < 0 ? r : take_env(f);
}

int jobfile_parse(struct job_spec *spec, const char *name, const char *text, size_t n,
                  struct err *err)
{
    struct yaml_tree tree;
    int r = yaml_tree_read(&tree, name, text, n, err);
    if (r < 0)
        return r;
    struct jobfile f = {.tree = &tree, .spec = spec, .err = err};
    r = take_root(&f);
    spec_finish(&f.scratch);
    yaml_tree_free(&tree);
    return r;
}

static int check_file(int fd, const char *name, struct err *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_set_errno(err, -errno, "job file %.150s", name);
    if (!S_ISREG(st.st_mode))
        return err_set(err, -EINVAL, "job file %.150s: %s, not a regular file", name,
                       S_ISDIR(st.st_mode)    ? "is a directory"
                       : S_ISFIFO(st.st_mode) ? "is a pipe"
                                              : "is a device or socket");
    if (st.st_size > YAML_MAX_BYTES)
        return err_set(err, -EINVAL,
                       "job file %.150s: has %lld bytes, more than the %u that one may have", name,
                       (long long)st.st_size, YAML_MAX_BYTES);
    return 0;
}

/* A path as errors show it: as it is, unless it holds what a terminal should not get. */
static const char *readable(const char *path, char buf[FIELD_QUOTE_BYTES])
{
    for (const char *c = path; *c; c++)
        if (*c < 0x20 || *c >= 0x7f)
            return field_quote(path, strlen(path), buf);
    return path;
}

int jobfile_read(struct job_spec *spec, const char *path, struct err *err)
{
    char quoted[FIELD_QUOTE_BYTES];
    const char *name = readable(path, quoted);
    /* O_NONBLOCK: a pipe must not hold us up. */
    AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return err_set_errno(err, -errno, "job file %.150s", name);
    int r = check_file(fd, name, err);
    if (r < 0)
        return r;
    /* One byte more than is allowed: the file may have grown. */
    AUTO_FREE char *text = malloc(YAML_MAX_BYTES + 1);
    if (!text)
        return err_set(err, -ENOMEM, "job file %.150s: out of memory", name);
    size_t n = 0;
    ssize_t got = 1;
    while (got > 0 && n <= YAML_MAX_BYTES) {
        do
            got = read(fd, text + n, YAML_MAX_BYTES + 1 - n);
        while (got < 0 && errno == EINTR);
        if (got < 0)
            return err_set_errno(err, -errno, "job file %.150s", name);
        n += (size_t)got;
    }
    if (n == 0 || n > YAML_MAX_BYTES)
        return err_set(err, -EINVAL, "job file %.150s: %s", name,
                       n ? "grew beyond what one may have" : "is empty");
    return jobfile_parse(spec, name, text, n, err);
}
