/* SPDX-License-Identifier: MIT */
/* A worker that survives the loss of ranks, in which some do what the arguments say:
 *
 *     heal_job STEPS [RANK=WHAT@STEP/GENERATION]...
 *
 * WHAT: kill (SIGKILL to itself), exit3, exit93, quit (ends with 0), stop (SIGSTOP), pause (never returns); at that step of that
 * generation; at step 0 that is at the start of a process, before it has joined in that generation, and at step "again"
 * when a survivor gets LAUNCH_AGAIN in it. With STEPS 0 it goes on until it is stopped. deaf as RANK: never calls launch_meet().
 *
 * Every sum is checked; a wrong one ends the rank with 9. Each process writes its pid to pid.RANK after its first step, and at the end prints a line. */
#include "../../worker/launch.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AGAIN (-1)

struct state {
    uint64_t step;
    int64_t total;
    int64_t ballast[100000]; /* several chunks of the board */
};

static struct state state;
static int argc_;
static char **argv_;

static void act(const char *what)
{
    if (strncmp(what, "kill", 4) == 0)
        raise(SIGKILL);
    if (strncmp(what, "exit3", 5) == 0)
        _exit(3);
    if (strncmp(what, "exit93", 6) == 0)
        _exit(93);
    if (strncmp(what, "quit", 4) == 0)
        _exit(0);
    if (strncmp(what, "stop", 4) == 0)
        raise(SIGSTOP);
    if (strncmp(what, "pause", 5) == 0)
        for (;;)
            pause();
}

static void obey(int rank, long step, unsigned generation)
{
    for (int i = 2; i < argc_; i++) {
        char *what = strchr(argv_[i], '='), *at = strchr(argv_[i], '@'),
             *in = strchr(argv_[i], '/');
        if (!what || !at || !in || strtol(argv_[i], NULL, 10) != rank ||
            strtoul(in + 1, NULL, 10) != generation)
            continue;
        if (strncmp(at + 1, "again", 5) == 0 ? step == AGAIN : step == strtol(at + 1, NULL, 10))
            act(what + 1);
    }
}

/* Once; it says that the process has made a step. */
static void put_pid(int rank)
{
    static int is_there;
    if (is_there++)
        return;
    char name[32], temporary[32];
    snprintf(name, sizeof name, "pid.%d", rank);
    snprintf(temporary, sizeof temporary, ".pid.%d", (int)getpid());
    FILE *f = fopen(temporary, "w");
    if (!f)
        return;
    fprintf(f, "%d\n", (int)getpid());
    fclose(f);
    rename(temporary, name);
}

/* What the sum of one step must be. */
static int64_t expected(int64_t step, int64_t n)
{
    return step * n * (n + 1) / 2;
}

static int one_step(struct launch *l, int64_t *sum_of_all)
{
    int64_t step = (int64_t)state.step + 1, n = launch_world_size(l);
    int64_t mine = step * (launch_rank(l) + 1), sum = 0;
    int r = launch_all_reduce(l, &mine, &sum, 1, LAUNCH_INT64, LAUNCH_SUM);
    if (r != LAUNCH_OK)
        return r;
    if (sum != expected(step, n)) {
        fprintf(stderr, "rank %d: step %d: sum %lld\n", launch_rank(l), (int)step, (long long)sum);
        _exit(9);
    }
    *sum_of_all = sum;
    return LAUNCH_OK;
}

static int run(struct launch *l, uint64_t steps)
{
    while (steps == 0 || state.step < steps) {
        int64_t sum;
        obey(launch_rank(l), (long)state.step + 1, launch_generation(l));
        int r = one_step(l, &sum);
        if (r != LAUNCH_OK)
            return r;
        state.step++;
        state.total += sum;
        state.ballast[state.step % 100000] += sum;
        r = launch_commit(l, state.step);
        if (r != LAUNCH_OK)
            return r;
        put_pid(launch_rank(l));
    }
    return LAUNCH_OK;
}

static void check_state(struct launch *l)
{
    int64_t all = 0;
    for (size_t i = 0; i < 100000; i++)
        all += state.ballast[i];
    if (all == state.total)
        return;
    fprintf(stderr, "rank %d: state torn at step %d\n", launch_rank(l), (int)state.step);
    _exit(9);
}

int main(int argc, char **argv)
{
    struct launch *l;
    const char *rank = getenv("RANK"), *generation = getenv("LAUNCH_GENERATION");
    argc_ = argc;
    argv_ = argv;
    if (rank && generation)
        obey((int)strtol(rank, NULL, 10), 0, (unsigned)strtoul(generation, NULL, 10));
    if (launch_join(&l, 0) != LAUNCH_OK) {
        fprintf(stderr, "%s\n", launch_error(NULL));
        return 1;
    }
    int me = launch_rank(l), deaf = argc > 2 && strcmp(argv[2], "deaf") == 0, r;
    launch_keep(l, &state, sizeof state);
    do {
        unsigned before = launch_generation(l);
        r = deaf ? LAUNCH_OK : launch_meet(l);
        if (r == LAUNCH_OK)
            check_state(l);
        if (r == LAUNCH_OK)
            r = run(l, strtoull(argv[1], NULL, 10));
        if (r == LAUNCH_AGAIN)
            obey(me, AGAIN, before);
    } while (r == LAUNCH_AGAIN && !deaf);
    if (r == LAUNCH_OK)
        printf("rank %d of %d: step %llu total %lld generation %u root %d\n", launch_rank(l),
               launch_world_size(l), (unsigned long long)state.step, (long long)state.total,
               launch_generation(l), launch_state_root(l));
    else
        fprintf(stderr, "rank %d: %d %s\n", me, r, launch_error(l));
    launch_leave(l);
    return r == LAUNCH_OK || r == LAUNCH_STOP ? 0 : 1;
}
