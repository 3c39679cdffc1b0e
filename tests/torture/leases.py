#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Jobs that race for the GPUs of one described server: no GPU is held twice, nobody waits for ever, and a job that is killed
gives its GPUs back.

    leases.py [-n ROUNDS] [-j JOBS] [-g GPUS] [-s SEED] LAUNCH

Each round starts all jobs at once, with random sizes and forms of --gpus, and kills some of them at a random instant. A worker
takes a lock of its own on each GPU that it was given: that fails if somebody else is on it. A round ends when
all jobs have; one that takes longer than the limit is a deadlock or a job that starves."""
import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

LIMIT_S = 60  # of a round
WORKER = r"""
for gpu in ${CUDA_VISIBLE_DEVICES//,/ }; do
    exec {fd}>"$MARKS/$gpu" || exit 8
    flock -n $fd || { echo "GPU $gpu of $TORCHELASTIC_RUN_ID is somebody else's, too"; exit 9; }
done
exec sleep $NAP
"""


def machine(root, gpus):
    for i in range(gpus):
        os.makedirs(f"{root}/proc/driver/nvidia/gpus/0000:{16 + i:02x}:00.0")
        with open(f"{root}/proc/driver/nvidia/gpus/0000:{16 + i:02x}:00.0/information", "w") as f:
            f.write(f"Device Minor: \t {i}\n")
        os.makedirs(f"{root}/dev", exist_ok=True)
        open(f"{root}/dev/nvidia{i}", "w").close()
    for d in ("sys/module/nvidia_uvm", "marks"):
        os.makedirs(f"{root}/{d}")
    with open(f"{root}/sys/module/nvidia_uvm/refcnt", "w") as f:
        f.write("0\n")


def wish(rng, gpus):
    """What a job asks for: most by number, some by name."""
    n = rng.choice([1, 1, 2, 2, 3, 4, gpus // 2, gpus])
    if rng.random() < 0.7:
        return str(n)
    if rng.random() < 0.2:
        return "all"
    first = rng.randrange(gpus)
    return f"{first}-{min(first + n, gpus) - 1}"


def agent_of(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            return int(f.read().split()[0])
    except (OSError, IndexError):
        return None


def kill_one(rng, job):
    victim = job.pid if rng.random() < 0.5 else agent_of(job.pid)
    if victim and job.poll() is None:
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            pass
    job.killed = True


def one_round(options, rng, root, number):
    env = {k: v for k, v in os.environ.items() if k != "CUDA_VISIBLE_DEVICES"}
    env |= {"LAUNCH_SYSROOT": root, "MARKS": f"{root}/marks", "LAUNCH_CGROUP": "off"}
    jobs, bad = [], []
    for i in range(options.jobs):
        argv = [options.launch, f"--run-id=r{number}.{i}", f"--gpus={wish(rng, options.gpus)}", "--wait",
                "bash", "-c", WORKER]
        job = subprocess.Popen(argv, env=env | {"NAP": f"{rng.choice([0, 0, 0.01, 0.03])}"}, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        job.killed = False
        job.what = argv[2]
        jobs.append(job)
    for job in jobs:
        if rng.random() < 0.15:
            time.sleep(rng.random() * 0.02)
            kill_one(rng, job)
    deadline = time.monotonic() + LIMIT_S
    for job in jobs:
        try:
            text = job.communicate(timeout=max(0.1, deadline - time.monotonic()))[0]
        except subprocess.TimeoutExpired:
            bad.append(f"{job.what}: still there after {LIMIT_S} s")
            job.kill()
            continue
        if "somebody else's" in text or (job.returncode and not job.killed):
            bad.append(f"{job.what}: exit code {job.returncode}: {text.strip()}")
    return bad


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("-n", "--rounds", type=int, default=20)
    p.add_argument("-j", "--jobs", type=int, default=8)
    p.add_argument("-g", "--gpus", type=int, default=8)
    p.add_argument("-s", "--seed", type=int, default=random.randrange(1 << 32))
    p.add_argument("launch")
    options = p.parse_args()
    rng, wrong, began = random.Random(options.seed), 0, time.monotonic()
    root = tempfile.mkdtemp(prefix="launch-leases-")
    try:
        machine(root, options.gpus)
        for number in range(options.rounds):
            for line in one_round(options, rng, root, number):
                print(f"round {number}: {line}", flush=True)
                wrong += 1
    finally:
        shutil.rmtree(root, ignore_errors=True)
    print(f"seed {options.seed}: {options.rounds} rounds of {options.jobs} jobs for {options.gpus} GPUs, "
          f"{time.monotonic() - began:.0f} s: {wrong} wrong")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
