/* SPDX-License-Identifier: MIT */
/* How much a pipe holds. Knows nothing of who writes or reads it. */
#ifndef LAUNCH_AGENT_PIPE_H
#define LAUNCH_AGENT_PIPE_H

#define PIPE_USUAL_BYTES (64u * 1024u)
#define PIPE_WIDE_BYTES (256u * 1024u)

/* Widens a pipe of the usual size: a writer that fills it and its reader then take fewer turns for the same bytes. For
 * busy pipes only, because all pipes of a user count against one limit of the kernel. Anything else, a pipe that
 * somebody made smaller on purpose too, stays as it is; so does a pipe when the kernel refuses. */
void pipe_widen(int fd);

#endif
