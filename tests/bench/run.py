#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The numbers of `launch` beside its peers', measured in turn in the same minute.

    tests/bench/run.py [ITEM...] [--quick] [--json FILE] [--starts N] [--strict] [--limit SECONDS]
    tests/bench/run.py --explain-start
    tests/bench/run.py --markdown [FILE]

Each item prints its rows as it goes: medians with quartiles, the goal, ok or over; the JSON is written anew after each. Goals are for an idle machine;
"over" on a busy one says little. Exit code: 1 if something could not be measured (--strict: or is over its goal)."""

import argparse
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import growth
import lease
import measure
import table
from measure import Failed, Job, helper, interleave, run, stopwatch

TRUE = "/bin/true"
SLEEP = ("sleep", "1000")
MIB = 1 << 20


class Bench:
    def __init__(self, options):
        self.quick = options.quick
        self.starts_n = options.starts
        self.results = measure.Results()
        self.peers = measure.Peers(["openmpi", "hydra", "torchrun"] if not self.quick else ["openmpi", "hydra"])
        for name, why in self.peers.absent.items():
            self.results.skip("peers", name, why)

    def rounds(self, n, quick=3):
        return quick if self.quick else n

    # ---- starts ----

    def start(self):
        """1, 8, 64 workers that do nothing: from exec of the launcher to its end."""
        for n in (1, 8) if self.quick else (1, 8, 64):
            hangs = {}

            def once(name):
                (ms, code), = stopwatch(self.peers.argv(name, n, TRUE), limit_ms=30000 if name == "torchrun" else 6000)
                if code == "hang":
                    hangs[name] = hangs.get(name, 0) + 1
                elif code != 0:
                    raise Failed(f"{name} with {n} workers: exit code {code}")
                return ms

            few = {"openmpi": 5 if n == 64 else None, "torchrun": 3}
            names = ["launch", "spawn", "fork", *self.peers.names("hydra", "openmpi", *([] if n == 64 else ["torchrun"]))]
            for name in names[:5]:
                stopwatch(self.peers.argv(name, n, TRUE), limit_ms=6000)  # warm: caches, page tables
            taken = interleave(self.rounds(20), {x: (lambda x=x: once(x), few.get(x)) for x in names})
            limits = {8: 1.8, 64: 1.5}
            for peer in names[1:]:
                limit = limits.get(n) if peer == "spawn" else None
                self.results.add("start", f"start and end of {n} x /bin/true", "ms", taken["launch"], peer, taken[peer],
                                 goal=limit and f"<= {limit}x", limit=limit)
                if hangs.get(peer):
                    self.results.skip("start", f"{peer}, {n} workers", f"hung in {hangs[peer]} of its runs (limit 6 s)")
            if hangs.get("launch"):
                self.results.fail("start", f"launch hung {hangs['launch']} times at {n} workers")

    def starts(self):
        """Many starts of every size: none may hang."""
        total = self.starts_n or (60 if self.quick else 600)
        sizes = (1, 2, 8, 33, 64, 256)
        hangs = wrong = done = 0
        for i, n in enumerate(sizes):
            rounds = total // len(sizes) + (i < total % len(sizes))
            for _, code in stopwatch(self.peers.argv("launch", n, TRUE), rounds=rounds) if rounds else ():
                done += 1
                hangs += code == "hang"
                wrong += code not in ("hang", 0)
        self.results.add("starts", f"hangs in {done} starts of {sizes[0]} to {sizes[-1]}", "count", [hangs], goal="0", limit=0)
        self.results.add("starts", "wrong exit codes in these", "count", [wrong], goal="0", limit=0)

    def config(self):
        """What a job file of 200 lines costs over the same job in flags and exported variables; nothing is started."""
        args = [f"--option-{i}=value" for i in range(60)]
        variables = {f"VARIABLE_{i}": "value" for i in range(75)}
        lines = ["nproc_per_node: 1", "max_restarts: 3", f"program: {TRUE}", "args:", *(f"- {a}" for a in args)]
        lines += ["env:", *(f"  {k}: {v}" for k, v in variables.items())]
        lines += ["# a line of comment"] * (200 - len(lines))
        with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="ascii") as f:
            f.write("\n".join(lines) + "\n")
            f.flush()
            exported = ["env", *(f"{k}={v}" for k, v in variables.items())]
            ways = {
                "file": ["env", measure.LAUNCH, "--print-config", "--config", f.name],
                "flags": [*exported, measure.LAUNCH, "--print-config", "--nproc-per-node=1",
                          "--max-restarts=3", TRUE, *args],
            }

            def once(way):
                (ms, code), = stopwatch(ways[way])
                if code != 0:
                    raise Failed(f"{way}: {code}")
                return ms

            taken = interleave(self.rounds(100, 5), {way: (lambda way=way: once(way), None) for way in ways})
        extra = [a - b for a, b in zip(taken["file"], taken["flags"])]
        self.results.add("config", "a job file of 200 lines over flags", "ms", extra, goal="< 1 ms", limit=1)

    # ---- at rest ----

    def memory(self):
        """Resident memory of everything but the workers, while they sleep."""
        for n in (8, 64):
            names = ["launch", *self.peers.names("hydra", *(["openmpi", "torchrun"] if n == 8 else []))]
            found = {}
            for name in names:
                with Job(self.peers.argv(name, n, *SLEEP), n) as job:
                    time.sleep(0.3)
                    found[name] = measure.memory_kb(job.launchers())
            for kind, what in enumerate(("Rss", "Pss", "private")):
                goal = "<= 4000 kB" if what == "Rss" else None
                mine = [found["launch"][kind]]
                name = f"{what} of guard and agent, {n} workers"
                self.results.add("memory", name, "kB", mine, goal=goal, limit=goal and 4000)
                for peer in names[1:] if what == "Rss" else ():
                    self.results.add("memory", name, "kB", mine, peer, [found[peer][kind]])

    def idle(self):
        """Context switches of all threads of guard and agent while 8 workers sleep."""
        seconds = 3 if self.quick else 10
        for name in ["launch", *self.peers.names("hydra", "openmpi", "torchrun")]:
            with Job(self.peers.argv(name, 8, *SLEEP), 8) as job:
                time.sleep(1)
                pids = job.launchers()
                before = measure.switches(pids)
                time.sleep(seconds)
                n = measure.switches(pids) - before
            what = f"context switches in {seconds} s, 8 sleeping workers"
            if name == "launch":
                mine = n
                self.results.add("idle", what, "count", [n], goal="0", limit=0)
            else:
                self.results.add("idle", what, "count", [mine], name, [n])

    # ---- liblaunch ----

    def rendezvous(self):
        """From the last rank's launch_join() to its return in all ranks."""
        for n in (2, 8) if self.quick else (2, 8, 64, 256):
            us = [int(run(self.peers.argv("launch", n, helper("rendezvous")))) / 1e3 for _ in range(self.rounds(50, 5))]
            self.results.add("rendezvous", f"the last of {n} ranks joins to all go on", "us", us)

    def id(self):
        """From the publication of the unique id on the board to all ranks having it."""
        rounds = self.rounds(200, 30)
        for n in (2, 8):
            out = run(self.peers.argv("launch", n, helper("board_id"), str(rounds)))
            us = sorted(int(line) / 1e3 for line in out.split())
            limit = 50 if n == 8 else None
            self.results.add("id", f"unique id published to seen by {n} ranks", "us", us, goal=limit and "< 50 us (16 cores)",
                             limit=limit)
            self.results.add("id", f"the same, p99, {n} ranks", "us", [us[int(len(us) * 0.99) - 1]])

    def collective(self):
        """Barrier and all-reduce of host memory, beside the same program over MPI."""
        latency, large = (200, 0) if self.quick else (2000, 5)
        for n in (2, 8):
            programs = {"launch": helper("collective")}
            if self.peers.gloo:
                programs["gloo"] = None
            for peer, mpi in (("openmpi", "openmpi"), ("hydra", "mpich")):
                if not self.peers.names(peer):
                    continue
                if os.path.exists(helper(f"collective_{mpi}")):
                    programs[peer] = helper(f"collective_{mpi}")
                else:
                    self.results.skip("collective", mpi, f"no mpicc.{mpi} with mpi.h")

            def once(name):
                # MPICH's ranks never yield: with too few CPUs a barrier takes them 40 ms.
                slow = name == "hydra" and n > len(os.sched_getaffinity(0))
                rounds = (latency // 100, min(large, 1)) if slow else (latency, large)
                argv = self.peers.argv(name, n, programs[name], *map(str, rounds)) if name != "gloo" else self.peers.argv(
                    "launch", n, "--no-python", "--", self.peers.gloo, os.path.join(measure.SRC, "tests/bench/gloo.py"), *map(str, rounds))
                out = run(argv, limit=300, env={**os.environ, "OMP_NUM_THREADS": "1"})
                return [(kind, int(ns)) for kind, ns in re.findall(r"^(\w+) (\d+)$", out, re.M)]

            taken = interleave(self.rounds(3, 1), {x: (lambda x=x: once(x), None) for x in programs})
            pick = lambda name, kind: [ns for part in taken[name] for k, ns in part if k == kind]
            for kind in ("barrier", "all_reduce_8B", "all_reduce_64MiB"):
                big = kind == "all_reduce_64MiB"
                unit = "GB/s" if big else "us"
                scale = (lambda ns: 64 * MIB / ns) if big else (lambda ns: ns / 1e3)
                mine = [scale(ns) for ns in pick("launch", kind)]
                for peer in list(programs)[1:] or [None]:
                    theirs = [scale(ns) for ns in pick(peer, kind)] if peer else None
                    if mine:
                        self.results.add("collective", f"{kind}, {n} ranks, host memory", unit, mine, peer, theirs)

    # ---- output ----

    def relay(self):
        """Lines of 100 bytes of one worker, through the launcher, into cat; then with a prefix each."""
        self.relay_way("lines", {})
        tags = {"launch": ["--log-dir=/dev/null", "--tee=1", "--"], "hydra": ["-l"], "openmpi": ["--tag-output"]}
        if "--tee" in run([measure.LAUNCH, "--help"]):
            self.relay_way("lines with prefixes", tags)
        else:
            self.results.skip("relay", "lines with prefixes", "this launch has no --tee")

    def relay_way(self, what, options):
        count = 500_000 if self.quick else 10_000_000
        lines = f"{helper('lines')} {count} 65536"

        def once(name):
            source = lines
            if name != "cat":
                ours = options.get(name, []) if name == "launch" else []
                argv = self.peers.argv(name, 2, *ours, lines + " 0")
                argv[1:1] = options.get(name, []) if name != "launch" else []
                source = " ".join(argv)
            (ms, code), = stopwatch(["sh", "-c", f"{source} 2>/dev/null | cat >/dev/null"], limit_ms=120000)
            if code != 0:
                raise Failed(f"{name}: {code}")
            return count * 100 / 1e6 / (ms / 1e3)

        names = ["launch", "cat", *self.peers.names("hydra", "openmpi")]
        slow = ["openmpi"] + (["hydra"] if options else [])
        taken = interleave(self.rounds(5, 1), {x: (lambda x=x: once(x), 1 if x in slow else None) for x in names})
        for peer in names[1:]:
            limit = 0.5 if peer == "cat" else None
            self.results.add("relay", f"{count * 100 // 10**6} MB of {what} through a pipe", "MB/s", taken["launch"], peer,
                             taken[peer], goal=limit and ">= 0.5x", limit=limit, inverse=True)

    def torn(self):
        """Lines of 8 ranks at once: torn, merged, lost or out of order ones."""
        count = 5_000 if self.quick else 50_000
        found = {}
        for name in ["launch", *self.peers.names("hydra", "openmpi")]:
            out = subprocess.run(self.peers.argv(name, 8, helper("lines"), str(count), "4096"), stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=120).stdout
            found[name] = [bad_lines(out, 8, count)]
        what = f"torn or lost lines of 8 x {count}"
        self.results.add("torn", what, "count", found["launch"], goal="0", limit=0)
        for peer in list(found)[1:]:
            self.results.add("torn", what, "count", found["launch"], peer, found[peer])

    def blocked(self):
        """Memory of the launcher while two workers write for ever and nobody reads."""
        seconds = 2 if self.quick else 5
        found = {}
        for name in ["launch", *self.peers.names("hydra", "openmpi")]:
            argv = self.peers.argv(name, 2, helper("lines"), "0", "65536")
            with Job(argv, 2, comm="lines", stdout=subprocess.PIPE) as job:
                time.sleep(0.5)
                before = measure.memory_kb(job.launchers())[0]
                time.sleep(seconds)
                if len(job.workers()) != 2:
                    raise Failed(f"{name}: its workers ended while the reader was blocked")
                found[name] = [measure.memory_kb(job.launchers())[0] - before]
        what = f"growth with a reader blocked for {seconds} s"
        self.results.add("blocked", what, "kB", found["launch"], goal="<= 1000 kB", limit=1000)
        for peer in list(found)[1:]:
            self.results.add("blocked", what, "kB", found["launch"], peer, found[peer])

    # ---- deaths ----

    def killwatch(self, what, fifo, argv, limit_ms=30000):
        return tuple(int(ns) / 1e6 for ns in run([helper("killwatch"), what, "8", fifo, str(limit_ms), *argv]).split())

    def kill(self):
        """SIGKILL of one of 8 workers, which obey SIGTERM: the others dead, and the launcher gone."""
        with Fifos("pids") as (pids,):
            worker = ("/bin/sh", "-c", f"read p x </proc/self/stat; echo $p >{pids}; exec sleep 1000")
            names = ["launch", *self.peers.names("hydra", "openmpi")]
            once = lambda name: self.killwatch("end", pids, self.peers.argv(name, 8, *worker))
            taken = interleave(self.rounds(20), {x: (lambda x=x: once(x), 5 if x == "openmpi" else None) for x in names})
        for part, (what, limit) in enumerate((("others dead", 3), ("launcher gone", 6))):
            mine = [t[part] for t in taken["launch"]]
            name = f"SIGKILL of one of 8 to {what}"
            self.results.add("kill", name, "ms", mine, goal=f"<= {limit} ms", limit=limit)
            for peer in names[1:]:
                self.results.add("kill", name, "ms", mine, peer, [t[part] for t in taken[peer]])

    def notice(self):
        """SIGKILL to the agent's news of it, for a worker with much memory: robust lock and pidfd."""
        if not os.path.exists(helper("deathwatch")):
            return self.results.skip("notice", "deathwatch", "not built")
        mib, rounds = (256, 10) if self.quick else (4096, 20)
        out = run([helper("deathwatch"), str(mib), str(rounds)], limit=300)
        for way, p50, p99 in re.findall(r"^(\w+) +p50 +([\d.]+) ms +p99 +([\d.]+) ms", out, re.M):
            limit = 0.5 if way == "lock" else None
            self.results.add("notice", f"death of a worker of {mib} MiB told by {way}", "ms", [float(p50)])
            self.results.add("notice", "the same, p99", "ms", [float(p99)], goal=limit and "<= 0.5 ms", limit=limit)

    def restart(self):
        """SIGKILL of one of 8 shells to 8 new ones running."""
        with Fifos("pids", "hold") as (pids, hold):
            worker = ("/bin/sh", "-c", f"exec 3<>{hold}; read p x </proc/self/stat; echo $p >{pids}; read x <&3")
            ours = self.peers.argv("launch", 8, "--max-restarts=1", "--", *worker)
            measures = {"launch": (lambda: self.killwatch("again", pids, ours)[0], None)}
            if self.peers.names("torchrun"):
                theirs = self.peers.argv("torchrun", 8, *worker)
                theirs.insert(theirs.index("--no_python"), "--max_restarts=1")
                measures["torchrun"] = (lambda: self.killwatch("again", pids, theirs, 60000)[0], 3)
            taken = interleave(self.rounds(20), measures)
        name = "SIGKILL of one of 8 to 8 new ones running"
        self.results.add("restart", name, "ms", taken["launch"], goal="<= 20 ms", limit=20)
        if "torchrun" in taken:
            self.results.add("restart", name, "ms", taken["launch"], "torchrun", taken["torchrun"])

    def ps(self):
        """`launch ps` while 50 jobs run."""
        with tempfile.TemporaryDirectory(prefix="launch-bench-") as d, contextlib.ExitStack() as jobs:
            os.makedirs(d + "/tmp")
            # A server of their own, so that nobody else's jobs are counted.
            env = {**os.environ, "LAUNCH_SYSROOT": d, "XDG_RUNTIME_DIR": d}
            for _ in range(50):
                jobs.enter_context(Job(self.peers.argv("launch", 1, *SLEEP), 1, env=env))
            listed = run([measure.LAUNCH, "ps", "--json"], env=env).count("run_id")
            if listed != 50:
                raise Failed(f"{listed} of 50 jobs are listed")
            argv = ["env", f"LAUNCH_SYSROOT={d}", f"XDG_RUNTIME_DIR={d}", measure.LAUNCH, "ps"]
            taken = [ms for ms, code in stopwatch(argv, rounds=self.rounds(50, 10)) if code == 0]
        self.results.add("ps", "launch ps with 50 jobs", "ms", taken, goal="<= 20 ms", limit=20)

    def lease(self):
        """A lease on GPUs: its cost, and how soon the next job has them."""
        lease.run(self)

    def growth(self):
        """What one more worker, rank, line or job costs: up to 1024 workers, 64 jobs."""
        growth.run_all(self)

    def heal(self):
        """A rank of a job kills itself while the others are in a barrier, to the next barrier of all."""
        for n, limit in ((8, 5), (64, 30)):
            for way in ("exec", "none"):
                told, out = self.heal_rounds(n, way, self.rounds(50, 10))
                steps = zip(("first survivor told", "last survivor told", "all have met", "next barrier of all"), zip(*told))
                for what, ms in steps:
                    goal = what.startswith("next") and way == "exec"
                    self.results.add("heal", f"SIGKILL of one of {n}, standby {way}, to {what}", "ms", list(ms),
                                     goal=goal and f"<= {limit} ms", limit=limit if goal else None)
            store = [float(line.split()[1]) for line in out.splitlines() if line.startswith("store")]
            if n == 8:
                self.results.add("heal", "launch_step(): store and check", "ns", store, goal="<= 2 ns", limit=2)
        look = float(run([helper("deathwatch"), "look"]).split()[1])
        self.results.add("heal", "the agent's look at 64 ranks", "ns", [look], goal="< 1000 ns", limit=1000)
        python = None if self.quick else measure.torch_python()
        if python:
            self.heal_torch(8, python)

    def heal_rounds(self, n, way, rounds):
        """(milliseconds [to the first told, the last one, all met, next barrier] of every round, all output)."""
        with tempfile.TemporaryDirectory(prefix="launch-bench-") as d:
            options = [f"--max-restarts={rounds}", "--on-failure=heal", f"--standby={way}", "--"]
            out = run(self.peers.argv("launch", n, *options, helper("heal"), d + "/shared", str(rounds), "50"))
        return [[float(us) / 1e3 for us in line.split()[2:]] for line in out.splitlines() if line.startswith("round")], out

    def heal_torch(self, n, python):
        """The same loss in a PyTorch job, which can't heal: all ranks are started again."""
        script = os.path.join(measure.SRC, "tests/bench/torch_again.py")

        def again(argv):
            with tempfile.TemporaryDirectory(prefix="launch-bench-") as d:
                out = run([*argv, python, script, d + "/killed"], env={**os.environ, "OMP_NUM_THREADS": "1"})
            return float(re.search(r"^again ([\d.]+)$", out, re.M).group(1))

        ours = self.peers.argv("launch", n, "--max-restarts=1", "--")
        measures = {"launch": (lambda: again(ours), None)}
        if self.peers.names("torchrun"):
            theirs = self.peers.argv("torchrun", n)
            theirs.insert(theirs.index("--no_python"), "--max_restarts=1")
            measures["torchrun"] = (lambda: again(theirs), None)
        taken = interleave(self.rounds(10), measures)
        name = f"PyTorch: SIGKILL of one of {n} to the next all-reduce of all"
        self.results.add("heal", name, "ms", taken["launch"], "torchrun" if "torchrun" in taken else None, taken.get("torchrun"))


class Fifos:
    """Named pipes in a directory of their own."""

    def __init__(self, *names):
        self.dir = tempfile.mkdtemp(prefix="launch-bench-")
        self.paths = [os.path.join(self.dir, name) for name in names]
        for path in self.paths:
            os.mkfifo(path)

    def __enter__(self):
        return self.paths

    def __exit__(self, *_):
        shutil.rmtree(self.dir, ignore_errors=True)


def bad_lines(out, ranks, count):
    """Lines that are none of tests/bench/lines.c's in their order, plus those that never came."""
    seen = [0] * ranks
    bad = good = 0
    for line in out.splitlines(keepends=True):
        m = re.fullmatch(rb"(\d) (\d+) x+\n", line) if len(line) == 100 else None
        rank = int(m.group(1)) if m else ranks
        if rank < ranks and int(m.group(2)) == seen[rank]:
            seen[rank] += 1
            good += 1
        else:
            bad += 1
            if rank < ranks:
                seen[rank] = int(m.group(2)) + 1
    return max(bad, ranks * count - good)


ITEMS = ("start", "starts", "memory", "idle", "rendezvous", "id", "collective", "relay", "torn", "blocked", "kill", "notice", "restart", "heal", "config", "ps", "lease",
         "growth")


# ---- what a start pays for ----


def explain_start():
    """System calls, libraries, relocations of a start, counted once."""
    launch = measure.LAUNCH

    def show(title, argv, env=None, where=None, keep=None):
        print(f"\n== {title}")
        if not shutil.which(argv[0]):
            print(f"skipped: no {argv[0]}")
            return
        p = subprocess.run(argv, capture_output=True, text=True, env={**os.environ, **(env or {})}, timeout=300)
        text = measure.read(where) if where else p.stdout + p.stderr
        print("\n".join(line for line in text.splitlines() if not keep or re.search(keep, line)))

    show("libraries that the launcher loads", ["ldd", launch])
    with tempfile.TemporaryDirectory() as d:
        out = os.path.join(d, "out")
        for n in (1, 8, 64):
            show(f"system calls of guard, agent and {n} workers", ["strace", "-f", "-c", "-o", out, launch, f"-n{n}", TRUE], where=out)
        show("library calls of the guard", ["ltrace", "-c", "-o", out, launch, "-n8", TRUE], where=out)
    show("the dynamic linker's work for the launcher (first process)", [launch, "-n1", TRUE],
         env={"LD_DEBUG": "statistics"}, keep=r":\s+(total startup|.*relocation|.*load time|number of)")
    print("\n== phases of a start of 8 workers, as the log of states tells")
    p = subprocess.run([launch, "-n8", TRUE], capture_output=True, text=True, env={**os.environ, "LAUNCH_LOG": "debug"})
    print("\n".join(line for line in p.stderr.splitlines() if "->" in line) or "not told")


def parse(argv):
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog="items: " + ", ".join(ITEMS))
    p.add_argument("item", nargs="*", help="what to measure; all by default")
    p.add_argument("--quick", action="store_true", help="few rounds, small amounts: a look, not a measurement")
    p.add_argument("--json", metavar="FILE", default=os.path.join(measure.BUILD, "bench.json"), help="[default: %(default)s]")
    p.add_argument("--starts", type=int, metavar="N", help="so many starts in the item `starts` (which it selects)")
    p.add_argument("--strict", action="store_true", help="exit code 1 also if something is over its goal")
    p.add_argument("--limit", type=float, metavar="SECONDS", help="items that were not begun by then are skipped")
    p.add_argument("--markdown", metavar="FILE", nargs="?", const=os.path.join(measure.BUILD, "bench.json"),
                   help="print the table of a JSON file, and nothing else [default: what --json has]")
    p.add_argument("--explain-start", action="store_true", help="what a start pays for, and nothing else")
    options = p.parse_args(argv)
    for item in options.item:
        if item not in ITEMS:
            p.error(f"no item '{item}'; there are: {', '.join(ITEMS)}")
    if options.starts is not None and options.starts < 1:
        p.error("--starts: at least 1")
    if options.starts and not options.item:
        options.item = ["starts"]
    return options


