# SPDX-License-Identifier: MIT
"""What a job of torture.py does and what is done to it: all of it follows from the seed and the job's number."""
import os
import random

SLEEP = "exec sleep 300"
WORKERS = {
    # name: script; all run for ever unless something ends them
    "sleep": SLEEP,
    "deaf": "trap '' TERM HUP INT; while :; do sleep 300; done",
    "tree": "sleep 300 & setsid sleep 300 & (setsid sh -c 'sleep 300 & sleep 300') & exec sleep 300",
    "daemon": "(setsid sh -c '(setsid sleep 300 &) & exit 0' &); exec sleep 300",
    "storm": "i=0; while [ $i -lt 60 ]; do (true &); i=$((i + 1)); done; exec sleep 300",
    "bomb": "f() { for i in 1 2 3; do ([ $1 = 0 ] || f $(($1 - 1)); exec sleep 300) & done; }; f 1; exec sleep 300",
    "stopped": "sh -c 'kill -STOP $$; exec sleep 300' & kill -STOP $$; exec sleep 300",
    "loud": "while :; do echo $RANK; done",
    "heal": None,  # liblaunch's; checks every sum, ends with 9 if one is wrong
    # these end by themselves
    "short": "exit 0",
    "fail": "[ $RANK = 1 ] && exit 9; exec sleep 300",
    "race": "[ $RANK = 0 ] && exit 7; [ $RANK = 1 ] && exit 9; exec sleep 300",
    "segv": "[ $RANK = 1 ] && kill -SEGV $$; exec sleep 300",
    "early": "[ $RANK = 0 ] && exit 0; exec sleep 300",
    "leaver": "sleep 300 & exit 0",
    "late": '"$TORTURE_JOB" 0 & exit 0',  # what joins is not the worker, and comes when that has ended
    "chatty": "i=0; while [ $i -lt 300 ]; do echo a line that is written to be read; i=$((i + 1)); done; exit 0",
    "sums": None,
}
ENDS = {"short": 0, "fail": 9, "segv": 139, "leaver": 0, "late": 0, "chatty": 0, "sums": 0}
HAVE_HEIRS = {"deaf", "tree", "daemon", "storm", "bomb", "stopped", "leaver", "late"}
VICTIMS = ["guard", "agent", "worker", "grandchild", "none"]
SIGNALS = ["KILL", "KILL", "KILL", "TERM", "INT", "HUP", "STOP", "PAUSE", "SEGV"]  # after STOP comes KILL, PAUSE is STOP and CONT
ASKS = [["ps"], ["status", "RUN"], ["status", "RUN", "--json"], ["logs", "RUN", "--follow"], ["stop", "RUN"], ["restart", "RUN"],
        ["grow", "RUN"], ["signal", "RUN", "TERM"]]
# Whom the C library fails and how: tests/fake/faults.c.
FAULTS = ["memory", "interrupt", "descriptors", "disk", "short", "fork", "clone", "slow", "clock", "disk short", "interrupt slow"]
HARMLESS = {"interrupt", "short", "slow", "clock", "interrupt slow"}
WORLDS = ["reader goes", "nobody reads", "stdout closed", "stderr closed", "stdout full", "few descriptors", "small files", "full disk",
          "full shm", "no stdin"]


class Hit:
    def __init__(self, r, later):
        self.victim = r.choice(VICTIMS)
        self.signal = r.choice(SIGNALS)
        # Half of the kills fall into the first 5 ms, where everything is half made.
        self.after_s = 0 if later and r.random() < 0.3 else r.random() * (0.005 if r.random() < 0.5 else 0.15)
        self.pick = r.random()
        if self.victim in ("guard", "agent") and self.signal == "KILL" and self.pick < 0.25:
            self.victim = "both"  # at once: nobody of ours is left

    def __str__(self):
        return f"{self.signal} to {self.victim} after {self.after_s * 1e3:.2f} ms"


