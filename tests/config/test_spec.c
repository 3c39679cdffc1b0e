/* SPDX-License-Identifier: MIT */
/* Life of a job_spec, checks across settings, and every allocation of the settings failing in turn.
 */
#include "../../config/fields.h"
#include "../harness.h"

/* strdup() is the one thing that config allocates with. This one goes before libc's in the whole
 * test program and does the same, but for the call that a test wants to fail. */
static int good_calls = -1; /* calls that still succeed; -1: all do */

char *strdup(const char *text)
{
    if (good_calls == 0)
        return NULL;
    if (good_calls > 0)
        good_calls--;
    size_t n = strlen(text) + 1;
    char *copy = malloc(n);
    return copy ? memcpy(copy, text, n) : NULL;
}

static int set(struct job_spec *spec, const char *name, const char *text)
{
    return field_set(field_find(name, strlen(name)), spec, text, name, NULL);
}

TEST(a_fresh_spec_holds_the_defaults)
{
    struct job_spec spec;
    memset(&spec, 0xa5, sizeof spec);
    CHECK_INT(spec_init(&spec), ==, 0);
    CHECK_INT(spec.nproc_mode, ==, NPROC_NUMBER);
    CHECK_INT(spec.nproc, ==, 1);
    CHECK_INT(spec.max_restarts, ==, 0);
    CHECK_INT(spec.rendezvous_timeout_ms, ==, 60000);
    CHECK_INT(spec.shutdown_timeout_ms, ==, 30000);
    CHECK_INT(spec.gpu_visibility, ==, GPU_VISIBILITY_JOB);
    CHECK_INT(spec.share_gpus, ==, 0);
    CHECK_INT(spec.exit_code, ==, EXIT_STYLE_WORKER);
    CHECK_INT(spec.master_port, ==, 0);
    CHECK_STR(spec.master_addr, "127.0.0.1");
    CHECK_STR(spec.role, "default");
    CHECK(spec.run_id == NULL);
    CHECK(!spec.log_dir && !spec.stdout_filters && !spec.stderr_filters);
    CHECK_INT(rankmap_get(&spec.redirects, 0), ==, 0);
    CHECK_INT(rankmap_get(&spec.tee, 0), ==, 0);
    CHECK_INT(spec.shown_ranks.listed, ==, 0);
    CHECK_INT(spec.rotate_bytes, ==, 0);
    CHECK_INT(spec.rotate_keep, ==, 5);
    CHECK_INT(spec.stdin_mode, ==, STDIN_DEFAULT);
    CHECK(spec.argv == NULL);
    for (size_t i = 0; i < SPEC_FIELDS_MAX; i++)
        CHECK_INT(spec.origin[i].source, ==, SOURCE_DEFAULT);
    CHECK_INT(spec_check(&spec, NULL), ==, 0);
    spec_finish(&spec);
}

TEST(finish_takes_null_zeroed_and_finished_specs)
{
    struct job_spec spec = {0};
    spec_finish(NULL);
    spec_finish(&spec);
    CHECK_INT(spec_init(&spec), ==, 0);
    spec_finish(&spec);
    spec_finish(&spec);
}

/* Every combination of --gpu-visibility (0: not given, 1: job, 2: rank) and --share-gpus. */
TEST(sharing_gpus_implies_rank_visibility_and_contradicts_an_explicit_job)
{
    static const char *const WORDS[] = {NULL, "job", "rank"};
    for (int visibility = 0; visibility < 3; visibility++) {
        for (int share = 0; share < 2; share++) {
            struct job_spec spec;
            struct err err = {0};
            CHECK_INT(spec_init(&spec), ==, 0);
            if (WORDS[visibility])
                CHECK_INT(set(&spec, "gpu-visibility", WORDS[visibility]), ==, 0);
            if (share)
                CHECK_INT(set(&spec, "share-gpus", "1"), ==, 0);
            for (int again = 0; again < 2; again++) {
                bool contradiction = share && visibility == 1;
                CHECK_INT(spec_check(&spec, &err), ==, contradiction ? -EINVAL : 0);
                CHECK_INT(spec.gpu_visibility, ==,
                          visibility == 2 || (share && visibility == 0) ? GPU_VISIBILITY_RANK
                                                                        : GPU_VISIBILITY_JOB);
                CHECK(!contradiction || strstr(err.text, "--share-gpus"));
                CHECK(!contradiction || strstr(err.text, "--gpu-visibility"));
            }
            spec_finish(&spec);
        }
    }
}

