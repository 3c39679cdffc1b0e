/* SPDX-License-Identifier: MIT */
/* MASTER_PORT: a TCP port that stays ours from now until rank 0 listens on it. A bound, not listening
 * socket with SO_REUSEADDR does that: nobody else gets the port from the kernel, while rank 0's own
 * bind (which sets SO_REUSEADDR too, as every store does) succeeds beside it. */
#ifndef LAUNCH_AGENT_PORT_H
#define LAUNCH_AGENT_PORT_H

#include "../proto/err.h"

#include <stdint.h>

/* addr: numeric IPv4 or IPv6 address, or a name (then every local address is bound). port: 0 for any free one.
 * Returns 0 with the socket in *ret_fd (owned by the caller, close-on-exec; keep it open for as
 * long as the attempt lives) and the number in *ret_port.
 * Errors: -EADDRINUSE, -EADDRNOTAVAIL, ... with a text that names address and port. */
MUST_CHECK int port_reserve(const char *addr, uint16_t port, int *ret_fd, uint16_t *ret_port,
                            struct err *err);

#endif
