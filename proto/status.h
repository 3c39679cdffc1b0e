/* SPDX-License-Identifier: MIT */
/* The lists both sides of the process boundary agree on: worker stages, why a worker failed, exit
 * codes of the launcher. One row an entry: number, name, sentence. A number is never reused. */
#ifndef LAUNCH_PROTO_STATUS_H
#define LAUNCH_PROTO_STATUS_H

/* How far a worker has come; written by the worker into its slot. It goes back from COMM_INIT to
 * RUNNING, else it only grows within a generation. STAGE_NONE also stands for every program that
 * never heard of liblaunch. */
#define STAGE_LIST(X)                                                                              \
    X(0, NONE, "has not called launch_join()")                                                     \
    X(1, JOINED, "joined, waits for the others")                                                   \
    X(2, RUNNING, "runs")                                                                          \
    X(3, COMM_INIT, "sets up its device communicator")                                             \
    X(4, LEFT, "left")                                                                             \
    X(5, FAILED, "reported an error")

/* Why a worker is counted as failed; decided by the agent. */
#define REASON_LIST(X)                                                                             \
    X(0, NONE, "did not fail")                                                                     \
    X(1, EXIT, "exited with a code other than 0")                                                  \
    X(2, SIGNAL, "was killed by a signal")                                                         \
    X(3, SPAWN, "could not be started")                                                            \
    X(4, RENDEZVOUS, "never came to the rendezvous")                                               \
    X(5, STOPPED, "was stopped by the launcher")                                                   \
    X(6, HANG, "gave no sign of life")                                                             \
    X(7, TIMEOUT, "had not ended when the job's time was over")

/* Exit codes that the launcher gives itself; all others are the first failing worker's own. */
#define EXIT_CODE_LIST(X)                                                                          \
    X(0, OK, "every worker ended with 0")                                                          \
    X(2, USAGE, "wrong option, variable or value; nothing was started")                            \
    X(75, BUSY, "others have the GPUs that --gpus asks for; nothing was started")                  \
    X(123, HANG, "a rank showed no sign of life (--hang-timeout)")                                 \
    X(124, DEADLINE, "a deadline passed (--timeout, --rendezvous-timeout)")                        \
    X(125, OURS,                                                                                   \
      "launch itself failed, or a rank ended with 0 while others wait for it or because of a "     \
      "stop that launch never gave")                                                               \
    X(126, NOT_EXECUTABLE, "the program can't be executed")                                        \
    X(127, NOT_FOUND, "the program was not found")

#define STATUS_ENUM_STAGE(n, name, text) STAGE_##name = n,
#define STATUS_ENUM_REASON(n, name, text) REASON_##name = n,
#define STATUS_ENUM_EXIT(n, name, text) EXIT_CODE_##name = n,

enum stage { STAGE_LIST(STATUS_ENUM_STAGE) STAGES_N };
enum reason { REASON_LIST(STATUS_ENUM_REASON) REASONS_N };
enum exit_code { EXIT_CODE_LIST(STATUS_ENUM_EXIT) };

/* Name (as in the list: "RUNNING") and sentence of an entry; "?" for a number that is not in the list. */
const char *stage_name(unsigned stage);
const char *stage_text(unsigned stage);
const char *reason_name(unsigned reason);
const char *reason_text(unsigned reason);

#endif
