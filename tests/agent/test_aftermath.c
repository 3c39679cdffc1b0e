/* SPDX-License-Identifier: MIT */
/* Ranks, board and settings are made by hand; no process runs. */
#include "../../agent/aftermath.h"
#include "../../agent/json.h"
#include "../../proto/env.h"
#include "../harness.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>

#define RANKS 4
#define START 5000000000ull
#define MS 1000000ull

struct scene {
    struct job_spec spec;
    struct board board;
    struct rank ranks[RANKS];
    struct group group;
    struct aftermath after;
    struct failure failure;
};

static void set_up(struct scene *s)
{
    static char *argv[] = {"./job", NULL};
    struct board_config config = {.world_size = RANKS, .generation = 1};
    struct err err;
    memset(s, 0, sizeof *s);
    CHECK_INT(spec_init(&s->spec), ==, 0);
    s->spec.argv = argv;
    s->spec.max_restarts = 2;
    CHECK_INT(board_create(&s->board, &config, &err), ==, 0);
    s->group = (struct group){.n = RANKS, .ranks = s->ranks};
    for (uint32_t i = 0; i < RANKS; i++)
        s->ranks[i] = (struct rank){.index = i, .last_pid = 100 + (int)i, .started_ns = START};
    aftermath_init(&s->after, &s->spec, RANKS);
    aftermath_begin(&s->after, &s->failure);
}

static void tear_down(struct scene *s)
{
    aftermath_finish(&s->after);
    board_close(&s->board);
    spec_finish(&s->spec);
}

static void end(struct scene *s, uint32_t rank, uint64_t after_ms, int sig, int code,
                const char *said)
{
    struct rank *r = &s->ranks[rank];
    r->ended = true;
    r->ended_ns = START + after_ms * MS;
    r->signalled = sig != 0;
    r->code = sig ? sig : code;
    r->reason = r->sent ? REASON_STOPPED : sig ? REASON_SIGNAL : code ? REASON_EXIT : REASON_NONE;
    if (said)
        board_put_error(board_slot(&s->board, rank), said);
}

/* The first failure is noticed, and the others are asked to end. */
static void blame(struct scene *s, uint32_t rank)
{
    struct rank *r = &s->ranks[rank];
    aftermath_blame(&s->failure, r, &s->board, r->reason, rank_exit_code(r));
    for (uint32_t i = 0; i < RANKS; i++) {
        if (s->ranks[i].ended)
            continue;
        s->ranks[i].sent |= 1ull << (SIGTERM - 1) | 1ull << (SIGCONT - 1);
        s->after.stopped++;
    }
}

static void settle(struct scene *s)
{
    aftermath_settle(&s->after, &s->failure, &s->group, &s->board, 0);
}

TEST(a_rank_that_was_dying_already_is_named_before_its_victim)
{
    struct scene s;
    set_up(&s);
    end(&s, 2, 1000, 0, 1, "recv: Connection reset by peer");
    blame(&s, 2);
    end(&s, 1, 1150, SIGKILL, 0, NULL); /* of no signal of ours */
    end(&s, 0, 1100, SIGTERM, 0, NULL); /* of ours */
    end(&s, 3, 1160, 0, 143, NULL);     /* in answer to ours */
    settle(&s);
    CHECK_INT(s.failure.rank, ==, 1);
    CHECK_INT(s.failure.reason, ==, REASON_SIGNAL);
    CHECK_INT(s.failure.signal, ==, SIGKILL);
    CHECK_INT(s.failure.exit_code, ==, 137);
    CHECK_HAS(s.failure.what, "was killed by SIGKILL");
    CHECK_STR(s.failure.error, "");
    CHECK_INT(s.after.stopped, ==, 2);
    CHECK_INT(s.after.others_n, ==, 1);
    CHECK_INT(s.after.others[0].rank, ==, 2);
    CHECK_STR(s.after.others[0].what, "exited with code 1");
    CHECK(s.after.others[0].later_s < -0.149 && s.after.others[0].later_s > -0.151);
    tear_down(&s);
}

TEST(a_rank_that_says_it_was_asked_to_end_is_no_culprit)
{
    struct scene s;
    set_up(&s);
    end(&s, 2, 1000, 0, 1, "recv: Connection reset by peer");
    blame(&s, 2);
    end(&s, 1, 1100, 0, 1, "the launcher asks the job to end"); /* worker_verdict() */
    end(&s, 0, 1100, SIGTERM, 0, NULL);
    end(&s, 3, 1100, SIGTERM, 0, NULL);
    settle(&s);
    CHECK_INT(s.failure.rank, ==, 2);
    tear_down(&s);
}

