#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Heals one job again and again: no growth of descriptors or memory, right sums after every one.

    heal.py [-n HEALS] [-s SEED] LAUNCH JOB

JOB is tests/fake/heal_job.c, which checks every sum and ends with 9 if one is wrong. Each time one rank, sometimes two, or a
standby as well, are killed with SIGKILL at a random instant; then all must have met again, in the processes they had or in new ones.
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


def measures(pids):
    """(descriptors, kB resident) of some processes together."""
    fds = kb = 0
    for pid in pids:
        fds += len(os.listdir(f"/proc/{pid}/fd"))
        with open(f"/proc/{pid}/status", encoding="ascii") as f:
            kb += sum(int(line.split()[1]) for line in f if line.startswith("VmRSS"))
    return fds, kb


def heal(job, agent, dice):
    """Kills and waits until everybody is back."""
    before = [pid_of(r) for r in range(RANKS)]
    victims = dice.sample(range(RANKS), dice.choice([1, 1, 1, 2]))
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
    argv = [options.launch, f"--nproc-per-node={RANKS}", "--max-restarts=1000000", "--on-failure=heal", "--standby=exec",
            options.job, "0"]
    with open("err", "wb") as err:
        job = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err)
    try:
        until(lambda: all(pid_of(r) for r in range(RANKS)), "the first ranks")
        agent = children(job.pid)[0]
        early = None
        for i in range(options.n):
            heal(job, agent, dice)
            if i == options.n // 4:
                until(lambda: len(children(agent)) == RANKS + 1, "all but ranks and a standby are gone")
                early = measures([agent])
        until(lambda: len(children(agent)) == RANKS + 1, "all but ranks and a standby are gone")
        late = measures([agent])
    except SystemExit:
        print(open("err", encoding="utf-8").read()[-3000:], file=sys.stderr)
        raise
    finally:
        job.terminate()
        code = job.wait(LIMIT_S)
    print(f"{options.n} heals, seed {options.seed}: descriptors {early[0]} -> {late[0]}, kB {early[1]} -> {late[1]}")
    if code != 128 + signal.SIGTERM:
        sys.exit(f"heal.py: exit code {code}: " + open("err", encoding="utf-8").read()[-2000:])
    if late[0] > early[0] or late[1] > early[1] + options.growth:
        sys.exit("heal.py: the agent grows")


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("-n", type=int, default=1000)
    p.add_argument("-s", "--seed", type=int, default=random.randrange(1 << 31))
    p.add_argument("--growth", type=int, metavar="KB", default=512, help="of the agent that is taken for noise")
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
