# SPDX-License-Identifier: MIT
"""What tests/bench/run.py measures with: samples, peers, processes of a job, the table. Knows no item and no goal."""

import json
import os
import platform
import re
import shutil
import signal
import subprocess
import time

SRC = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD") or os.path.join(SRC, "build")
LAUNCH = os.path.join(BUILD, "launch")


EXPONENT = ": exponent"  # ends the name of a row that says how a series grows


class Failed(Exception):
    """A measurement that could not be made; its text is for people."""


def helper(name):
    return os.path.join(BUILD, "tests/bench", name)


# ---- samples ----


def spread(samples):
    """Median, quartiles and extremes of some numbers, as what the JSON holds."""
    s = sorted(samples)
    at = lambda q: s[round(q * (len(s) - 1))]
    return {"median": at(0.5), "least": s[0], "q1": at(0.25), "q3": at(0.75), "most": s[-1], "n": len(s)}


def interleave(rounds, measures):
    """Takes samples of all measures {name: (function, rounds or None)} in turn, so that what else the machine
    does hits all alike. A function returns a number, a tuple of numbers, or None (no value this time)."""
    taken = {name: [] for name in measures}
    for i in range(rounds):
        for name, (function, at_most) in measures.items():
            if at_most is None or i < at_most:
                value = function()
                if value is not None:
                    taken[name].append(value)
    return taken


# ---- running programs ----


def run(argv, limit=120, **kw):
    """Output of a program that must end with 0."""
    try:
        p = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           timeout=limit, text=True, **kw)
    except subprocess.TimeoutExpired:
        raise Failed(f"no end after {limit} s: {' '.join(argv)}")
    if p.returncode:
        tail = (p.stderr.strip().splitlines() or [""])[-1]
        raise Failed(f"exit code {p.returncode}: {' '.join(argv)}: {tail}")
    return p.stdout


def stopwatch(argv, limit_ms=10000, rounds=1):
    """[(milliseconds or None for a hang, exit code or "hang")] of whole runs, timed outside Python."""
    out = run([helper("stopwatch"), str(rounds), str(limit_ms), *argv], limit=rounds * limit_ms / 1000 + 60)
    pairs = (line.split() for line in out.splitlines())
    return [(None, "hang") if code == "hang" else (int(ns) / 1e6, int(code)) for ns, code in pairs]


# ---- who is measured ----


# Where a PyTorch may be: what is asked for, what `make bench-deps` installs, the user's, the distribution's.
PYTHONS = [p for p in (os.environ.get("BENCH_PYTHON"), os.path.join(SRC, "build/bench-venv/bin/python"), "python3", "/usr/bin/python3")
           if p and shutil.which(p)]


def gloo_python():
    """A Python whose torch has gloo, and that torch's version; or (None, None)."""
    for python in PYTHONS:
        code = "import torch, torch.distributed as d; assert d.is_available() and d.is_gloo_available(); print(torch.__version__)"
        code = code.replace("d.is_gloo_available()", "getattr(d, 'is_gloo_available', d.is_available)()")
        try:
            p = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=90)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if p.returncode == 0:
            return python, p.stdout.strip()
    return None, None


def torchrun_reason():
    """(argv in front of options, None) or (None, why not)."""
    why = "torchrun: no python3"
    for python in PYTHONS:
        argv = [python, "-m", "torch.distributed.run"]
        probe = [*argv, "--standalone", "--nproc_per_node=1", "--no_python", "/bin/true"]
        try:
            p = subprocess.run(probe, capture_output=True, text=True, timeout=90)
        except (OSError, subprocess.TimeoutExpired) as e:
            why = f"torchrun: {e}"
            continue
        if p.returncode == 0:
            return argv, None
        why = "torchrun: " + (p.stderr.strip().splitlines() or [f"exit code {p.returncode}"])[-1]
    return None, why[:160]


def torch_python():
    """One that has PyTorch, or None."""
    for python in ("python3", "/usr/bin/python3"):
        if shutil.which(python) and subprocess.run([python, "-c", "import torch.distributed"], capture_output=True).returncode == 0:
            return python
    return None


