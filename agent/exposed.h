/* SPDX-License-Identifier: MIT */
/* Directories in which every user may put something of his own in the place of ours. */
#ifndef LAUNCH_AGENT_EXPOSED_H
#define LAUNCH_AGENT_EXPOSED_H

/* As root, warns if others may rename and remove what is in that directory: it can be written by all and has no sticky bit, which
 * /tmp has. dir_fd and path as for fstatat(); what: "the working directory"; risk: what may come of it. Nobody else is warned: his own
 * files are his own business. */
void exposed_warn(int dir_fd, const char *path, const char *what, const char *risk);

#endif