class Plan:
    """What job i of a seed does."""

    def __init__(self, seed, i, kinds, failing):
        r = random.Random(f"{seed}/{i}")
        self.kind = r.choice(kinds)
        self.n = r.choice([1, 1, 2, 3, 4, 8])
        if self.kind in ("fail", "early", "segv", "race"):
            self.n = max(self.n, 2)
        if self.kind == "short":
            self.n = r.choice([self.n, self.n, 32, 33, 64])
        self.grace_ms = r.choice([0, 20, 300, 300])
        self.hits = [Hit(r, False)] + ([Hit(r, True)] if r.random() < 0.25 else [])
        self.second_s = r.random() * 0.05
        self.restarts = r.choice([0, 0, 0, 1, 2])
        self.world = r.choice(WORLDS) if r.random() < 0.25 else None
        self.limit = r.choice([0, 1, 64, 4096, 1 << 16]) if self.world == "small files" else r.randrange(12, 64)
        self.faults = r.choice(FAULTS) if r.random() < failing else None
        self.faults_where = r.choice(["guard", "agent", "agent", "launch", "workers"])
        self.faults_rate = r.choice([3, 10, 30, 100, 300, 1000])
        self.faults_seed = r.randrange(1 << 30)
        self.options = []
        self.detach = self.gpus = False
        self.log_dir = self.world == "full disk" or r.random() < 0.15
        self.draw_options(r)
        self.asks = [(r.random() * 0.03, r.choice(ASKS), r.random() < 0.5) for _ in range(r.choice([0, 0, 0, 0, 1, 2, 3]))]

    def draw_options(self, r):
        if self.kind in ("heal", "sums"):
            self.options += r.choice([[], ["--on-failure=heal"], ["--on-failure=heal", "--standby=exec"],
                                      ["--on-failure=shrink", "--min-workers=1"]])
            if self.options:
                self.restarts = max(self.restarts, 1)
        if r.random() < 0.2:
            self.options.append(f"--tee={r.choice([1, 2, 3])}")
            self.log_dir = True  # else it is one in TMPDIR that stays
        if r.random() < 0.1:
            self.options.append("--hang-timeout=40ms")
        if r.random() < 0.1:
            self.options.append(f"--timeout={r.choice([5, 20, 60])}ms")
        if r.random() < 0.1:
            self.options.append("--cgroup=off")
        if r.random() < 0.12:
            self.gpus = True
            gpus = r.choice([1, 2, 4])
            self.options += [f"--gpus={gpus}", "--wait"]
            if self.kind in ("heal", "sums"):  # they use the GPU of their rank
                self.n = min(self.n, gpus)
        if r.random() < 0.08:
            self.detach = self.log_dir = True
            self.options.append("--detach")

    def fails_launch(self):
        """The launcher itself may have to give up."""
        return self.world or (self.faults and self.faults not in HARMLESS and self.faults_where != "workers")

    def __str__(self):
        text = f"{self.n} x {self.kind}, grace {self.grace_ms} ms, restarts {self.restarts}, " + ", ".join(map(str, self.hits))
        for name in ("options", "asks", "world"):
            if getattr(self, name):
                text += f", {name} {getattr(self, name)}"
        if self.world in ("small files", "few descriptors"):
            text += f" ({self.limit})"
        if self.log_dir:
            text += ", log dir"
        return text + (f", faults {self.faults} in {self.faults_where} at {self.faults_rate}" if self.faults else "")

    def fault_environment(self, library):
        if not self.faults:
            return {}
        return {"LD_PRELOAD": library, "FAULTS": self.faults, "FAULTS_WHERE": self.faults_where, "FAULTS_RATE": str(self.faults_rate),
                "FAULTS_SEED": str(self.faults_seed)}


def fake_machine(root, gpus):
    """A described server, for --gpus; what a job leaves in its lease directory are unlocked files."""
    for i in range(gpus):
        pci = f"0000:{16 + i:02x}:00.0"
        os.makedirs(f"{root}/proc/driver/nvidia/gpus/{pci}")
        os.makedirs(f"{root}/dev", exist_ok=True)
        with open(f"{root}/proc/driver/nvidia/gpus/{pci}/information", "w", encoding="ascii") as f:
            f.write(f"Device Minor: \t {i}\n")
        open(f"{root}/dev/nvidia{i}", "wb").close()