class Peers:
    """How each launcher is asked for n workers. Absent ones have a reason in .absent."""

    def __init__(self, wanted):
        self.absent = {}
        self.found = {}
        self.gloo = self.torch = None
        for name, argv in {
            "openmpi": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"],
            "hydra": ["mpirun.mpich"],
        }.items():
            if name not in wanted:
                continue
            if shutil.which(argv[0]):
                self.found[name] = argv
            else:
                self.absent[name] = f"no {argv[0]}"
        if "torchrun" in wanted:
            argv, why = torchrun_reason()
            if argv:
                self.found["torchrun"] = argv
            else:
                self.absent["torchrun"] = why
            self.gloo, self.torch = gloo_python()

    def versions(self):
        """{name: version} of those that are measured."""
        found = {name: first_line(argv[0], "--version").split()[-1] for name, argv in self.found.items() if name == "openmpi"}
        if "hydra" in self.found:
            out = subprocess.run(["mpirun.mpich", "--version"], capture_output=True, text=True).stdout
            found["hydra"] = (re.search(r"Version: *(\S+)", out) or ("", "?"))[1]
        if "torchrun" in self.found:
            found["torchrun"] = "torch " + first_line(self.found["torchrun"][0], "-c", "import torch; print(torch.__version__)")
        if self.gloo:
            found["gloo"] = "torch " + self.torch
        return found

    def names(self, *among):
        return [name for name in among if name in self.found]

    def argv(self, name, n, *program):
        """name "launch": ours, with its options in the front of program up to "--"."""
        if name == "launch":
            options = list(program[: program.index("--")]) if "--" in program else []
            rest = list(program[program.index("--") + 1 :]) if "--" in program else list(program)
            return [LAUNCH, f"--nproc-per-node={n}", *options, *rest]
        if name in ("spawn", "fork"):
            return [helper("floor"), name, str(n), *program]
        if name == "torchrun":
            return [*self.found[name], "--standalone", f"--nproc_per_node={n}", "--no_python", *program]
        return [*self.found[name], "-n", str(n), *program]


# ---- the processes of a job ----


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def descendants(pid):
    """{pid: comm} of a process and everything below it."""
    children = {}
    names = {}
    for entry in os.listdir("/proc"):
        m = entry.isdigit() and re.match(r"\d+ \((.*)\) . (\d+) ", read(f"/proc/{entry}/stat"), re.S)
        if m:
            names[int(entry)] = m.group(1)
            children.setdefault(int(m.group(2)), []).append(int(entry))
    found, todo = {}, [pid]
    while todo:
        p = todo.pop()
        found[p] = names.get(p, "?")
        todo += children.get(p, [])
    return found


class Job:
    """A launcher in the background whose n workers are `sleep`s; killed with everything below it at the end."""

    def __init__(self, argv, n=None, comm="sleep", limit_s=60, **kw):
        kw.setdefault("stdout", subprocess.DEVNULL)
        kw.setdefault("stderr", subprocess.DEVNULL)
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, **kw)
        self.comm = comm
        deadline = time.monotonic() + limit_s
        while n is not None and len(self.workers()) < n:
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                raise Failed(f"{n} workers did not start: {' '.join(argv)}")
            time.sleep(0.02)

    def workers(self):
        return [p for p, comm in descendants(self.process.pid).items() if comm == self.comm]

    def launchers(self):
        """The processes that are there besides the workers."""
        return [p for p, comm in descendants(self.process.pid).items() if comm != self.comm]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        left = descendants(self.process.pid) if self.process.poll() is None else {}
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()


def memory_kb(pids):
    """(Rss, Pss, private) of some processes, summed."""
    sums = {"Rss": 0, "Pss": 0, "Private_Clean": 0, "Private_Dirty": 0}
    for pid in pids:
        for key, value in re.findall(r"^(\w+): +(\d+) kB", read(f"/proc/{pid}/smaps_rollup"), re.M):
            if key in sums:
                sums[key] += int(value)
    return sums["Rss"], sums["Pss"], sums["Private_Clean"] + sums["Private_Dirty"]


