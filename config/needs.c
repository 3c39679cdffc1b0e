/* SPDX-License-Identifier: MIT */
#include "needs.h"

#include "fields.h"

#include <stdio.h>
#include <string.h>

static bool always(const struct job_spec *spec)
{
    (void)spec;
    return true;
}

static bool restarts(const struct job_spec *spec)
{
    return spec->max_restarts > 0 || spec->on_failure == ON_FAILURE_SHRINK;
}

static bool may_restart(const struct job_spec *spec)
{
    return spec->on_failure != ON_FAILURE_STOP;
}

static bool shrinks(const struct job_spec *spec)
{
    return spec->on_failure == ON_FAILURE_SHRINK;
}

static bool stands_by(const struct job_spec *spec)
{
    return spec_standbys(spec) > 0;
}

static bool takes_gpus(const struct job_spec *spec)
{
    return spec->gpus_mode != GPUS_VISIBLE;
}

static bool names_gpus(const struct job_spec *spec)
{
    return takes_gpus(spec) || spec->gpu_visibility == GPU_VISIBILITY_RANK;
}

/* Ranks that a map does not list have 0; 3 alone lists all. */
static bool logs_output(const struct job_spec *spec)
{
    for (uint32_t rank = 0; rank < BOARD_MAX_RANKS; rank++)
        if (rankmap_get(&spec->tee, rank) || rankmap_get(&spec->redirects, rank))
            return true;
    return false;
}

static bool rotates(const struct job_spec *spec)
{
    return spec->rotate_bytes > 0;
}

static const struct {
    const char *text;
    bool (*met)(const struct job_spec *spec);
} NEEDS[NEEDS_N] = {
    [NEED_NOTHING] = {NULL, always},
    [NEED_RESTARTS] = {"--max-restarts=N", restarts},
    [NEED_RESTARTABLE] = {"--on-failure=restart, heal or shrink", may_restart},
    [NEED_HEALING] = {"--on-failure=heal or shrink", spec_heals},
    [NEED_SHRINKING] = {"--on-failure=shrink", shrinks},
    [NEED_STANDBYS] = {"--standby", stands_by},
    [NEED_LEASE] = {"--gpus", takes_gpus},
    [NEED_CHOSEN_GPUS] = {"--gpus or --gpu-visibility=rank", names_gpus},
    [NEED_LOG_FILES] = {"--tee or --redirects", logs_output},
    [NEED_ROTATION] = {"--log-rotate-size=BYTES", rotates},
};

const char *need_text(enum need need)
{
    return NEEDS[need].text;
}

bool need_is_met(enum need need, const struct job_spec *spec)
{
    return NEEDS[need].met(spec);
}

static enum source source_of(enum need need, const struct job_spec *spec)
{
    const char *name = NEEDS[need].text + strlen("--");
    return field_source(field_find(name, strcspn(name, "= ,")), spec);
}

static bool is_idle(const struct field *field, const struct job_spec *spec)
{
    const struct origin *origin = &spec->origin[field - FIELDS];
    if (origin->source != SOURCE_COMMAND_LINE && origin->source != SOURCE_FILE)
        return false; /* most rows of most starts */
    return !need_is_met(field->needs, spec) &&
           !(field->def && strcmp(origin->text, field->def) == 0) &&
           source_of(field->needs, spec) <= origin->source;
}

bool need_next_idle(const struct job_spec *spec, size_t *at, char line[NEED_LINE_BYTES])
{
    while (*at < FIELDS_N && !is_idle(&FIELDS[*at], spec))
        ++*at;
    if (*at == FIELDS_N)
        return false;
    const struct field *field = &FIELDS[*at];
    unsigned in_line = spec->origin[*at].line;
    char file[FIELD_QUOTE_BYTES] = "", where[FIELD_QUOTE_BYTES + 16] = "";
    if (in_line && spec->config)
        snprintf(where, sizeof where,
                 "%s:%u: ", field_quote(spec->config, strlen(spec->config), file), in_line);
    snprintf(line, NEED_LINE_BYTES, "%s--%s has no effect without %s", where, field->name,
             need_text(field->needs));
    ++*at;
    return true;
}