TEST(an_exit_after_our_signal_counts_only_when_it_had_reported_an_error)
{
    for (int reported = 0; reported <= 1; reported++) {
        struct scene s;
        set_up(&s);
        end(&s, 2, 1000, 0, 1, "Broken pipe");
        blame(&s, 2);
        end(&s, 1, 1100, 0, 9, reported ? "no memory for the batch" : NULL);
        end(&s, 0, 1100, SIGTERM, 0, NULL);
        end(&s, 3, 1100, SIGTERM, 0, NULL);
        settle(&s);
        CHECK_INT(s.failure.rank, ==, reported ? 1 : 2);
        CHECK_INT(s.failure.exit_code, ==, reported ? 9 : 1);
        CHECK_INT(s.failure.reason, ==, REASON_EXIT);
        CHECK_INT(s.after.stopped, ==, reported ? 2 : 3);
        tear_down(&s);
    }
}

TEST(a_cause_stays_the_first_whatever_comes_after_it)
{
    struct scene s;
    set_up(&s);
    end(&s, 3, 1000, 0, 7, NULL);
    end(&s, 0, 1001, 0, 1, "Connection reset by peer");
    blame(&s, 3);
    end(&s, 1, 1100, SIGSEGV, 0, NULL);
    end(&s, 2, 1500, SIGSEGV, 0, NULL); /* too late to be told */
    settle(&s);
    CHECK_INT(s.failure.rank, ==, 3);
    CHECK_INT(s.failure.exit_code, ==, 7);
    CHECK_INT(s.after.others_n, ==, 2);
    CHECK_INT(s.after.others[0].rank, ==, 0);
    CHECK_INT(s.after.others[1].rank, ==, 1);
    tear_down(&s);
}

TEST(a_failure_of_no_rank_is_left_as_it_is)
{
    struct scene s;
    set_up(&s);
    settle(&s); /* none at all */
    s.failure = (struct failure){.happened = true, .reason = REASON_RENDEZVOUS, .exit_code = 124};
    end(&s, 1, 100, SIGSEGV, 0, NULL);
    settle(&s);
    CHECK(!s.failure.has_rank);
    CHECK_INT(s.after.others_n, ==, 0);
    struct board gone = {.fd = -1};
    aftermath_settle(&s.after, &s.failure, &s.group, &gone, 0); /* never came into being */
    tear_down(&s);
}

/* One failed attempt that reached `step`; returns whether there is another. */
static bool attempt(struct scene *s, uint64_t step, uint64_t after_ms, uint32_t joined)
{
    aftermath_begin(&s->after, &s->failure);
    s->failure = (struct failure){0};
    end(s, 1, after_ms, 0, 3, NULL);
    aftermath_blame(&s->failure, &s->ranks[1], &s->board, REASON_EXIT, 3);
    board_slot(&s->board, 2)->step = step;
    aftermath_settle(&s->after, &s->failure, &s->group, &s->board, joined);
    bool again = aftermath_decide(&s->after, &s->failure, false);
    if (again)
        aftermath_note_restart(&s->after);
    return again;
}

TEST(progress_beyond_the_best_so_far_refills_the_budget_when_asked)
{
    for (int refill = 0; refill <= 1; refill++) {
        struct scene s;
        set_up(&s);
        s.spec.restart_refill = refill;
        for (uint64_t i = 1; i <= 6; i++)
            CHECK_INT(attempt(&s, 10 * i, 20000, RANKS), ==, refill || i <= 2);
        /* The last refill was followed by one restart; no attempt gets further now. */
        CHECK_INT(attempt(&s, 60, 20000, RANKS), ==, refill);
        CHECK_INT(attempt(&s, 59, 20000, RANKS), ==, false);
        tear_down(&s);
    }
}

TEST(what_the_process_before_it_reported_is_no_word_of_a_rank_that_never_joined)
{
    struct scene s;
    set_up(&s);
    struct board_slot *slot = board_slot(&s.board, 1);
    board_put_error(slot, "boom");
    atomic_store(&slot->generation, 1);
    for (uint32_t generation = 1; generation <= 2; generation++) {
        s.ranks[1].generation = generation; /* the second process is started in 2 */
        end(&s, 1, 100, 0, 3, NULL);
        blame(&s, 1);
        CHECK_STR(s.failure.error, generation == 1 ? "boom" : "");
    }
    tear_down(&s);
}

TEST(steps_of_a_generation_that_is_over_are_progress_too)
{
    struct scene s;
    set_up(&s);
    s.spec.restart_refill = true;
    for (uint64_t i = 1; i <= 6; i++) {
        aftermath_begin(&s.after, &s.failure);
        board_slot(&s.board, 3)->step = 10 * i;
        aftermath_note_steps(&s.after, &s.board);
        board_slot(&s.board, 3)->step = 0; /* counted anew */
        end(&s, 1, 100, 0, 3, NULL);
        blame(&s, 1);
        CHECK(aftermath_heal(&s.after, &s.failure, &s.board, true, true));
        CHECK_INT(s.after.best_step, ==, 10 * i);
    }
    tear_down(&s);
}

