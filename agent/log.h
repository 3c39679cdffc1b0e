/* SPDX-License-Identifier: MIT */
/* The only code that writes to stderr. One call, one line, one write: lines of ours are never torn.
 * What the line says is the caller's; how it looks is decided here. */
#ifndef LAUNCH_AGENT_LOG_H
#define LAUNCH_AGENT_LOG_H

#include "../proto/base.h"

#include <stdbool.h>

/* Something failed, and it matters. "launch: text". */
void log_error(const char *format, ...) PRINTF_LIKE(1, 2);

/* Something is not as asked, and the job goes on. "launch: warning: text". */
void log_warn(const char *format, ...) PRINTF_LIKE(1, 2);

/* Something the user will want to know. "launch: text". */
void log_info(const char *format, ...) PRINTF_LIKE(1, 2);

/* What happens inside; shown with LAUNCH_LOG=debug only. "launch: [seconds since start] text". */
void log_debug(const char *format, ...) PRINTF_LIKE(1, 2);

/* stderr is a terminal and its user has nothing against colours (NO_COLOR). */
bool log_has_colour(void);

/* The same of another descriptor. */
bool log_wants_colour(int fd);

/* From now on called before anything is written: ends a line that others have begun on stderr. NULL: nobody has. */
void log_call_before(void (*end_line)(void *user), void *user);

/* Several finished lines (a failure report) in one write, as they are. */
void log_block(const char *text, size_t n);

#endif
