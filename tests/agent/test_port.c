/* SPDX-License-Identifier: MIT */
#include "../../agent/port.h"
#include "../harness.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

static int listen_on(const char *addr, uint16_t port, bool reuse)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    inet_pton(AF_INET, addr, &a.sin_addr);
    if (reuse)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&a, sizeof a) < 0 || listen(fd, 5) < 0) {
        close(fd);
        return -errno;
    }
    return fd;
}

TEST(a_reserved_port_can_be_listened_on_by_rank_0_and_by_nobody_unaware)
{
    AUTO_FD fd = -1;
    uint16_t port = 0;
    CHECK_INT(port_reserve("127.0.0.1", 0, &fd, &port, NULL), ==, 0);
    CHECK(port != 0);
    CHECK_INT(listen_on("127.0.0.1", port, false), ==, -EADDRINUSE);
    int any = listen_on("0.0.0.0", port, true);
    CHECK_INT(any, >=, 0);
    close(any);
    int loopback = listen_on("127.0.0.1", port, true);
    CHECK_INT(loopback, >=, 0);
}

TEST(reservations_never_meet)
{
    enum { N = 200 };
    int fd[N];
    uint16_t port[N];
    for (int i = 0; i < N; i++) {
        CHECK_INT(port_reserve("127.0.0.1", 0, &fd[i], &port[i], NULL), ==, 0);
        for (int k = 0; k < i; k++)
            CHECK(port[k] != port[i]);
    }
}

TEST(a_port_in_use_is_refused_by_name)
{
    AUTO_FD held = -1;
    AUTO_FD fd = -1;
    uint16_t port = 0, again;
    struct err err;
    CHECK_INT(port_reserve("127.0.0.1", 0, &held, &port, NULL), ==, 0);
    int server = listen_on("127.0.0.1", port, true);
    CHECK_INT(server, >=, 0);
    CHECK_INT(port_reserve("127.0.0.1", port, &fd, &again, &err), ==, -EADDRINUSE);
    char number[8];
    snprintf(number, sizeof number, "%u", port);
    CHECK_HAS(err.text, "--master-port: another program has port ");
    CHECK_HAS(err.text, number);
    CHECK_INT(fd, ==, -1);
}

TEST(an_address_of_another_server_is_refused_by_its_option)
{
    uint16_t got;
    int fd = -1;
    struct err err;
    CHECK_INT(port_reserve("192.0.2.1", 0, &fd, &got, &err), ==, -EADDRNOTAVAIL);
    CHECK_STR(err.text, "--master-addr: 192.0.2.1 is no address of this server");
    CHECK_INT(fd, ==, -1);
}

TEST(names_are_never_resolved)
{
    AUTO_FD fd = -1;
    uint16_t port = 0;
    CHECK_INT(port_reserve("no-such-host.invalid", 0, &fd, &port, NULL), ==, 0);
    CHECK(port != 0);
}
