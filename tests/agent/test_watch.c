/* SPDX-License-Identifier: MIT */
/* agent/watch.c: level-triggered news, and an end that is at once. */
#include "../../agent/watch.h"
#include "../harness.h"

#include <pthread.h>
#include <unistd.h>

static uv_loop_t loop;
static struct watch *watch;
static int ends[2];
static unsigned calls;

static void on_readable(void *user)
{
    CHECK(user == &calls);
    calls++;
}

static void stops(void *user)
{
    on_readable(user);
    watch_stop(&watch);
}

static void start(void (*call)(void *user))
{
    uv_loop_init(&loop);
    CHECK_INT(pipe(ends), ==, 0);
    watch = watch_start(&loop, ends[0], call, &calls);
    CHECK(watch != NULL);
}

static void finish(void)
{
    watch_stop(&watch);
    watch_stop(&watch);
    CHECK(!watch);
    close(ends[0]);
    uv_run(&loop, UV_RUN_DEFAULT); /* ends, for nothing keeps it alive */
    CHECK_INT(uv_loop_close(&loop), ==, 0);
}

TEST(it_calls_as_long_as_there_is_something_to_read)
{
    start(on_readable);
    uv_run(&loop, UV_RUN_NOWAIT);
    CHECK_INT(calls, ==, 0);
    CHECK_INT(write(ends[1], "x", 1), ==, 1);
    uv_run(&loop, UV_RUN_ONCE);
    uv_run(&loop, UV_RUN_ONCE);
    CHECK_INT(calls, ==, 2);
    char byte;
    CHECK_INT(read(ends[0], &byte, 1), ==, 1);
    uv_run(&loop, UV_RUN_NOWAIT);
    CHECK_INT(calls, ==, 2);
    finish();
}

TEST(the_end_of_file_is_readable_too)
{
    start(on_readable);
    close(ends[1]);
    uv_run(&loop, UV_RUN_ONCE);
    CHECK_INT(calls, ==, 1);
    finish();
}

TEST(it_may_be_stopped_from_its_own_call)
{
    start(stops);
    CHECK_INT(write(ends[1], "x", 1), ==, 1);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_INT(calls, ==, 1);
    finish();
}

TEST(a_stopped_one_is_not_called_and_its_descriptor_may_be_closed)
{
    start(on_readable);
    CHECK_INT(write(ends[1], "x", 1), ==, 1);
    watch_stop(&watch);
    close(ends[0]);
    ends[0] = -1;
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_INT(calls, ==, 0);
    finish();
}

TEST(a_new_one_takes_over_the_same_descriptor)
{
    start(stops);
    watch_stop(&watch);
    watch = watch_start(&loop, ends[0], stops, &calls);
    CHECK(watch != NULL);
    CHECK_INT(write(ends[1], "x", 1), ==, 1);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_INT(calls, ==, 1);
    finish();
}

TEST(what_can_not_be_watched_is_refused)
{
    uv_loop_init(&loop);
    CHECK(!watch_start(&loop, 999, on_readable, NULL));
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_INT(uv_loop_close(&loop), ==, 0);
}

static struct watch *two[2];

static void stops_both(void *user)
{
    on_readable(user);
    watch_stop(&two[0]);
    watch_stop(&two[1]);
}

TEST(one_that_is_stopped_by_another_s_call_is_not_called_though_it_is_readable_too)
{
    int other[2];
    start(on_readable);
    watch_stop(&watch);
    CHECK_INT(pipe(other), ==, 0);
    two[0] = watch_start(&loop, ends[0], stops_both, &calls);
    two[1] = watch_start(&loop, other[0], stops_both, &calls);
    CHECK_INT(write(ends[1], "x", 1), ==, 1);
    CHECK_INT(write(other[1], "x", 1), ==, 1);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_INT(calls, ==, 1);
    close(other[0]);
    finish();
}

TEST(a_paused_one_is_not_called_not_even_at_the_end_of_file_until_it_goes_on)
{
    start(on_readable);
    watch_pause(watch, true);
    close(ends[1]);
    uv_run(&loop, UV_RUN_NOWAIT);
    uv_run(&loop, UV_RUN_NOWAIT);
    CHECK_INT(calls, ==, 0);
    watch_pause(watch, false);
    uv_run(&loop, UV_RUN_ONCE);
    CHECK_INT(calls, ==, 1);
    finish();
}

TEST(more_are_ready_than_one_look_takes_and_all_get_their_call)
{
    static struct watch *many[200];
    start(on_readable);
    close(ends[1]);
    for (int i = 0; i < 200; i++)
        many[i] = watch_start(&loop, dup(ends[0]), on_readable, &calls);
    for (int i = 0; i < 8; i++)
        uv_run(&loop, UV_RUN_NOWAIT);
    CHECK(calls >= 201);
    for (int i = 0; i < 200; i++)
        watch_stop(&many[i]);
    finish();
}

/* Each with a loop of its own, at once: what they share would be seen by TSan, and often by everybody. */
static void *watches_apart(void *arg)
{
    uv_loop_t mine;
    int pair[2];
    (void)arg;
    uv_loop_init(&mine);
    CHECK_INT(pipe(pair), ==, 0);
    for (int i = 0; i < 500; i++) {
        struct watch *first = watch_start(&mine, pair[0], on_readable, NULL);
        struct watch *second = watch_start(&mine, pair[1], on_readable, NULL);
        CHECK(first && second);
        watch_stop(&first);
        watch_stop(&second);
        uv_run(&mine, UV_RUN_NOWAIT); /* closes the set's handle */
    }
    CHECK_INT(uv_loop_close(&mine), ==, 0);
    return NULL;
}

TEST(loops_of_two_threads_have_nothing_in_common)
{
    pthread_t other;
    CHECK_INT(pthread_create(&other, NULL, watches_apart, NULL), ==, 0);
    watches_apart(NULL);
    CHECK_INT(pthread_join(other, NULL), ==, 0);
}

static void count_handle(uv_handle_t *handle, void *n)
{
    (void)handle;
    ++*(unsigned *)n;
}

TEST(all_watches_of_a_loop_share_one_handle)
{
    unsigned handles = 0;
    start(on_readable);
    two[0] = watch_start(&loop, ends[1], on_readable, &calls);
    uv_walk(&loop, count_handle, &handles);
    CHECK_INT(handles, ==, 1);
    watch_stop(&two[0]);
    finish();
}
