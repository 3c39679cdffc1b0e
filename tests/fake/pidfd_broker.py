#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""pidfd_broker.py SOCKET: opens and uses pidfds for processes under valgrind, see pidfd.c. Ends with its standard input."""
import os, signal, socket, struct, sys, threading


def serve(client):
    fds, error = [], 0
    with client:
        try:
            message, fds, _, _ = socket.recv_fds(client, 8, 1)
            pid, sig = struct.unpack("ii", message)
            if fds:
                signal.pidfd_send_signal(fds[0], sig)
            else:
                fds = [os.pidfd_open(pid)]
        except OSError as problem:
            error = problem.errno
        socket.send_fds(client, [struct.pack("ii", error, 0)], fds[:1] if not error and pid >= 0 else [])
    for fd in fds:
        os.close(fd)


with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
    listener.bind(sys.argv[1])
    listener.listen(64)
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    while True:
        serve(listener.accept()[0])
