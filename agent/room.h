/* SPDX-License-Identifier: MIT */
/* Room on the stack: with a small `ulimit -s` we run on memory of our own, and so do our threads. What we start has the
 * limit that we were given. */
#ifndef LAUNCH_AGENT_ROOM_H
#define LAUNCH_AGENT_ROOM_H

/* Exits with what entry returns. */
_Noreturn void room_run(int (*entry)(int argc, char **argv), int argc, char **argv);

#endif
