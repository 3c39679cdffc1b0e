# SPDX-License-Identifier: MIT
"""Processes and cgroups of a job, found by a mark in their environment or name."""
import os
import select

MARK = "LAUNCH_TORTURE_MARK"


def stat_of(pid):
    """(ppid, state), None if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            rest = f.read().rpartition(b")")[2].split()
        return int(rest[1]), rest[0].decode()
    except (OSError, IndexError):
        return None


def pids():
    return [int(p) for p in os.listdir("/proc") if p.isdigit()]


def descendants(root):
    below = {}
    for pid in pids():
        s = stat_of(pid)
        if s:
            below.setdefault(s[0], []).append(pid)
    found, todo = [], [root]
    while todo:
        for pid in below.get(todo.pop(), []):
            found.append(pid)
            todo.append(pid)
    return found


def marked(mark):
    found = []
    want = f"{MARK}={mark}".encode()
    for pid in pids():
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if want in f.read().split(b"\0"):
                    found.append(pid)
        except OSError:
            pass
    return found


def describe(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f"{pid} ({f.read().replace(bytes(1), b' ').decode(errors='replace').strip()}, {stat_of(pid)})"
    except OSError:
        return str(pid)


def kill(pid, sig):
    try:
        os.kill(pid, sig)
        return True
    except ProcessLookupError:
        return False


def children(pid):
    return [p for p in pids() if (stat_of(p) or (0,))[0] == pid]


def await_exit(pid, limit_s):
    """Wait status of our child, None when it does not end in time. Its pidfd tells: nothing else is reaped."""
    fd = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        if not poll.poll(limit_s * 1000):
            return None
        return os.waitpid(pid, 0)[1]
    finally:
        os.close(fd)


def reap_all():
    """Zombies and orphans that became ours; the launcher must not have left any."""
    found = []
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        found.append(pid)


def cgroups(mark):
    found = []
    for base in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
        for root, dirs, _ in os.walk(base):
            found += [os.path.join(root, d) for d in dirs if mark in d]
            if root.count("/") > 8:
                dirs.clear()
    return found


def dispose(pids_):
    for pid in pids_:
        kill(pid, 9)


def remove_group(path):
    try:
        os.rmdir(path)
    except OSError:
        pass  # it has some below it, or they are gone already
