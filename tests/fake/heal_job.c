/* SPDX-License-Identifier: MIT */
/* A worker that survives the loss of ranks, in which some do what the arguments say:
 *
 *     heal_job STEPS [RANK=WHAT@STEP/GENERATION]...
 *
 * WHAT: kill (SIGKILL to itself), exit3, exit93, quit (ends with 0), stop (SIGSTOP), pause (never returns), hold (until there is a
 * file "go"); at that step of that generation; at step 0 that is at the start of a process, before it has joined in that generation, and at step "again"
 * when a survivor gets LAUNCH_AGAIN in it, at step "done" when it has made all steps: leave@done calls launch_leave() and ends with 0, leave3@done with 3,
 * once there is a file "over", wait@done waits for a word of launch_check(). With STEPS 0 it goes on until it is stopped. deaf as RANK: never calls launch_meet(); catch: calls
 * launch_catch_stop().
 *
 * With GPUs the sums are NCCL's, and a copy of the state's ballast in device memory is kept as well. HEAL_WAIT=sync: it sleeps
 * in cudaStreamSynchronize() instead of launch_nccl_wait(); group: the sum is a group of one. HEAL_AT=inside: SIGKILL comes
 * between launch_nccl_call() and the wait.
 *
 * Every sum is checked; a wrong one ends the rank with 9. Each process writes its pid to pid.RANK after its first step, and at the end prints a line. */
#include "../../worker/launch_nccl.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AGAIN (-1)
#define DONE (-2)

struct state {
    uint64_t step;
    int64_t total;
    int64_t ballast[100000]; /* several chunks of the board */
};

static struct state state;
static int64_t *device_ballast, *device_sum; /* NULL: no GPU */
static int argc_;
static char **argv_;

static struct launch *me_;

static void await(const char *file)
{
    while (access(file, F_OK) < 0)
        usleep(1000);
}

static void act(const char *what)
{
    if (strncmp(what, "wait", 4) == 0)
        while (launch_check(me_) == LAUNCH_OK)
            usleep(1000);
    if (strncmp(what, "leave", 5) == 0) {
        launch_leave(me_);
        await("over");
        _exit(what[5] == '3' ? 3 : 0);
    }
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
    if (strncmp(what, "hold", 4) == 0)
        await("go");
}

static long step_of(const char *text)
{
    return strncmp(text, "again", 5) == 0  ? AGAIN
           : strncmp(text, "done", 4) == 0 ? DONE
                                           : strtol(text, NULL, 10);
}

