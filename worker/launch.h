/* SPDX-License-Identifier: MIT */
/* liblaunch: what a worker of `launch` can do. C99, no other header of ours, no dependency.
 *
 * A job is a program with
 *     int launch_main(struct launch *l, int argc, char **argv);
 * linked with -llaunch (which brings main()), or the same in a shared object (`launch ./job.so`), or any
 * program that calls launch_join() itself. Started without `launch`, a job is rank 0 of 1.
 *
 * Threads: one thread at a time may use a struct launch, except where a function says "any thread".
 *
 * Results: every function that can fail returns an enum launch_result. LAUNCH_AGAIN and LAUNCH_STOP mean that
 * the group has changed or shall end: leave the step, do not retry the call. launch_error() has the text. */
#ifndef LAUNCH_H
#define LAUNCH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LAUNCH_VERSION "0.1.0"

#if defined(__GNUC__)
#define LAUNCH_API __attribute__((visibility("default")))
#define LAUNCH_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#else
#define LAUNCH_API
#define LAUNCH_PRINTF(fmt, first)
#endif

struct launch; /* one membership in a group of workers */

enum launch_result {
    LAUNCH_OK = 0,
    LAUNCH_AGAIN =
        -1, /* a new generation began: give everything of the old one back and meet again */
    LAUNCH_STOP = -2,    /* the launcher asks the job to end: save and return */
    LAUNCH_TIMEOUT = -3, /* a deadline passed; launch_error() names the ranks that were missing */
    LAUNCH_INVALID = -4, /* a wrong call: bad argument, ranks that disagree, joined twice, forked */
    LAUNCH_FAILED = -5   /* the system, CUDA or NCCL failed */
};

/* A child that a member forks is no rank, and shares nothing with the ranks any more: what it calls of a struct launch that it
 * has a copy of returns LAUNCH_INVALID (or LAUNCH_STOP, when the job shall end), launch_generation() 0, and nothing that it
 * calls is seen by others. launch_rank() and the like go on answering, launch_leave() frees the copy. So data loaders and the
 * like call what this header has in the parent only, or exec() a program, which may be `launch` again. A child of the bare
 * clone() system call, and not of fork(), is not told apart. */

/* Exit code by which a job says that starting it again would not help (see --no-restart-on). */
#define LAUNCH_EXIT_FINAL 93

enum launch_type { LAUNCH_INT32, LAUNCH_INT64, LAUNCH_FLOAT, LAUNCH_DOUBLE };
enum launch_op { LAUNCH_SUM, LAUNCH_MIN, LAUNCH_MAX, LAUNCH_PROD };

/* The job's entry point, for programs that leave main() to liblaunch. The return value is the exit code
 * (0..255): LAUNCH_OK and LAUNCH_STOP become 0, any other negative result becomes 1, with launch_error() on
 * stderr and in the launcher's failure report. When it returns LAUNCH_AGAIN because a rank was lost, it is called again in
 * the same process (see launch_meet()), also if the job was asked to end meanwhile. Its locals are other ones then: what is
 * kept (launch_keep()) is static, or allocated once. */
int launch_main(struct launch *l, int argc, char **argv);

/* Becomes a member of the group and returns when all ranks have come, or when --rendezvous-timeout has passed.
 * Call it from the main thread, once: the launcher's early notice of a death is tied to that thread. A member that
 * ends with 0 by _exit() or in a crash that its parent hides, and has not left, is a failure of the job; exit() leaves.
 * flags: 0.
 * In a standby (--standby) it returns when the process has become a rank; RANK, LOCAL_RANK and ROLE_RANK are set then.
 * *ret: the membership, to be given to launch_leave(); NULL on failure, and then the text is in launch_error(NULL).
 * LAUNCH_TIMEOUT: some ranks never came. LAUNCH_INVALID: this process, or another one, has already
 * joined as this rank. LAUNCH_STOP. LAUNCH_FAILED: no shared memory. */
LAUNCH_API int launch_join(struct launch **ret, unsigned flags);

/* For jobs that look at launch_check() or launch_step() often: when the job is asked to end (SIGTERM and
 * the like to the launcher, or --timeout), this rank gets no signal but LAUNCH_STOP, saves and returns; SIGKILL
 * follows after --shutdown-timeout. Processes that it has started get the signal. When another rank fails, this one is
 * ended by SIGTERM as ever, but may see LAUNCH_STOP a moment before: save to a new file and rename it.
 *
 *     launch_catch_stop(l);
 *     for (uint64_t step = first; r == LAUNCH_OK && step < last; step++) {
 *         r = launch_step(l, step);
 *         if (r == LAUNCH_OK)
 *             r = one_step(l);    its collectives return LAUNCH_STOP as well
 *     }
 *     if (r == LAUNCH_STOP)
 *         save();                 what the last whole step left
 *     return r;                   from launch_main(): exit code 0 */
LAUNCH_API void launch_catch_stop(struct launch *l);

/* Leaves the group; frees l and everything asked of it (communicator, stream): with a communicator it waits for the other
 * ranks to leave, too, 5 s at most. NULL is fine.
 * Other ranks may still be running; a collective of theirs that needs this one fails with LAUNCH_FAILED. */
LAUNCH_API void launch_leave(struct launch *l);

