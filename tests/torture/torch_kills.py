#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A PyTorch job one rank of which is killed again and again: it must come to the loss of one rank in peace.

    torch_kills.py [-n KILLS] [-s SEED] [--ranks N] [--gpu] [--share] PYTHON LAUNCHER [ITS OPTIONS...]

PYTHON has torch. LAUNCHER is launch, or torchrun with --no_python for comparison. Each kill comes at a random moment after a
checkpoint of the attempt at hand was made, which is in the midst of all-reduces: the job, examples/torch/resume.py, does little
else. SIGKILL and SIGSEGV take turns, as the same failure again and again would be waited after, for up to half a minute.
Afterwards no process of it may be left. --gpu: with NCCL, otherwise with gloo; --share: both ranks on one GPU, where the launcher
can't do that.
"""
import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/torch/resume.py")
SHARE = ["sh", "-c", 'NCCL_HOSTID=$RANK LOCAL_RANK=0 exec "$@"', "sh"]
MARK = "LAUNCH_TORTURE_MARK"
STEPS_PER_KILL, EVERY = 100, 20
DELAY_S = 0.02  # after a checkpoint, at most: fewer steps than are left of STEPS_PER_KILL
ATTEMPT_LIMIT_S, STEP_LIMIT_S = 120, 0.1
SIGNALS = (signal.SIGKILL, signal.SIGSEGV)


def members():
    """{pid: rank} of the job's processes; "none" for the launcher's own, whose environment has no rank."""
    found, mark = {}, f"{MARK}={os.getpid()}".encode()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                env = f.read().split(b"\0")
        except OSError:
            continue
        if mark in env:
            found[int(pid)] = next((e[5:].decode() for e in env if e.startswith(b"RANK=")), "none")
    return found


def stamp(path):
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return None


def await_progress(job, path):
    """Until this attempt has made a checkpoint."""
    before, limit = stamp(path), time.monotonic() + ATTEMPT_LIMIT_S
    while stamp(path) == before:
        if job.poll() is not None or time.monotonic() > limit:
            return False
        time.sleep(0.002)
    return True


def kill_one(dice, sig):
    """Kills a rank and waits until it is gone: what it was about to write is written or never will be."""
    victim = dice.choice(sorted(pid for pid, rank in members().items() if rank != "none"))
    os.kill(victim, sig)
    limit = time.monotonic() + ATTEMPT_LIMIT_S
    while os.path.exists(f"/proc/{victim}") and time.monotonic() < limit:
        time.sleep(0.002)


def await_end(job, kills):
    """Most of the steps may be left: kills come sooner than STEPS_PER_KILL allows for."""
    try:
        return job.wait(timeout=ATTEMPT_LIMIT_S + kills * STEP_LIMIT_S * STEPS_PER_KILL)
    except subprocess.TimeoutExpired:
        for pid in members():
            os.kill(pid, 9)
        job.wait()
        return "none in time"


def ends(text):
    """(last step, loss) of each rank that came to the end."""
    return [(int(last), float(loss)) for last, loss in re.findall(r"^rank .*: steps \d+ to (\d+), loss ([\d.]+)$", text, re.M)]


def run_and_kill(command, env, kills, dice):
    """(exit code, kills made, stdout, stderr)"""
    made = 0
    with open("out", "w+", encoding="utf-8") as out, open("err", "w+", encoding="utf-8") as err:
        job = subprocess.Popen(command, env=env, stdout=out, stderr=err)
        while made < kills and await_progress(job, "checkpoint.pt"):
            time.sleep(dice.random() * DELAY_S)
            kill_one(dice, SIGNALS[made % len(SIGNALS)])
            made += 1
        code = await_end(job, kills)
        out.seek(0)
        err.seek(0)
        return code, made, out.read(), err.read()


def main():
    options = argparse.ArgumentParser()
    options.add_argument("-n", type=int, default=100)
    options.add_argument("-s", type=int, default=int(time.time()))
    options.add_argument("--ranks", type=int, default=2)
    options.add_argument("--gpu", action="store_true")
    options.add_argument("--share", action="store_true")
    options.add_argument("python")
    options.add_argument("launcher", nargs=argparse.REMAINDER)
    options = options.parse_args()
    launcher = [os.path.abspath(options.launcher[0]), *options.launcher[1:]]
    script = [options.python, "-u", SCRIPT, f"--epochs={(options.n + 2) * STEPS_PER_KILL // 8}", f"--every={EVERY}"]
    env = {**os.environ, MARK: str(os.getpid()), **({} if options.gpu else {"CUDA_VISIBLE_DEVICES": ""})}
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        peace = subprocess.run([*launcher, *script, "--checkpoint=peace.pt"], env=env, capture_output=True, text=True, check=False)
        started = time.monotonic()
        code, made, text, report = run_and_kill(
            [*launcher, f"--nproc_per_node={options.ranks}", f"--max_restarts={options.n}", *(SHARE if options.share else []), *script], env,
            options.n, random.Random(options.s))
        took_s = time.monotonic() - started
        os.chdir("/")
    want, got = ends(peace.stdout), ends(text)
    same = len(want) == 1 and len(got) == options.ranks and all(step == want[0][0] and abs(loss - want[0][1]) < 1e-3 for step, loss in got)
    named = len(re.findall(r"rank \d of \d failed first: it was killed by SIG(?:KILL|SEGV)", report))
    left = members()
    for pid in left:
        os.kill(pid, 9)
    good = code == 0 and made == options.n and same and not left and (named == made or os.path.basename(launcher[0]) != "launch")
    print(f"{made} kills of {options.n}, seed {options.s}: exit code {code}, {named} named in a report, "
          f"{'the' if same else 'NOT the'} loss of one rank in peace, {len(left)} processes left, {took_s / (made + 1):.1f} s an attempt")
    if not good:
        print(f"--- in peace ({peace.returncode})\n{peace.stdout}{peace.stderr[-2000:]}--- killed\n{text}{report[-6000:]}")
    sys.exit(not good)


main()
