/* SPDX-License-Identifier: MIT */
/* A job in the background (--detach): a process that the terminal and the login know nothing of. Knows no job. */
#ifndef LAUNCH_AGENT_DETACH_H
#define LAUNCH_AGENT_DETACH_H

#define DETACH_CONSOLE "console.log" /* in the log directory: stdout and stderr of launch itself */

/* Forks. In the child, which is to run the job: returns -1, with stdin from /dev/null and stdout and stderr in dir (NULL:
 * in /dev/null as well), and *ret_started_fd (owned), which takes a byte once the job has started. In the parent: waits
 * for that byte, prints the run id, and returns the exit code. Call it from a single-threaded process. */
int detach(const char *run_id, const char *dir, int *ret_started_fd);

#endif
