#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random jobs to which random things are done; after each, nothing may be left.

    torture.py [-n JOBS] [-s SEED] [--only JOB] [--kinds KIND,...] [--failing SHARE] LAUNCH

Job i of seed s is always the same choice of workers, options, victims, signals, instants and shortages: --only i replays it.
One or two processes are killed, stopped or asked to end; the C library (tests/fake/faults.c) fails at times, disks and /dev/shm are
full, descriptors few, readers gone; commands ask the job meanwhile, and are killed. After each: no process of it lives (found by a mark
in its environment), no zombie is ours to reap, no file in TMPDIR or /dev/shm, no cgroup, no GPU held, no descriptor more than
before; the exit code is one that the faults explain, and what was said names the failure.
"""
import argparse
import ctypes
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import procs
from plan import ENDS, HAVE_HEIRS, HARMLESS, WORKERS, Plan, fake_machine
from procs import MARK, await_exit, children, descendants, describe, kill, marked, reap_all, stat_of

LIMIT_S = 30  # for one job, and then for its remains to go
GONE_S = 8
LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_CHILD_SUBREAPER, CLONE_NEWNS, MS_REC, MS_PRIVATE = 36, 0x20000, 0x4000, 1 << 18
NOT_OURS = re.compile(r"bug:|Assertion|Sanitizer|stack smashing|buffer overflow|free\(\)|malloc\(\)|corrupted")
AGENT_DIED = re.compile(r"the agent \(pid \d+\) was killed by SIG(SEGV|BUS|ABRT|FPE|ILL)")


class Rig:
    """What all jobs use."""

    def __init__(self, launch, top):
        self.launch, self.top = launch, top
        self.fakes = os.path.join(os.path.dirname(launch), "tests", "fake")
        self.job = os.path.join(self.fakes, "heal_job")
        self.machine = os.path.join(top, "machine")
        fake_machine(self.machine, 4)
        os.mkdir(f"{self.machine}/tmp", 0o1777)
        os.chmod(f"{self.machine}/tmp", 0o1777)
        self.full = os.path.join(top, "full")
        os.mkdir(self.full)
        # A name space of ours: full file systems are mounted where nobody else sees them.
        self.mounts = os.geteuid() == 0 and LIBC.unshare(CLONE_NEWNS) == 0 and \
            LIBC.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) == 0 and mount_tmpfs(self.full, 256 << 10)


def mount_tmpfs(where, size):
    return LIBC.mount(b"none", where.encode(), b"tmpfs", 0, f"size={size}".encode()) == 0


def fill(where):
    """Leaves no block free."""
    try:
        with open(os.path.join(where, "filler"), "wb", buffering=0) as f:
            while f.write(bytes(4096)):
                pass
    except OSError:
        pass


class Job:
    def __init__(self, plan, rig, mark):
        self.plan, self.rig, self.mark = plan, rig, mark
        self.run_id = f"torture-{mark}"
        self.tmp, self.work = (os.path.join(rig.top, f"{name}.{mark}") for name in ("tmp", "work"))
        os.mkdir(self.tmp), os.mkdir(self.work)
        self.err = os.path.join(self.work, "err")
        self.reader = -1  # of its stdout
        self.hit, self.clients, self.problems = [], [], []
        self.env = dict(os.environ, **{"TMPDIR": self.tmp, "XDG_RUNTIME_DIR": self.tmp, "TORTURE_JOB": rig.job})
        if plan.gpus:
            self.env.update(LAUNCH_SYSROOT=rig.machine)
            self.env.pop("CUDA_VISIBLE_DEVICES", None)
        if plan.world == "full shm":
            del self.env["XDG_RUNTIME_DIR"]

    def argv(self):
        p = self.plan
        argv = [self.rig.launch, f"--nproc-per-node={p.n}", f"--shutdown-timeout={p.grace_ms}ms", f"--max-restarts={p.restarts}",
                f"--run-id={self.run_id}", *p.options]
        if p.log_dir:
            argv.append("--log-dir=" + (self.rig.full if p.world == "full disk" else self.work) + f"/logs.{self.mark}")
        if p.kind in ("heal", "sums"):
            return argv + [self.rig.job, "0" if p.kind == "heal" else "20"]
        return argv + ["/bin/sh", "-c", WORKERS[p.kind]]

    def become(self, out, err):
        """In the child: the world of the plan, then launch."""
        p, null = self.plan, os.open(os.devnull, os.O_RDWR)
        os.chdir(self.work)
        if p.world == "full shm" and self.rig.mounts and LIBC.unshare(CLONE_NEWNS) == 0:
            mount_tmpfs("/dev/shm", 4096)
            fill("/dev/shm")
        os.dup2(null, 0), os.dup2(out, 1), os.dup2(err, 2)
        closed = {"no stdin": 0, "stdout closed": 1, "stderr closed": 2}.get(p.world)
        if closed is not None:
            os.close(closed)
        os.closerange(3, 100)
        if p.world == "few descriptors":
            resource.setrlimit(resource.RLIMIT_NOFILE, (p.limit, p.limit))
        if p.world == "small files":
            resource.setrlimit(resource.RLIMIT_FSIZE, (p.limit, p.limit))
        env = {**self.env, MARK: self.mark, **p.fault_environment(os.path.join(self.rig.fakes, "libfaults.so"))}
        os.execve(self.rig.launch, self.argv(), env)

    def start(self):
        w = self.plan.world
        if w in ("reader goes", "nobody reads"):
            self.reader, out = os.pipe2(os.O_CLOEXEC)
        else:
            out = os.open("/dev/full" if w == "stdout full" else os.devnull, os.O_WRONLY)
        err = os.open(self.err, os.O_WRONLY | os.O_CREAT, 0o600)
        pid = os.fork()
        if pid == 0:
            try:
                self.become(out, err)
            finally:
                os._exit(99)
        os.close(out), os.close(err)
        return pid

    # ---- what is done to it ----

    def ask(self):
        for after_s, argv, dies in self.plan.asks:
            time.sleep(after_s)
            argv = [self.rig.launch] + [self.run_id if a == "RUN" else a for a in argv]
            client = subprocess.Popen(argv, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.clients.append(client)
            if dies:
                time.sleep(after_s / 4)
                client.kill()

    def victim(self, hit, guard):
        """What is hit, and its pid; the guard or the agent when what is meant does not exist (yet)."""
        agents = [] if hit.victim in ("guard", "none") else children(guard)
        if not agents:
            return "guard", guard
        below = [] if hit.victim == "agent" else children(agents[0])
        if hit.victim == "grandchild":
            below = [p for w in below for p in descendants(w)]
        return ("below", below[int(hit.pick * len(below))]) if below else ("agent", agents[0])

    def strike(self, hit, guard):
        """Does what the plan says and notes what was hit by what."""
        time.sleep(hit.after_s)
        if hit.victim == "none":
            self.send("guard", guard, "TERM")
            return
        if hit.victim == "both" and (agents := children(guard)):
            for agent in agents:
                self.send("agent", agent, "KILL")
            self.send("guard", guard, "KILL")
            return
        what, pid = self.victim(hit, guard)
        self.send(what, pid, "STOP" if hit.signal == "PAUSE" else hit.signal)
        if hit.signal in ("STOP", "PAUSE"):
            time.sleep(self.plan.second_s)
            self.send(what, pid, "KILL" if hit.signal == "STOP" else "CONT")
        # Of a process below it may be that nobody misses it, as of a child of launch that asks NVML before there is an agent; and a SEGV
        # that is sent to guard or agent may be taken for nothing.
        if what == "below" or (what == "agent" and self.plan.gpus) or hit.signal in ("SEGV", "PAUSE"):
            time.sleep(self.plan.second_s)
            self.send("guard", guard, "TERM")

    def send(self, what, pid, sig):
        self.hit.append((what, sig))
        kill(pid, getattr(signal, "SIG" + sig))

    # ---- what may come of it ----

    def allowed(self):
        """Exit codes that what was done explains; None: any, as workers do what they like when their C library fails."""
        p = self.plan
        if p.faults_where == "workers" and p.faults and p.faults not in HARMLESS:
            return None
        codes = {128 + getattr(signal, "SIG" + sig) for _, sig in self.hit if sig not in ("STOP", "CONT")}
        if any(what == "below" for what, _ in self.hit):
            codes |= {137, 143, 130, 129, 139}
        if p.kind in ENDS:
            codes.add(ENDS[p.kind])
        if p.kind == "race":
            codes |= {7, 9}
        if p.kind == "early" or p.detach:
            codes |= {0, 125} if p.detach else {0}
        if p.kind in ("late", "heal", "sums"):
            codes |= {125, 143} if p.kind == "late" else {125, 1} if len(self.hit) > 1 or self.faulty() else {125}
        if p.world in ("reader goes", "stdout full", "stdout closed") or p.kind == "loud":
            codes |= {141, 1, 2}
        if any("--hang-timeout" in o for o in p.options):
            codes.add(123)
        if any("--timeout" in o for o in p.options):
            codes.add(124)
        if any(a[0] in ("stop", "restart", "signal") for _, a, _ in p.asks):
            codes |= {143, 137}
        if p.fails_launch():
            codes |= {125, 2, 1, 126, 127, 75}
            codes |= {134} if p.faults and re.search("memory|descriptors", p.faults) else set()  # libuv's way out
        if p.world == "small files":
            codes |= {153, 1, 2}  # SIGXFSZ of workers
        return codes

    def faulty(self):
        return self.plan.faults or self.plan.world

    def judge(self, status):
        p, code = self.plan, os.waitstatus_to_exitcode(status)
        code = 128 - code if code < 0 else code
        allowed = self.allowed()
        if p.kind in ("heal", "sums") and code == 9:
            self.problems.append("a sum is wrong")
        elif allowed is not None and code not in allowed:
            self.problems.append(f"exit code {code}, not one of {sorted(allowed)}")
        with open(self.err, errors="replace", encoding="utf-8") as f:
            said = f.read()
        if NOT_OURS.search(said):
            self.problems.append("a bug is told")
        if AGENT_DIED.search(said) and ("agent", "SEGV") not in self.hit and code != 134:
            self.problems.append("the agent died of itself")
        if not p.detach and p.world not in ("stderr closed", "small files"):
            self.judge_report(code, said)

    def judge_report(self, code, said):
        killed = any(what != "below" and sig in ("KILL", "SEGV") for what, sig in self.hit)
        calm = not self.faulty() and not killed
        names = {7: "with code 7", 9: "with code 9", 139: "SIGSEGV", 123: "sign of life|hang", 124: "time is over|--timeout", 125: "launch: "}
        if calm and code in names and not re.search(names[code], said):
            self.problems.append(f"exit code {code} is not explained")
        if self.faulty() and code == 125 and not killed and not said:
            self.problems.append("exit code 125 without a word")

    # ---- what is left ----

    def expect_gone(self, both):
        """No process; when guard and agent are gone both, what the workers started is for nobody to end."""
        deadline = time.monotonic() + GONE_S
        heirs = both and self.plan.kind in HAVE_HEIRS
        while (alive := marked(self.mark)) and time.monotonic() < deadline and not heirs:
            reap_all()
            time.sleep(0.002)
        if alive and not heirs:
            self.problems.append("left: " + ", ".join(map(describe, alive)))
        while alive:
            procs.dispose(alive)
            reap_all()
            alive = marked(self.mark)
        return deadline

    def expect_none_adopted(self, deadline, ended):
        """When the guard itself was killed its children become ours: that is no fault."""
        adopted = reap_all()
        while (mine := children(os.getpid())) and time.monotonic() < deadline:
            time.sleep(0.002)
            adopted += reap_all()
        if mine:
            self.problems.append("children of ours: " + ", ".join(map(describe, mine)))
        if adopted and ended and not {("guard", "KILL"), ("guard", "SEGV")} & set(self.hit) and not self.plan.detach:
            self.problems.append(f"zombies or orphans came to us: {adopted}")

    def expect_no_traces(self, shm, deadline, both):
        if both:  # nobody was left to remove the socket: the next one who looks does
            subprocess.run([self.rig.launch, "ps"], env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
            shutil.rmtree(os.path.join(self.tmp, "launch"), ignore_errors=True)
        if unable := self.plan.faults and self.plan.fails_launch():  # a directory that can't be opened can't be emptied
            shutil.rmtree(os.path.join(self.tmp, "launch"), ignore_errors=True)
        if files := os.listdir(self.tmp):
            self.problems.append(f"files in TMPDIR: {files}")
        if new := {f for f in set(os.listdir("/dev/shm")) - shm if "launch" in f and not re.fullmatch(r"launch-\d+", f)}:
            self.problems.append(f"in /dev/shm: {new}")
        while (groups := procs.cgroups(self.mark)) and not both and not unable and time.monotonic() < deadline:
            time.sleep(0.002)
        for group in groups if both or unable else []:
            procs.remove_group(group)
        if groups and not both and not unable:
            self.problems.append(f"cgroups: {groups}")
        if self.plan.gpus:
            held = subprocess.run([self.rig.launch, "gpus"], env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  check=False).stdout
            if self.run_id in held:
                self.problems.append("GPUs are still held")

    def end_clients(self):
        for c in self.clients:
            c.kill()
            c.wait()

    def await_detached(self, guard):
        """The command has returned, or was killed; the job itself is the process of its mark whose parent has none."""
        there = set(marked(self.mark)) - {guard}
        for pid in there:
            s = stat_of(pid)
            if s and s[0] not in there:
                kill(pid, signal.SIGTERM)

    def run(self):
        shm = set(os.listdir("/dev/shm"))
        guard = self.start()
        try:
            self.ask()
            for hit in self.plan.hits:
                self.strike(hit, guard)
            if self.plan.world == "reader goes":
                os.close(self.reader)
                self.reader = -1
            status = await_exit(guard, LIMIT_S)
        finally:
            self.end_clients()
        if status is None:
            self.problems.append("still runs: " + ", ".join(map(describe, [guard] + descendants(guard))))
            kill(guard, signal.SIGKILL)
            await_exit(guard, LIMIT_S)
        else:
            self.judge(status)
        if self.plan.detach:
            self.await_detached(guard)
        both = {("guard", "KILL"), ("agent", "KILL")} <= set(self.hit)
        deadline = self.expect_gone(both)
        self.expect_none_adopted(deadline, status is not None)
        self.expect_no_traces(shm, deadline, both)
        self.clean()
        return self.problems

    def clean(self):
        if self.reader >= 0:
            os.close(self.reader)
        if self.problems:
            with open(self.err, errors="replace", encoding="utf-8") as f:
                self.problems.append("stderr: " + f.read()[-700:])
        for where in (self.work, self.tmp, os.path.join(self.rig.full, f"logs.{self.mark}")):
            shutil.rmtree(where, ignore_errors=True)


def open_files():
    return len(os.listdir("/proc/self/fd"))


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("-n", "--jobs", type=int, default=200, help="how many jobs")
    args.add_argument("-s", "--seed", type=int, default=None)
    args.add_argument("--only", type=int, help="just this job of the seed")
    args.add_argument("--kinds", help="of workers, of " + ", ".join(WORKERS))
    args.add_argument("--failing", type=float, default=0.35, metavar="SHARE", help="of the jobs with a C library that fails at times")
    args.add_argument("launch")
    a = args.parse_args()
    seed = a.seed if a.seed is not None else random.randrange(1 << 32)
    kinds = a.kinds.split(",") if a.kinds else list(WORKERS)
    print(f"seed {seed}", flush=True)
    # What the jobs inherit, also before they exec: a harness in the background has SIGINT ignored.
    for sig in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(sig, signal.SIG_DFL)
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1)
    counts, bad, done, began = {}, 0, 0, time.monotonic()
    with tempfile.TemporaryDirectory(prefix="torture-") as top:
        rig = Rig(os.path.abspath(a.launch), top)
        before = open_files()
        for i in [a.only] if a.only is not None else range(a.jobs):
            plan = Plan(seed, i, kinds, a.failing)
            if plan.world == "full disk":
                fill(rig.full)
            job = Job(plan, rig, f"{os.getpid()}.{seed}.{i}.")
            problems = job.run()
            done += 1
            for kind in [f"{sig} {what}" for what, sig in job.hit] + [x for x in (plan.world, plan.faults) if x]:
                counts[kind] = counts.get(kind, 0) + 1
            if open_files() != before:
                problems.append(f"{open_files() - before} descriptors more than before")
            if problems:
                bad += 1
                print(f"job {i} ({plan}; done: {job.hit}): " + "; ".join(problems), flush=True)
            if done % 1000 == 0:
                print(f"{done} jobs: {bad} wrong", flush=True)
        if rig.mounts:
            LIBC.umount2(rig.full.encode(), 2)
    print(", ".join(f"{kind} {n}" for kind, n in sorted(counts.items())))
    seconds = time.monotonic() - began
    print(f"{done} jobs, {done / seconds:.1f} a second: {bad} with something left or a wrong exit code")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
