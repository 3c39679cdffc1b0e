/* SPDX-License-Identifier: MIT */
/* Settings without effect: every row that needs another one, from every source. */
#include "../../config/fields.h"
#include "../harness.h"

/* Each such row: a value that is not its default, and one that makes it effective. */
static const struct sample {
    const char *name, *value, *need, *need_value;
} SAMPLES[] = {
    {"wait", "1m", "gpus", "2"},
    {"gpu-ids", "uuid", "gpu-visibility", "rank"},
    {"max-restarts", "3", "on-failure", "restart"},
    {"min-workers", "2", "on-failure", "shrink"},
    {"heal-timeout", "5s", "on-failure", "heal"},
    {"standby-count", "2", "standby", "exec"},
    {"restart-window", "1h", "max-restarts", "1"},
    {"restart-refill", "1", "max-restarts", "1"},
    {"restart-limits", "exit:1", "max-restarts", "1"},
    {"restart-on", "7", "on-failure", "shrink"},
    {"no-restart-on", "7", "max-restarts", "1"},
    {"log-rotate-size", "1M", "redirects", "255:1"},
    {"log-rotate-keep", "2", "log-rotate-size", "1M"},
};

static const struct sample *sample_of(const struct field *field)
{
    for (size_t i = 0; i < ARRAY_LEN(SAMPLES); i++)
        if (strcmp(SAMPLES[i].name, field->name) == 0)
            return &SAMPLES[i];
    return NULL;
}

static void set(struct job_spec *spec, const char *name, const char *value, enum source source)
{
    struct origin from = {.source = source, .line = source == SOURCE_FILE ? 12 : 0};
    const struct field *field = field_find(name, strlen(name));
    CHECK_INT(field_set_from(field, spec, value, from, name, NULL), ==, 0);
}

/* A spec in which no row's need is met, and which is from a job file, too. */
static void begin(struct job_spec *spec)
{
    CHECK_INT(spec_init(spec), ==, 0);
    spec->config = strdup("job.yaml");
    spec->on_failure = ON_FAILURE_STOP;
}

static unsigned count_idle(const struct job_spec *spec, char line[NEED_LINE_BYTES])
{
    unsigned n = 0;
    for (size_t at = 0; need_next_idle(spec, &at, line);)
        n++;
    return n;
}

/* With this row alone. */
static bool is_told(const struct sample *s, const char *value, enum source source,
                    char line[NEED_LINE_BYTES])
{
    struct job_spec spec;
    begin(&spec);
    set(&spec, s->name, value, source);
    unsigned n = count_idle(&spec, line);
    spec_finish(&spec);
    return n > 0;
}

TEST(every_row_that_needs_another_is_told_of_when_that_is_not_given)
{
    size_t rows = 0;
    for (size_t i = 0; i < FIELDS_N; i++) {
        const struct field *field = &FIELDS[i];
        char line[NEED_LINE_BYTES] = "";
        if (field->needs == NEED_NOTHING)
            continue;
        const struct sample *s = sample_of(field);
        if (!s)
            test_fail(__FILE__, __LINE__, "no sample of --%s", field->name);
        rows++;
        CHECK(is_told(s, s->value, SOURCE_COMMAND_LINE, line));
        CHECK_HAS(line, field->name);
        CHECK_HAS(line, " has no effect without --");
        CHECK_HAS(line, need_text(field->needs));
        CHECK_INT(strncmp(line, "--", 2), ==, 0);
        CHECK(is_told(s, s->value, SOURCE_FILE, line));
        CHECK_INT(strncmp(line, "job.yaml:12: --", 15), ==, 0);
    }
    CHECK_INT(rows, ==, ARRAY_LEN(SAMPLES));
}

TEST(a_row_that_has_what_it_needs_is_not_told_of)
{
    for (size_t i = 0; i < ARRAY_LEN(SAMPLES); i++) {
        const struct sample *s = &SAMPLES[i];
        struct job_spec spec;
        char line[NEED_LINE_BYTES];
        begin(&spec);
        set(&spec, s->name, s->value, SOURCE_COMMAND_LINE);
        set(&spec, s->need, s->need_value, SOURCE_COMMAND_LINE);
        if (strcmp(s->need, "log-rotate-size") == 0)
            set(&spec, "tee", "1", SOURCE_COMMAND_LINE);
        if (strcmp(s->need, "max-restarts") == 0)
            spec.on_failure = ON_FAILURE_RESTART;
        if (count_idle(&spec, line))
            test_fail(__FILE__, __LINE__, "%s", line);
        spec_finish(&spec);
    }
}

TEST(defaults_as_they_are_and_those_of_a_login_are_not_told_of)
{
    for (size_t i = 0; i < ARRAY_LEN(SAMPLES); i++) {
        const struct sample *s = &SAMPLES[i];
        const struct field *field = field_find(s->name, strlen(s->name));
        char line[NEED_LINE_BYTES];
        CHECK(!field->def || !is_told(s, field->def, SOURCE_COMMAND_LINE, line));
        CHECK(!is_told(s, s->value, SOURCE_LAUNCH, line));
        CHECK(!is_told(s, s->value, SOURCE_PET, line));
    }
}

TEST(what_a_job_file_lacks_because_the_command_line_says_so_is_not_told_of)
{
    for (enum source from = SOURCE_FILE; from <= SOURCE_COMMAND_LINE; from++) {
        struct job_spec spec;
        char line[NEED_LINE_BYTES];
        begin(&spec);
        set(&spec, "min-workers", "2", SOURCE_FILE);
        set(&spec, "on-failure", "restart", from);
        CHECK_INT(count_idle(&spec, line), ==, from == SOURCE_FILE);
        spec_finish(&spec);
    }
}
