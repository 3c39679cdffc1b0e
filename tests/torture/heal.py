#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Heals one job again and again: no growth of descriptors, memory or shared memory, right sums after every one.

    heal.py [-n HEALS] [-s SEED] [--gpus] LAUNCH JOB

JOB is tests/fake/heal_job.c, which checks every sum and ends with 9 if one is wrong. Each time one rank, sometimes two or three, at
times while the others heal, or a standby as well, are killed with SIGKILL at a random instant; then all must have met again, in the
processes they had or in new ones. One rank is never killed: it and the agent are measured. --gpus: with the CUDA and NCCL of
tests/fake, which tell at the end of a process what it did not give back.
"""
import argparse
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import time

RANKS = 4
LIMIT_S = 60
LOOKS = 16


def pid_of(rank):
    try:
        with open(f"pid.{rank}", encoding="ascii") as f:
            return int(f.read() or 0)
    except (OSError, ValueError):
        return 0


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return [int(p) for p in f.read().split()]
    except OSError:
        return []


def until(test, what):
    end = time.monotonic() + LIMIT_S
    while not test():
        if time.monotonic() > end:
            sys.exit(f"heal.py: not within {LIMIT_S} s: {what}")
        select.select([], [], [], 0.001)


def measures(pid):
    """What must not grow in a process."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        kb = {k: int(v.split()[0]) for k, v in (line.split(":", 1) for line in f) if k in ("RssAnon", "RssShmem", "Threads")}
    with open(f"/proc/{pid}/maps", encoding="ascii") as f:
        maps = sum(1 for _ in f)
    return {"descriptors": len(os.listdir(f"/proc/{pid}/fd")), "mappings": maps, "threads": kb["Threads"], "kB": kb["RssAnon"],
            "kB shared": kb["RssShmem"]}


class Growth:
    """Looks at the agent and the spared rank from time to time. Some things come once and stay, whenever that happens to be: the helper
    that listens to NVML, half a second after the start; the pages of a buffer that is used for the first time, such as when the rank
    is the one whose state the others take, or takes another's. What leaks comes again and again: at more than half of the looks there
    is more of it than ever before."""

    def __init__(self, heals):
        self.every = max(1, heals // LOOKS)
        self.first, self.most, self.rises, self.looks = {}, {}, {}, 0

    def look(self, pids):
        self.looks += 1
        for who, pid in pids.items():
            for what, n in measures(pid).items():
                key = f"{who}: {what}"
                self.first.setdefault(key, n)
                if n > self.most.setdefault(key, n):
                    self.most[key] = n
                    self.rises[key] = self.rises.get(key, 0) + 1

    def tell(self, noise_kb):
        """What has grown."""
        grown = []
        for key, first in self.first.items():
            rises, most = self.rises.get(key, 0), self.most[key]
            print(f"  {key}: {first}, at most {most}" + (f", more than before at {rises} of {self.looks} looks" if rises else ""))
            if rises > self.looks / 2 and most - first > (noise_kb if " kB" in key else 0):
                grown.append(key)
        return grown


def fake_gpus(env):
    """A machine with a GPU for each rank."""
    for i in range(RANKS):
        pci = f"0000:{16 + i:02x}:00.0"
        where = f"machine/proc/driver/nvidia/gpus/{pci}"
        os.makedirs(where)
        os.makedirs("machine/dev", exist_ok=True)
        with open(f"{where}/information", "w", encoding="ascii") as f:
            f.write(f"Model: \t\t Fake GPU\nGPU UUID: \t GPU-{160 + i:08x}-0000-0000-0000-000000000000\n"
                    f"Bus Location: \t {pci}\nDevice Minor: \t {i}\n")
        open(f"machine/dev/nvidia{i}", "wb").close()
    fakes = os.path.dirname(env["JOB"])
    return {**env, "LAUNCH_SYSROOT": os.path.abspath("machine"), "LD_LIBRARY_PATH": fakes, "FAKE_GPUS": str(RANKS), "FAKE_LEAKS": "1"}


def heal(job, agent, dice, spared):
    """Kills and waits until everybody is back."""
    before = [pid_of(r) for r in range(RANKS)]
    victims = dice.sample([r for r in range(RANKS) if r != spared], dice.choice([1, 1, 1, 2, 3]))
    time.sleep(dice.random() * 0.002)
    if dice.random() < 0.1:
        for standby in set(children(agent)) - set(before):
            os.kill(standby, signal.SIGKILL)
    for v in victims:
        os.kill(before[v], signal.SIGKILL)
        time.sleep(dice.random() * 0.001)
    until(lambda: job.poll() is not None or all(pid_of(v) not in (0, before[v]) for v in victims), f"new ranks {victims}")
    if job.poll() is not None:
        sys.exit(f"heal.py: the job ended with {job.returncode}")
    for r in set(range(RANKS)) - set(victims):
        if pid_of(r) != before[r]:
            sys.exit(f"heal.py: rank {r}, a survivor, has another process")


def torture(options):
    dice = random.Random(options.seed)
    spared = dice.randrange(RANKS)
    env = {**os.environ, "JOB": options.job, "CUDA_VISIBLE_DEVICES": ""}
    if options.gpus:
        del env["CUDA_VISIBLE_DEVICES"]
        env = fake_gpus(env)
    argv = [options.launch, f"--nproc-per-node={RANKS}", "--max-restarts=1000000", "--on-failure=heal", "--standby=exec",
            options.job, "0"]
    growth = Growth(options.n)
    with open("err", "wb") as err:
        job = subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err)
    try:
        until(lambda: all(pid_of(r) for r in range(RANKS)), "the first ranks")
        agent = children(job.pid)[0]
        for i in range(options.n):
            heal(job, agent, dice, spared)
            if i % growth.every == 0:
                until(lambda: len(children(agent)) == RANKS + 1, "all but ranks and a standby are gone")
                growth.look({"agent": agent, "survivor": pid_of(spared)})
    except SystemExit:
        print(open("err", encoding="utf-8").read()[-3000:], file=sys.stderr)
        raise
    finally:
        job.terminate()
        code = job.wait(LIMIT_S)
    said = open("err", encoding="utf-8").read()
    print(f"{options.n} heals, seed {options.seed}:")
    grown = growth.tell(options.growth)
    if code != 128 + signal.SIGTERM:
        sys.exit(f"heal.py: exit code {code}: " + said[-2000:])
    if "fake:" in said:
        sys.exit("heal.py: something is left on the GPUs: " + said[-2000:])
    if grown:
        sys.exit("heal.py: it grows: " + ", ".join(grown))


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("-n", type=int, default=1000)
    p.add_argument("-s", "--seed", type=int, default=random.randrange(1 << 31))
    p.add_argument("--growth", type=int, metavar="KB", default=1024, help="of memory that is taken for noise")
    p.add_argument("--gpus", action="store_true", help="with fake CUDA and NCCL")
    p.add_argument("launch")
    p.add_argument("job")
    options = p.parse_args()
    options.launch, options.job = os.path.abspath(options.launch), os.path.abspath(options.job)
    with tempfile.TemporaryDirectory() as where:
        os.chdir(where)
        torture(options)
        os.chdir("/")


if __name__ == "__main__":
    main()