TEST(init_survives_every_allocation_that_fails)
{
    int failed = 0;
    for (;; failed++) {
        struct job_spec spec;
        good_calls = failed;
        int r = spec_init(&spec);
        good_calls = -1;
        if (r == 0) {
            spec_finish(&spec);
            break;
        }
        CHECK_INT(r, ==, -ENOMEM);
        CHECK(!spec.master_addr && !spec.run_id && !spec.role);
    }
    CHECK_INT(failed, ==, 2); /* master-addr and role; else this test no longer tests anything */
}

TEST(setting_a_text_survives_a_failing_allocation)
{
    static const char *const NAMES[] = {"run-id", "role", "master-addr", "log-dir",
                                        "duplicate-stdout-filters"};
    struct job_spec spec;
    CHECK_INT(spec_init(&spec), ==, 0);
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        good_calls = 0;
        int r = set(&spec, NAMES[i], "other");
        good_calls = -1;
        CHECK_INT(r, ==, -ENOMEM);
        CHECK(!field_given(field_find(NAMES[i], strlen(NAMES[i])), &spec));
    }
    CHECK(spec.run_id == NULL);
    CHECK_STR(spec.role, "default");
    CHECK_STR(spec.master_addr, "127.0.0.1");
    spec_finish(&spec);
}

/* The list that the user wrote wins; two of the user's that name one signal contradict each other. */
TEST(a_signal_ends_the_job_or_is_passed_on_and_never_both)
{
    static const struct {
        const char *ends, *passes; /* NULL: not given */
        int rc;
        bool term_ends, usr1_ends;
    } CASES[] = {
        {NULL, NULL, 0, true, false},
        {"TERM,USR1", NULL, 0, true, true},
        {NULL, "TERM,HUP", 0, false, false},
        {"TERM", "USR1", 0, true, false},
        {"TERM", "TERM", -EINVAL, false, false},
        {"TERM,RTMIN", "RTMIN", -EINVAL, false, false},
        {"TERM", "none", 0, true, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        struct job_spec spec;
        struct err err;
        CHECK_INT(spec_init(&spec), ==, 0);
        if (CASES[i].ends)
            CHECK_INT(set(&spec, "signals-to-handle", CASES[i].ends), ==, 0);
        if (CASES[i].passes)
            CHECK_INT(set(&spec, "forward-signals", CASES[i].passes), ==, 0);
        CHECK_INT(spec_check(&spec, &err), ==, CASES[i].rc);
        if (CASES[i].rc < 0) {
            CHECK_HAS(err.text, "--signals-to-handle and --forward-signals both name SIG");
        } else {
            CHECK_INT(siglist_has(&spec.signals_to_handle, 15), ==, CASES[i].term_ends);
            CHECK_INT(siglist_has(&spec.signals_to_handle, 10), ==, CASES[i].usr1_ends);
            CHECK(!(siglist_bits(&spec.signals_to_handle) & siglist_bits(&spec.forward_signals)));
            CHECK_INT(spec_check(&spec, &err), ==, 0);
        }
        spec_finish(&spec);
    }
}

TEST(codes_that_a_user_lists_are_restarted_unless_listed_otherwise)
{
    static const struct {
        const char *on, *not_on;
        bool not_93, not_5;
    } CASES[] = {{NULL, NULL, true, false},
                 {"93", NULL, false, false},
                 {"all", "5", false, true},
                 {NULL, "5", false, true},
                 {NULL, "none", false, false}};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        struct job_spec spec;
        struct err err;
        CHECK_INT(spec_init(&spec), ==, 0);
        if (CASES[i].on)
            CHECK_INT(set(&spec, "restart-on", CASES[i].on), ==, 0);
        if (CASES[i].not_on)
            CHECK_INT(set(&spec, "no-restart-on", CASES[i].not_on), ==, 0);
        CHECK_INT(spec_check(&spec, &err), ==, 0);
        CHECK_INT(codeset_has(&spec.no_restart_on, 93, 0, false), ==, CASES[i].not_93);
        CHECK_INT(codeset_has(&spec.no_restart_on, 5, 0, false), ==, CASES[i].not_5);
        spec_finish(&spec);
    }
}