class Stopped(Exception):
    """SIGTERM, as timeout(1) sends it: what was measured so far is kept."""


def stop(*_):
    raise Stopped()


def main(argv):
    options = parse(argv)
    if options.markdown:
        try:
            print(table.markdown(json.loads(measure.read(options.markdown))))
        except (ValueError, KeyError, TypeError) as e:
            print(f"run.py: {options.markdown}: not what --json writes: {e!r}", file=sys.stderr)
            return 2
        return 0
    if not os.access(measure.LAUNCH, os.X_OK) or not os.access(helper("stopwatch"), os.X_OK):
        print(f"run.py: {measure.LAUNCH} or its helpers are not built: make bench", file=sys.stderr)
        return 2
    if options.explain_start:
        explain_start()
        return 0
    where = measure.machine()
    print(" | ".join(f"{k} {v}" for k, v in where.items() if v is not None))
    signal.signal(signal.SIGTERM, stop)
    begin = time.monotonic()
    bench = Bench(options)
    results, versions = bench.results, bench.peers.versions()
    for item in options.item or ITEMS:
        try:
            if options.limit and time.monotonic() - begin > options.limit:
                results.skip(item, "all of it", f"the time is over (--limit={options.limit:g})")
            else:
                getattr(bench, item)()
        except (Failed, subprocess.TimeoutExpired, OSError) as e:
            results.fail(item, str(e))
        except Stopped:
            results.fail(item, "stopped by SIGTERM")
            options.limit = 1e-9
        results.write(options.json, machine=where, peers=versions, quick=options.quick, items=list(options.item or ITEMS))
    over = [row for row in results.rows if row["verdict"] == "over"]
    print(f"{len(results.rows)} rows, {len(over)} over their goal, {len(results.failed)} not measured; {options.json}")
    return 1 if results.failed or (options.strict and over) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