LAUNCH_API int launch_rank(const struct launch *l);
LAUNCH_API int launch_world_size(const struct launch *l);
/* The true one, also when LOCAL_RANK is 0 for all. A smaller world (--on-failure=shrink) does not change it. */
LAUNCH_API int launch_local_rank(const struct launch *l);
LAUNCH_API int launch_local_world_size(const struct launch *l);
LAUNCH_API unsigned launch_generation(const struct launch *l); /* 1 at first; any thread */
LAUNCH_API unsigned
launch_restart_count(const struct launch *l); /* of the whole job, equal on all ranks */

/* Ordinal for cudaSetDevice() or hipSetDevice(); -1: this job has no GPUs, work on the host. */
LAUNCH_API int launch_device(const struct launch *l);

/* Collectives over host memory, through shared memory. All ranks must make the same calls in the same order
 * with the same sizes, else LAUNCH_INVALID on at least one of them, naming a rank that differs. A collective belongs to
 * one generation: LAUNCH_AGAIN when another began, LAUNCH_STOP when the job shall end, LAUNCH_FAILED when a rank has
 * left; the output is then undefined. all_reduce may work in place (in == out), all_gather with
 * in == out + rank * bytes_each; other overlaps are not allowed. Results are bitwise equal on all ranks (ranks are
 * combined in order). A collective has no deadline of its own: --hang-timeout finds the rank that does not come. */
LAUNCH_API int launch_barrier(struct launch *l);
LAUNCH_API int launch_broadcast(struct launch *l, void *data, size_t bytes, int root);
/* in: bytes_each bytes; out: world size * bytes_each, in order of rank. In place: in == out + rank * bytes_each. */
LAUNCH_API int launch_all_gather(struct launch *l, const void *in, void *out, size_t bytes_each);
LAUNCH_API int launch_all_reduce(struct launch *l, const void *in, void *out, size_t count,
                                 enum launch_type type, enum launch_op op);

/* Tells the launcher that this rank has reached `step` (any number that grows): a store, no system call. It is a
 * sign of life (--hang-timeout), shows who is behind, and counts as progress (--restart-refill). Returns what launch_check() returns, so that it can head the loop. */
LAUNCH_API int launch_step(struct launch *l, uint64_t step);

/* LAUNCH_OK, LAUNCH_AGAIN or LAUNCH_STOP: may this generation go on? A load, no system call. Any thread. */
LAUNCH_API int launch_check(const struct launch *l);

/* ---- Healing (--on-failure=heal): a lost rank gets a new process, the others keep theirs ----
 *
 * Every waiting call of a survivor returns LAUNCH_AGAIN; it calls launch_meet(), and so does the new process, and all go on
 * with the state of a survivor:
 *
 *     launch_keep(l, &state, sizeof state);         what a new process needs
 *     do {
 *         r = launch_meet(l);                       now all have the same state
 *         while (r == LAUNCH_OK && state.step < last)
 *             r = one_step(l, &state);              ends with: change state, launch_commit(l, state.step)
 *     } while (r == LAUNCH_AGAIN);                  a rank was lost
 *
 * Collectives of the old generation never mix with those of the new one. Calling launch_meet() is the job's consent: a
 * job that never does is started again as a whole. */

/* What is kept: memory of the job's own that is the same on all ranks after a commit. All ranks name the same pieces in
 * the same order, before launch_meet(). Naming a piece again changes nothing but its size. It stays the job's, and must stay
 * where it is until launch_leave(): there is no way to take it back. LAUNCH_INVALID: data is NULL; LAUNCH_FAILED: no memory. */
LAUNCH_API int launch_keep(struct launch *l, void *data, size_t bytes);

/* What is kept is whole again, and is state number n (any that grows, from 0 on, the same on all ranks). Between the last
 * collective of a step and this call the kept memory is changed, and nowhere else: so a step that is cut short
 * changes nothing. A store; as launch_step(l, n) otherwise. */
LAUNCH_API int launch_commit(struct launch *l, uint64_t n);

/* Meets all ranks of the present generation: gives everything of an old one back (the communicator, too), waits for the
 * others, and copies what is kept from launch_state_root() to ranks that are new or a commit behind. The first call, in the
 * first generation, copies nothing. Ranks and the world's size may have changed afterwards.
 * LAUNCH_OK, LAUNCH_STOP, never LAUNCH_AGAIN; LAUNCH_INVALID: ranks keep different things; LAUNCH_TIMEOUT: as launch_join();
 * LAUNCH_FAILED: the board makes no sense, or no memory, CUDA or NCCL, of which launch_error() tells. */
LAUNCH_API int launch_meet(struct launch *l);

/* The rank whose state the others took in this generation: the newest commit, the lowest such rank. -1: nobody had
 * any, as in the first one. For jobs that copy by themselves after launch_meet(). */
LAUNCH_API int launch_state_root(const struct launch *l);

/* 1 if that rank's process is new in this generation. */
LAUNCH_API int launch_is_fresh(const struct launch *l, int rank);

/* Records a failure of the job's own: its text is what launch_error() gives from now on, and what the launcher's failure
 * report shows for this rank. One line, printf-like. Returns result, so that
 * "return launch_fail(l, LAUNCH_FAILED, ...)" is the idiom. */
LAUNCH_API int launch_fail(struct launch *l, enum launch_result result, const char *format, ...)
    LAUNCH_PRINTF(3, 4);

/* Text of the last failure on this membership (l NULL: of launch_join), one line; "" if there was none.
 * Valid until the next call on l. */
LAUNCH_API const char *launch_error(const struct launch *l);

#ifdef __cplusplus
}
#endif

#endif
