# SPDX-License-Identifier: MIT
"""How costs grow: with workers, ranks, lines, jobs. A row for each size, with what one costs, and one with the exponent of the
upper half: 1 is linear. Counts of system calls are the same on a busy machine; times are not."""
import contextlib
import math
import os
import re
import select
import shutil
import subprocess
import tempfile
import time

import lease
import measure
from measure import Failed, Job, helper, interleave, run, stopwatch

TRUE, SLEEP = "/bin/true", ("sleep", "1000")
LINEAR = 1.15  # what of it may be noise


def exponent(points):
    """The slope of log(cost) over log(size) from an eighth of the greatest size on: below that, what is fixed hides it."""
    top = max(points)
    at = [(math.log(n), math.log(cost)) for n, cost in points.items() if n * 8 >= top and cost > 0]
    if len(at) < 2:
        return None
    x, y = (sum(v[i] for v in at) / len(at) for i in (0, 1))
    return sum((a - x) * (b - y) for a, b in at) / sum((a - x) ** 2 for a, _ in at)


def show(bench, what, one, unit, small, scale, taken, limit=LINEAR, goal=None):
    """taken: {size: samples}. `small` is the unit of the cost of one, scale what makes it of `unit`."""
    points = {}
    for n, samples in taken.items():
        points[n] = measure.spread(samples)["median"]
        bench.results.add("growth", f"{what}, {n}", unit, samples, size=n, note=f"{measure.short(points[n] / n * scale, small)}/{one}")
    e = exponent(points)
    if e is not None:
        bench.results.add("growth", what + measure.EXPONENT, "", [e], goal=goal or (limit and f"<= {limit}"), limit=limit)
    return e


def sizes(bench, top, quick):
    top = quick if bench.quick else top
    return [1 << i for i in range(top.bit_length())]


def starts(bench):
    taken = {"launch": {}, "fork": {}}
    calls = {}
    for n in sizes(bench, 1024, 16):
        once = lambda name: stopwatch(bench.peers.argv(name, n, TRUE), limit_ms=60000)[0][0]
        both = interleave(bench.rounds(9 if n < 256 else 5, 2), {x: (lambda x=x: once(x), None) for x in taken})
        for name in taken:
            taken[name][n] = both[name]
        if shutil.which("strace"):
            calls[n] = [system_calls(n)]
    floor = show(bench, "floor: start and end of workers by fork", "worker", "ms", "us", 1e3, taken["fork"], limit=None)
    show(bench, "start and end of workers", "worker", "ms", "us", 1e3, taken["launch"], limit=max(LINEAR, floor), goal="<= 1.15 or fork's")
    if calls:
        show(bench, "system calls of launch in that", "worker", "count", "calls", 1, calls, limit=1.0, goal="<= 1")
    else:
        bench.results.skip("growth", "system calls", "no strace")


def system_calls(n):
    """Of guard and agent: those of their threads, up to the exec of a worker."""
    with tempfile.TemporaryDirectory(prefix="launch-bench-") as d:
        run(["strace", "-ff", "-o", d + "/trace", measure.LAUNCH, f"-n{n}", TRUE], limit=300)
        total = 0
        for name in os.listdir(d):
            with open(os.path.join(d, name), encoding="utf-8", errors="replace") as f:
                text = f.read()
            at = text.find(f'execve("{TRUE}"')
            total += (text if at < 0 else text[:at]).count("\n")
        return total


def memory(bench):
    taken = {}
    for n in (1, 8, 16) if bench.quick else (1, 8, 64, 256, 1024):
        with Job(bench.peers.argv("launch", n, *SLEEP), n) as job:
            taken[n] = [measure.memory_kb(job.launchers())[0]]
    show(bench, "Rss of guard and agent, by workers", "worker", "kB", "kB", 1, taken, limit=1.0, goal="<= 1")
    low, high = min(taken), max(taken)
    bench.results.add("growth", "Rss for one more worker", "kB", [(taken[high][0] - taken[low][0]) / (high - low)])
    rss = {}
    few, many = (1000, 20000) if bench.quick else (10000, 1000000)
    for lines in (few, many):
        with tempfile.TemporaryDirectory(prefix="launch-bench-") as d:
            worker = ("/bin/sh", "-c", f"{helper('lines')} {lines} 4096; exec sleep 1000")
            argv = bench.peers.argv("launch", 2, f"--log-dir={d}", "--tee=1", "--", *worker)
            with Job(argv, 2) as job:
                rss[lines] = measure.memory_kb(job.launchers())[0]
    extra = (rss[many] - rss[few]) * 1024 / (2 * (many - few))
    bench.results.add("growth", f"memory kept of a log line, {2 * many} of 100 bytes", "B", [max(extra, 0)], goal="<= 1 B", limit=1)


