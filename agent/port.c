/* SPDX-License-Identifier: MIT */
#include "port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

static socklen_t parse(union address *a, const char *text, uint16_t port)
{
    *a = (union address){0};
    if (inet_pton(AF_INET6, text, &a->v6.sin6_addr) == 1) {
        a->v6.sin6_family = AF_INET6;
        a->v6.sin6_port = htons(port);
        return sizeof a->v6;
    }
    a->v4.sin_family = AF_INET;
    a->v4.sin_port = htons(port);
    if (inet_pton(AF_INET, text, &a->v4.sin_addr) != 1)
        a->v4.sin_addr.s_addr = htonl(INADDR_ANY); /* a name: no resolver is ever asked */
    return sizeof a->v4;
}

static int refuse(int rc, const char *addr, uint16_t port, struct err *err)
{
    if (rc == -EADDRNOTAVAIL)
        return err_set(err, rc, "--master-addr: %s is no address of this server", addr);
    if (!port)
        return err_set_errno(err, rc, "a master port on %s (--master-addr)", addr);
    if (rc == -EADDRINUSE)
        return err_set(err, rc,
                       "--master-port: another program has port %u of %s; without the option a "
                       "free one is taken",
                       port, addr);
    return err_set_errno(err, rc, "master port %u on %s (--master-port)", port, addr);
}

int port_reserve(const char *addr, uint16_t port, int *ret_fd, uint16_t *ret_port, struct err *err)
{
    union address a;
    socklen_t n = parse(&a, addr, port);
    AUTO_FD fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return err_set_errno(err, -errno, "master port: socket");
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, &a.any, n) < 0 || getsockname(fd, &a.any, &n) < 0)
        return refuse(-errno, addr, port, err);
    *ret_port = ntohs(a.any.sa_family == AF_INET6 ? a.v6.sin6_port : a.v4.sin_port);
    *ret_fd = take_fd(&fd);
    return 0;
}
