#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Two jobs that live for hours while their ranks die: one heals, one is started again. Flat memory and descriptors, logged.

    soak.py [--hours H] [--log FILE.csv] [-s SEED] LAUNCH JOB

JOB is tests/fake/heal_job.c. A rank of either job is killed every PAUSE seconds or so; `launch ps`, `status` and `logs` look at
them now and then. Every EVERY seconds a row goes to the log: descriptors, kB resident, threads and children of guard and agent
of each, and the entries of /dev/shm. At the end the medians of the second and of the last tenth are compared.
"""
import argparse
import csv
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from heal import RANKS, children, measures, pid_of, until

KINDS = ["heal", "restart"]
RANK = 'echo $$ >new.$RANK; mv new.$RANK pid.$RANK; echo "rank $RANK"; exec sleep 86400'


class Job:
    def __init__(self, kind, options):
        self.kind, self.kills, self.rows = kind, 0, []
        self.where = os.path.join(os.getcwd(), kind)
        os.mkdir(self.where)
        how = ["--on-failure=heal", "--standby=exec", options.job, "0"] if kind == "heal" else ["sh", "-c", RANK]
        argv = [options.launch, f"--nproc-per-node={RANKS}", "--max-restarts=1000000", f"--run-id=soak-{kind}.{os.getpid()}",
                *how]
        with open(f"{self.where}/err", "wb") as err:
            self.process = subprocess.Popen(argv, cwd=self.where, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err)
        self.all_there({})
        self.agent = children(self.process.pid)[0]

    def ranks(self):
        os.chdir(self.where)
        return {r: pid_of(r) for r in range(RANKS)}

    def all_there(self, gone):
        """Every rank has a process, and none of the gone ones."""
        def there():
            if self.process.poll() is not None:
                sys.exit(f"soak.py: {self.kind}: the job ended with {self.process.returncode}")
            now = self.ranks()
            return all(now.values()) and not any(now[r] == pid for r, pid in gone.items())
        until(there, f"{self.kind}: new ranks for {gone}")

    def kill(self, dice):
        before = self.ranks()
        victim = dice.randrange(RANKS)
        # The same failure twice in a row would be waited for, up to 30 s.
        os.kill(before[victim], [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT][self.kills % 3])
        self.all_there({victim: before[victim]} if self.kind == "heal" else before)
        self.kills += 1

    def look(self, seconds):
        spare = self.kind == "heal"
        until(lambda: len(children(self.agent)) == RANKS + spare, "all but ranks and a standby are gone")
        row = [round(seconds), self.kind, self.kills]
        for pid in (self.process.pid, self.agent):
            row += [measures(pid)[what] for what in ("descriptors", "kB", "threads")]
        row += [len(children(self.agent)), len(os.listdir("/dev/shm"))]
        self.rows.append(row)
        return row


def queries(options, jobs):
    for argv in (["ps", "--json"], *(["status", f"soak-{j.kind}.{os.getpid()}", "--json"] for j in jobs), ["logs", f"soak-restart.{os.getpid()}"]):
        done = subprocess.run([options.launch, *argv], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=60, check=False)
        if done.returncode:
            sys.exit(f"soak.py: launch {argv}: {done.returncode}: {done.stderr.decode()}")


def grown(job, options):
    tenth = max(len(job.rows) // 10, 1)
    early, late = job.rows[tenth:2 * tenth] or job.rows[:1], job.rows[-tenth:]
    bad = []
    for at, name, noise in ((3, "guard fds", 0), (4, "guard kB", options.growth), (6, "agent fds", 0), (7, "agent kB", options.growth),
                            (8, "agent threads", 0)):
        a, b = (statistics.median(row[at] for row in rows) for rows in (early, late))
        print(f"{job.kind}: {job.kills} kills: {name} {a:g} -> {b:g}")
        if b > a + noise:
            bad.append(f"{job.kind}: {name}")
    return bad


def soak(options, log):
    dice = random.Random(options.seed)
    jobs = [Job(kind, options) for kind in KINDS]
    begun = next_row = time.monotonic()
    out = csv.writer(log)
    out.writerow("seconds job kills guard_fds guard_kB guard_threads agent_fds agent_kB agent_threads children shm".split())
    try:
        while time.monotonic() < begun + options.hours * 3600:
            for job in jobs:
                job.kill(dice)
            if time.monotonic() >= next_row:
                queries(options, jobs)
                out.writerows(job.look(time.monotonic() - begun) for job in jobs)
                log.flush()
                next_row += options.every
            time.sleep(dice.random() * 2 * options.pause)
    finally:
        for job in jobs:
            job.process.terminate()
        codes = [job.process.wait(60) for job in jobs]
    bad = [what for job in jobs for what in grown(job, options)]
    if bad or codes != [128 + signal.SIGTERM] * len(jobs):
        sys.exit(f"soak.py: seed {options.seed}: grows: {bad}, exit codes {codes}")


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--hours", type=float, default=2)
    p.add_argument("--log", default="soak.csv")
    p.add_argument("--every", type=float, default=30, metavar="SECONDS")
    p.add_argument("--pause", type=float, default=1, metavar="SECONDS")
    p.add_argument("--growth", type=int, metavar="KB", default=512, help="of a process that is taken for noise")
    p.add_argument("-s", "--seed", type=int, default=random.randrange(1 << 31))
    p.add_argument("launch")
    p.add_argument("job")
    options = p.parse_args()
    options.launch, options.job = os.path.abspath(options.launch), os.path.abspath(options.job)
    with open(options.log, "w", encoding="ascii") as log, tempfile.TemporaryDirectory() as where:
        os.chdir(where)
        soak(options, log)
        os.chdir("/")


if __name__ == "__main__":
    main()