/* Returns whether there was something to do. */
static int obey(int rank, long step, unsigned generation)
{
    int n = 0;
    for (int i = 2; i < argc_; i++) {
        char *what = strchr(argv_[i], '='), *at = strchr(argv_[i], '@'),
             *in = strchr(argv_[i], '/');
        if (!what || !at || !in || strtol(argv_[i], NULL, 10) != rank ||
            strtoul(in + 1, NULL, 10) != generation)
            continue;
        if (step == step_of(at + 1)) {
            act(what + 1);
            n++;
        }
    }
    return n;
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

static int is(const char *variable, const char *value)
{
    const char *text = getenv(variable);
    return text && strcmp(text, value) == 0;
}

static int check_cuda(struct launch *l, cudaError_t e)
{
    return e == cudaSuccess ? LAUNCH_OK
                            : launch_fail(l, LAUNCH_FAILED, "CUDA: %s", cudaGetErrorString(e));
}

static int keep(struct launch *l)
{
    int r = launch_keep(l, &state, sizeof state);
    if (r != LAUNCH_OK || launch_device(l) < 0)
        return r;
    r = check_cuda(l, cudaSetDevice(launch_device(l)));
    if (r == LAUNCH_OK)
        r = check_cuda(l, cudaMalloc((void **)&device_ballast, sizeof state.ballast));
    if (r == LAUNCH_OK)
        r = check_cuda(l, cudaMalloc((void **)&device_sum, sizeof *device_sum));
    if (r == LAUNCH_OK)
        r = check_cuda(l, cudaMemset(device_ballast, 0, sizeof state.ballast));
    return r == LAUNCH_OK ? launch_nccl_keep(l, device_ballast, sizeof state.ballast) : r;
}

static int wait_for_device(struct launch *l, cudaStream_t stream)
{
    if (!is("HEAL_WAIT", "sync"))
        return launch_nccl_wait(l);
    int r = check_cuda(l, cudaStreamSynchronize(stream));
    return r == LAUNCH_OK ? launch_check(l) : r;
}

static int device_reduce(struct launch *l, ncclComm_t comm, cudaStream_t stream)
{
    if (!is("HEAL_WAIT", "group"))
        return launch_nccl_call(
            l, ncclAllReduce(device_sum, device_sum, 1, ncclInt64, ncclSum, comm, stream));
    int r = launch_nccl_enter(l);
    if (r != LAUNCH_OK)
        return r;
    ncclGroupStart();
    ncclAllReduce(device_sum, device_sum, 1, ncclInt64, ncclSum, comm, stream);
    return launch_nccl_leave(l, ncclGroupEnd());
}

static int sum_on_device(struct launch *l, const int64_t *mine, int64_t *sum)
{
    ncclComm_t comm;
    cudaStream_t stream;
    int r = launch_nccl_comm(l, &comm, &stream);
    if (r == LAUNCH_OK)
        r = check_cuda(l, cudaMemcpy(device_sum, mine, sizeof *mine, cudaMemcpyHostToDevice));
    if (r == LAUNCH_OK)
        r = device_reduce(l, comm, stream);
    if (r == LAUNCH_OK && is("HEAL_AT", "inside"))
        obey(launch_rank(l), (long)state.step + 1, launch_generation(l));
    if (r == LAUNCH_OK)
        r = wait_for_device(l, stream);
    if (r == LAUNCH_OK)
        r = check_cuda(l, cudaMemcpy(sum, device_sum, sizeof *sum, cudaMemcpyDeviceToHost));
    return r;
}

static int one_step(struct launch *l, int64_t *sum_of_all)
{
    int64_t step = (int64_t)state.step + 1, n = launch_world_size(l);
    int64_t mine = step * (launch_rank(l) + 1), sum = 0;
    int r = device_sum ? sum_on_device(l, &mine, &sum)
                       : launch_all_reduce(l, &mine, &sum, 1, LAUNCH_INT64, LAUNCH_SUM);
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
        if (!is("HEAL_AT", "inside"))
            obey(launch_rank(l), (long)state.step + 1, launch_generation(l));
        int r = one_step(l, &sum);
        if (r != LAUNCH_OK)
            return r;
        int64_t *ballast = &state.ballast[++state.step % 100000];
        state.total += sum;
        *ballast += sum;
        if (device_ballast)
            r = check_cuda(l, cudaMemcpy(device_ballast + state.step % 100000, ballast,
                                         sizeof *ballast, cudaMemcpyHostToDevice));
        if (r == LAUNCH_OK)
            r = launch_commit(l, state.step);
        if (r != LAUNCH_OK)
            return r;
        put_pid(launch_rank(l));
    }
    return LAUNCH_OK;
}

static void check_state(struct launch *l)
{
    static int64_t copy[100000];
    const int64_t *ballast = state.ballast;
    int64_t all = 0;
    if (device_ballast &&
        cudaMemcpy(copy, device_ballast, sizeof copy, cudaMemcpyDeviceToHost) == cudaSuccess)
        ballast = copy;
    for (size_t i = 0; i < 100000; i++)
        all += ballast[i];
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
    me_ = l;
    int me = launch_rank(l), deaf = argc > 2 && strcmp(argv[2], "deaf") == 0;
    if (argc > 2 && strcmp(argv[2], "catch") == 0)
        launch_catch_stop(l);
    int r = keep(l);
    while (r == LAUNCH_OK) {
        unsigned before = launch_generation(l);
        r = deaf ? LAUNCH_OK : launch_meet(l);
        if (r == LAUNCH_OK)
            check_state(l);
        if (r == LAUNCH_OK)
            r = run(l, strtoull(argv[1], NULL, 10));
        if (r == LAUNCH_OK && obey(me, DONE, launch_generation(l)))
            r = launch_check(l);
        if (r != LAUNCH_AGAIN || deaf)
            break;
        obey(me, AGAIN, before);
        r = LAUNCH_OK;
    }
    if (r == LAUNCH_OK)
        printf("rank %d of %d: step %llu total %lld generation %u root %d\n", launch_rank(l),
               launch_world_size(l), (unsigned long long)state.step, (long long)state.total,
               launch_generation(l), launch_state_root(l));
    else
        fprintf(stderr, "rank %d: %d %s\n", me, r, launch_error(l));
    launch_leave(l);
    return r == LAUNCH_OK || r == LAUNCH_STOP ? 0 : 1;
}