TEST(progress_is_a_full_rendezvous_or_without_liblaunch_some_time)
{
    struct scene s;
    set_up(&s);
    s.spec.max_restarts = s.after.policy.max_restarts = 100;
    for (uint32_t joined = 0; joined <= RANKS; joined++)
        for (uint64_t ms = 0; ms <= 20000; ms += 5000) {
            CHECK(attempt(&s, 0, ms, joined));
            bool started = joined == RANKS || (joined == 0 && ms >= 10000);
            CHECK_INT(s.after.verdict.class, ==, started ? RESTART_EXIT : RESTART_STARTUP);
        }
    tear_down(&s);
}

TEST(the_same_failure_is_counted_in_a_row)
{
    struct scene s;
    set_up(&s);
    s.after.policy.max_restarts = 100;
    for (uint32_t i = 1; i <= 5; i++) {
        attempt(&s, 0, 0, 0);
        CHECK_INT(s.after.history.same_in_row, ==, i);
        CHECK_INT(s.after.verdict.after_ms > 0, ==, i > 1);
    }
    s.failure.exit_code = 9;
    attempt(&s, 0, 0, 0);
    CHECK_INT(s.after.history.same_in_row, ==, 1);
    CHECK(!aftermath_decide(&s.after, &s.failure, true));
    tear_down(&s);
}

static size_t read_error(void *user, uint32_t rank, char *bytes, size_t size)
{
    CHECK_INT(rank, ==, 1);
    CHECK(size >= strlen(user));
    memcpy(bytes, user, strlen(user));
    return strlen(user);
}

static size_t slurp(const char *name, char *text, size_t size)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", test_dir(), name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, size - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

TEST(the_report_goes_to_stderr_the_log_directory_and_the_parents_file)
{
    struct scene s;
    char path[512], text[8192];
    set_up(&s);
    end(&s, 1, 1000, 0, 3, NULL);
    blame(&s, 1);
    s.after.logs = test_dir();
    s.after.logs_fd = open(test_dir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    s.after.read_error = read_error;
    s.after.user = "{\"message\": {\"message\": \"ValueError: boom\"}}";
    snprintf(path, sizeof path, "%s/parent.json", test_dir());
    setenv(ENV_ERROR_FILE, path, 1);
    snprintf(path, sizeof path, "%s/stderr", test_dir());
    int err = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    dup2(err, STDERR_FILENO);

    aftermath_report(&s.after, &s.failure, 0, -1, NULL); /* is started again: not the end yet */
    CHECK_INT(slurp("parent.json", text, sizeof text), ==, 0);
    CHECK(slurp("failure.json", text, sizeof text) > 0);
    aftermath_report(&s.after, &s.failure, 1, 3, "no restarts are left");
    CHECK(s.after.reported);
    CHECK(slurp("parent.json", text, sizeof text) > 0);
    CHECK_STR(text, "{\"message\": {\"message\": \"ValueError: boom\", \"errorCode\": 3}}");

    struct json_value root, value;
    size_t n = slurp("failure.json", text, sizeof text);
    CHECK_INT(json_parse(&root, text, n), ==, 0);
    CHECK(json_member(&root, "attempt", &value) && *value.at == '1');
    CHECK(slurp(".failure.json", text, sizeof text) == 0);
    CHECK(slurp("stderr", text, sizeof text) > 0);
    CHECK_HAS(text, "starting all 4 ranks again (restart 1 of 2) in 0 s\n");
    CHECK_HAS(text, "launch: ./job: rank 1 of 4 failed first: it exited with code 3");
    CHECK_HAS(text, "it said: ValueError: boom\n");
    CHECK_HAS(text, "the other 3 ranks still running");
    CHECK_HAS(text, "full logs: ");
    CHECK_HAS(text, "exit code 3; no restarts are left\n");

    s.after.healings = 2;
    aftermath_report(&s.after, &s.failure, 1, 3, "no restarts are left");
    n = slurp("failure.json", text, sizeof text);
    CHECK_INT(json_parse(&root, text, n), ==, 0);
    CHECK(json_member(&root, "healings", &value) && *value.at == '2');
    CHECK(slurp("stderr", text, sizeof text) > 0);
    CHECK_HAS(text, "exit code 3; no restarts are left, after 1 restart and 2 healings\n");
    close(s.after.logs_fd);
    tear_down(&s);
}