def ranks(bench):
    barrier, heal = {}, {}
    for n in sizes(bench, 64, 4)[1:]:
        out = run(bench.peers.argv("launch", n, helper("collective"), "50" if bench.quick else "500", "0"), limit=300)
        barrier[n] = [int(ns) / 1e3 for ns in re.findall(r"^barrier (\d+)$", out, re.M)]
        rounds = bench.rounds(20, 3)
        heal[n] = [ms[-1] for ms in bench.heal_rounds(n, "exec", rounds)[0]]
    # Ranks that share a CPU pay for its switches, which is another thing than more of them.
    alone = max(barrier) <= len(os.sched_getaffinity(0))
    show(bench, "barrier in host memory, by ranks", "rank", "us", "us", 1, barrier, limit=LINEAR if alone else None)
    show(bench, "heal: SIGKILL to next barrier of all, by ranks", "rank", "ms", "ms", 1, heal)


def await_lines(fd, n, limit_s):
    """n lines of some processes that share a pipe."""
    deadline = time.monotonic() + limit_s
    with open(fd, "rb", buffering=0) as f:
        while n > 0:
            if not select.select([f], [], [], max(deadline - time.monotonic(), 0))[0]:
                raise Failed(f"{n} jobs did not start")
            data = f.read(4096)
            if not data:
                raise Failed(f"{n} jobs ended at once")
            n -= data.count(b"\n")


def jobs(bench):
    """Many jobs of 1 worker on one server that is theirs alone, each with a GPU of 64 to itself."""
    up, pss, idle, ps, take = {}, {}, {}, {}, {}
    seconds = 1 if bench.quick else 5
    worker = ("sh", "-c", "echo up; exec sleep 1000")
    for n in sizes(bench, 64, 4):
        with lease.Machine(64) as machine, contextlib.ExitStack() as stack:
            env = {**machine.env, "XDG_RUNTIME_DIR": machine.root}
            os.makedirs(machine.root + "/tmp", exist_ok=True)
            told, tell = os.pipe()
            begin = time.monotonic()
            all_jobs = [stack.enter_context(Job([measure.LAUNCH, "--gpus=1", "-n1", *worker], env=env, stdout=tell)) for _ in range(n)]
            os.close(tell)
            await_lines(told, n, 120)
            up[n] = [(time.monotonic() - begin) * 1e3]
            if not bench.quick and n == 64:
                time.sleep(7)  # 5 s after its start a job with GPUs looks once whether the driver's events can be had
            pids = [pid for job in all_jobs for pid in job.launchers()]
            pss[n] = [measure.memory_kb(pids)[1]]
            time.sleep(0.5)
            before = measure.switches(pids)
            time.sleep(seconds)
            idle[n] = [measure.switches(pids) - before]
            argv = ["env", f"LAUNCH_SYSROOT={machine.root}", f"XDG_RUNTIME_DIR={machine.root}", measure.LAUNCH, "ps"]
            ps[n] = [ms for ms, code in stopwatch(argv, rounds=bench.rounds(20, 3)) if code == 0]
            if n < 64:
                take[n] = [lease.take_ms(machine, 1) for _ in range(bench.rounds(20, 3))]
    show(bench, "jobs started at once, to the last one's worker running", "job", "ms", "ms", 1, up)
    show(bench, "Pss of all guards and agents, by jobs", "job", "kB", "kB", 1, pss)
    bench.results.add("growth", f"context switches of {max(idle)} idle jobs in {seconds} s", "count", idle[max(idle)], goal="0", limit=0)
    show(bench, "launch ps, by jobs", "job", "ms", "ms", 1, ps)
    show(bench, "a lease of 1 GPU of 64, by jobs that hold one", "job", "ms", "ms", 1, take)


def run_all(bench):
    for part in (starts, memory, ranks, jobs):
        try:
            part(bench)
        except (Failed, subprocess.TimeoutExpired, OSError) as e:
            bench.results.fail("growth", f"{part.__name__}: {e}")