def switches(pids):
    """Context switches of all threads of some processes so far."""
    total = 0
    for pid in pids:
        for tid in os.listdir(f"/proc/{pid}/task"):
            total += sum(map(int, re.findall(r"ctxt_switches:\s+(\d+)", read(f"/proc/{pid}/task/{tid}/status"))))
    return total


# ---- where ----


def first_line(*argv):
    try:
        p = subprocess.run(argv, capture_output=True, text=True, timeout=30)
        return ((p.stdout or p.stderr).strip().splitlines() or ["?"])[0]
    except (OSError, subprocess.TimeoutExpired):
        return None


def machine():
    model = re.search(r"^model name\s*: (.*)$", read("/proc/cpuinfo"), re.M)
    memory = re.search(r"^MemTotal:\s+(\d+)", read("/proc/meminfo"), re.M)
    found = {
        "cpu": model.group(1) if model else platform.machine(),
        "cores": os.cpu_count(),
        "cores_allowed": len(os.sched_getaffinity(0)),
        "memory_mb": int(memory.group(1)) // 1024 if memory else None,
        "kernel": platform.release(),
        "libc": " ".join(platform.libc_ver()),
        "compiler": first_line("gcc", "--version"),
        "launch": first_line(LAUNCH, "--version"),
        "load": round(os.getloadavg()[0], 2),  # before anything of ours runs
        "date": time.strftime("%Y-%m-%d"),
    }
    return found


# ---- results ----


def short(value, unit):
    if value is None:
        return "-"
    if unit == "count":
        return f"{value:g}"
    text = f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{text} {unit}"


class Results:
    """Rows as they come; a line of the table each, and the JSON at the end."""

    COLUMNS = ((44, "name"), (26, "ours (quartiles)"), (10, "peer"), (26, "peer's (quartiles)"), (8, "ratio"), (14, "goal"), (5, ""))

    def __init__(self):
        self.rows = []
        self.skipped = []
        self.failed = []
        self.line("", *(title for _, title in self.COLUMNS))

    def line(self, _, *cells):
        print("  ".join(str(c).ljust(w) for (w, _), c in zip(self.COLUMNS, cells)).rstrip(), flush=True)

    @staticmethod
    def cell(s, unit):
        if s is None:
            return "-"
        text = short(s["median"], unit)
        if s["q1"] != s["q3"]:
            text += f" ({short(s['q1'], '').strip()}-{short(s['q3'], '').strip()})"
        return text

    def add(self, item, name, unit, ours, peer=None, peers=None, goal=None, limit=None, value=None, inverse=False, size=None,
            note=""):
        """ours, peers: samples. goal: text; limit: what `value` (default: the ratio to the peer, or our median when there
        is no peer) may be at most, at least when inverse. size: how many, in a row of a series. note: printed, not kept."""
        a = spread(ours) if ours else None
        b = spread(peers) if peers else None
        ratio = a["median"] / b["median"] if a and b and b["median"] else None
        if value is None:
            value = ratio if peer else a and a["median"]
        verdict = "info"
        if limit is not None and value is not None:
            verdict = "ok" if (value >= limit if inverse else value <= limit) else "over"
        self.rows.append({"item": item, "name": name, "unit": unit, "ours": a, "peer": peer, "peers": b, "ratio": ratio,
                          "goal": goal, "value": value, "limit": limit, "verdict": verdict, "size": size})
        self.line("", name, self.cell(a, unit), peer or "", self.cell(b, unit) if peer else "",
                  f"{ratio:.3g}" if ratio else note, goal or "", "" if verdict == "info" else verdict)

    def skip(self, item, what, why):
        self.skipped.append({"item": item, "what": what, "why": why})
        print(f"skipped: {item}: {what}: {why}", flush=True)

    def fail(self, item, why):
        self.failed.append({"item": item, "why": why})
        print(f"FAILED: {item}: {why}", flush=True)

    def write(self, path, **more):
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        whole = {"format": 1, **more, "rows": self.rows, "skipped": self.skipped, "failed": self.failed}
        with open(path + ".new", "w", encoding="utf-8") as f:
            json.dump(whole, f, indent=1)
            f.write("\n")
        os.replace(path + ".new", path)
