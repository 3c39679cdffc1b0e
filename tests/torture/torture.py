#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Jobs whose processes are killed at random instants; after each, nothing may be left.

    torture.py [-n JOBS] [-s SEED] [--only JOB] LAUNCH

Job i of seed s is always the same choice of victim, signal, workers and instant: --only i replays it. After each job: no
process of it lives (found by a mark in its environment), no zombie is ours to reap, no file in TMPDIR or /dev/shm, no
cgroup, no descriptor more than before, and the exit code is one that the kill explains.
"""
import argparse
import ctypes
import os
import random
import re
import select
import signal
import sys
import tempfile
import time

MARK = "LAUNCH_TORTURE_MARK"
LIMIT_S = 30  # for one job, and then for its remains to go
GONE_S = 5

WORKERS = {
    # name: script; all run for ever unless something ends them
    "sleep": "exec sleep 300",
    "deaf": "trap '' TERM HUP INT; while :; do sleep 300; done",
    "tree": "sleep 300 & setsid sleep 300 & (setsid sh -c 'sleep 300 & sleep 300') & exec sleep 300",
    "daemon": "(setsid sh -c '(setsid sleep 300 &) & exit 0' &); exec sleep 300",
    "storm": "i=0; while [ $i -lt 60 ]; do (true &); i=$((i + 1)); done; exec sleep 300",
    "stopped": "sh -c 'kill -STOP $$; exec sleep 300' & kill -STOP $$; exec sleep 300",
    "loud": "while :; do echo $RANK; done",
    # these end by themselves
    "short": "exit 0",
    "fail": "[ $RANK = 1 ] && exit 9; exec sleep 300",
    "early": "[ $RANK = 0 ] && exit 0; exec sleep 300",
    "leaver": "sleep 300 & exit 0",
}
ENDS = {"short": 0, "fail": 9, "leaver": 0}
VICTIMS = ["guard", "agent", "worker", "grandchild", "none"]


class Plan:
    """What job i of a seed does."""

    def __init__(self, seed, i):
        r = random.Random(f"{seed}/{i}")
        self.kind = r.choice(list(WORKERS))
        self.victim = r.choice(VICTIMS)
        self.n = r.choice([1, 1, 2, 3, 4, 8])
        if self.kind in ("fail", "early"):
            self.n = max(self.n, 2)
        self.restarts = r.choice([0, 0, 0, 1])
        self.signal = r.choice(["KILL", "KILL", "TERM", "INT", "STOP"])
        # Half of the kills fall into the first 5 ms, where everything is half made.
        self.after_s = r.random() * (0.005 if r.random() < 0.5 else 0.15)
        self.second_s = r.random() * 0.05
        self.pick = r.random()

    def __str__(self):
        return (f"{self.n} x {self.kind}, {self.signal} to {self.victim} after {self.after_s * 1e3:.2f} ms, "
                f"restarts {self.restarts}")


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


def victim_of(plan, guard):
    """The process to be hit; the guard when what is meant does not exist (yet)."""
    agents = [] if plan.victim in ("guard", "none") else children(guard)
    if not agents:
        return guard
    if plan.victim == "agent":
        return agents[0]
    workers = children(agents[0])
    if plan.victim == "worker":
        return workers[int(plan.pick * len(workers))] if workers else agents[0]
    below = [p for w in workers for p in descendants(w)]
    return below[int(plan.pick * len(below))] if below else agents[0]


def hit(plan, guard):
    """Does what the plan says; returns what was hit by what."""
    if plan.victim == "none":
        kill(guard, signal.SIGTERM)
        return "guard", "TERM"
    pid = victim_of(plan, guard)
    s = stat_of(pid)
    what = "guard" if pid == guard else "agent" if s and s[0] == guard else "below"
    # Only the guard is promised that TERM and INT sent to it alone end the job.
    sig = plan.signal
    kill(pid, getattr(signal, "SIG" + sig))
    if sig == "STOP":
        time.sleep(plan.second_s)
        kill(pid, signal.SIGKILL)
        sig = "KILL"
    if what == "below":
        time.sleep(plan.second_s)
        kill(guard, signal.SIGTERM)  # it may be a process that nobody misses
    return what, sig


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


def allowed(plan, what, sig):
    """Exit codes that what was done explains."""
    codes = {128 + getattr(signal, "SIG" + sig)}
    if what == "below":
        codes |= {137, 143, 130}
    if plan.kind in ENDS:
        codes.add(ENDS[plan.kind])
    if plan.kind == "early":
        codes.add(0)
    return codes


def start(plan, launch, mark, tmp):
    env = dict(os.environ, **{MARK: mark, "TMPDIR": tmp, "XDG_RUNTIME_DIR": tmp})
    script = WORKERS[plan.kind]
    args = [launch, f"--nproc-per-node={plan.n}", "--shutdown-timeout=300ms", f"--max-restarts={plan.restarts}",
            f"--run-id=torture-{mark}", "/bin/sh", "-c", script]
    null = os.open(os.devnull, os.O_RDWR)
    err = os.open(os.path.join(tmp, "..", "err." + mark), os.O_WRONLY | os.O_CREAT, 0o600)
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(null, 0), os.dup2(null, 1), os.dup2(err, 2)
            os.execve(launch, args, env)
        finally:
            os._exit(99)
    os.close(null)
    os.close(err)
    return pid


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


def check(plan, launch, mark, top):
    tmp = os.path.join(top, "tmp." + mark)
    os.mkdir(tmp)
    shm = set(os.listdir("/dev/shm"))
    problems = []
    guard = start(plan, launch, mark, tmp)
    time.sleep(plan.after_s)
    what, sig = hit(plan, guard)
    status = await_exit(guard, LIMIT_S)
    if status is None:
        problems.append("still runs: " + ", ".join(map(describe, [guard] + descendants(guard))))
        kill(guard, signal.SIGKILL)
        await_exit(guard, LIMIT_S)
    else:
        code = os.waitstatus_to_exitcode(status)
        code = 128 - code if code < 0 else code
        if code not in allowed(plan, what, sig):
            problems.append(f"exit code {code}, not one of {sorted(allowed(plan, what, sig))}")
    deadline = time.monotonic() + GONE_S
    while (alive := marked(mark)) and time.monotonic() < deadline:
        reap_all()
        time.sleep(0.002)
    if alive:
        problems.append("left: " + ", ".join(map(describe, alive)))
        for pid in alive:
            kill(pid, signal.SIGKILL)
    # When the guard itself was killed its children become ours: that is no fault.
    adopted = reap_all()
    while (mine := children(os.getpid())) and time.monotonic() < deadline:
        time.sleep(0.002)
        adopted += reap_all()
    if mine:
        problems.append("children of ours: " + ", ".join(map(describe, mine)))
    if adopted and not (what == "guard" and sig == "KILL") and status is not None:
        problems.append(f"zombies or orphans came to us: {adopted}")
    if files := os.listdir(tmp):
        problems.append(f"files in TMPDIR: {files}")
    if new := {f for f in set(os.listdir("/dev/shm")) - shm if "launch" in f and not re.fullmatch(r"launch-\d+", f)}:
        problems.append(f"in /dev/shm: {new}")
    groups = cgroups(mark)
    while groups and time.monotonic() < deadline:
        time.sleep(0.002)
        groups = cgroups(mark)
    if groups:
        problems.append(f"cgroups: {groups}")
    err = os.path.join(top, "err." + mark)
    if problems:
        problems.append("stderr: " + open(err, errors="replace").read()[-600:])
    os.unlink(err)
    if not os.listdir(tmp):
        os.rmdir(tmp)
    return what, sig, problems


def open_files():
    return len(os.listdir("/proc/self/fd"))


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("-n", type=int, default=200, help="how many jobs")
    args.add_argument("-s", type=int, default=None, help="seed")
    args.add_argument("--only", type=int, help="just this job of the seed")
    args.add_argument("launch")
    a = args.parse_args()
    seed = a.s if a.s is not None else random.randrange(1 << 32)
    print(f"seed {seed}", flush=True)
    # What the jobs inherit, also before they exec: a harness in the background has SIGINT ignored.
    for sig in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(sig, signal.SIG_DFL)
    PR_SET_CHILD_SUBREAPER = 36
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    counts, bad = {}, 0
    with tempfile.TemporaryDirectory() as top:
        before = open_files()
        for i in [a.only] if a.only is not None else range(a.n):
            plan = Plan(seed, i)
            what, sig, problems = check(plan, os.path.abspath(a.launch), f"{os.getpid()}.{seed}.{i}.", top)
            counts[what, sig] = counts.get((what, sig), 0) + 1
            if open_files() != before:
                problems.append(f"{open_files() - before} descriptors more than before")
            if problems:
                bad += 1
                print(f"job {i} ({plan}; hit {what}): " + "; ".join(problems), flush=True)
    hits = ", ".join(f"{sig} {what} {n}" for (what, sig), n in sorted(counts.items()))
    print(f"{sum(counts.values())} jobs ({hits}): {bad} with something left or a wrong exit code")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
