#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A PyTorch job over gloo one rank of which is killed again and again: it must come to the loss of one rank in peace.

    torch_kills.py [-n KILLS] [-s SEED] PYTHON LAUNCH

PYTHON has torch. Each kill comes at a random moment after a checkpoint of the attempt at hand was made, which is in the midst
of all-reduces: the job, examples/torch/resume.py, does little else. Afterwards no process of it may be left.
"""
import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../examples/torch/resume.py")
MARK = "LAUNCH_TORTURE_MARK"
STEPS_PER_KILL, EVERY = 100, 20
DELAY_S = 0.02  # after a checkpoint, at most: fewer steps than are left of STEPS_PER_KILL
ATTEMPT_LIMIT_S = 120


def ranks(mark):
    """{rank: pid} of the job's workers: their environment has a rank, and their parent's has none."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                env = dict(e.split(b"=", 1) for e in f.read().split(b"\0") if b"=" in e)
            if env.get(MARK.encode()) == mark.encode():
                found[int(pid)] = env.get(b"RANK", b"none").decode()
        except OSError:
            pass
    return found


def stamp(path):
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return None


def await_progress(job, path):
    """Until this attempt has made a checkpoint; what one of the last attempt was left unfinished does not count."""
    before, limit = stamp(path), time.monotonic() + ATTEMPT_LIMIT_S
    while stamp(path) == before:
        if job.poll() is not None or time.monotonic() > limit:
            return False
        time.sleep(0.002)
    return True


def kill_one(dice, mark):
    victim = dice.choice(sorted(pid for pid, rank in ranks(mark).items() if rank != "none"))
    os.kill(victim, 9)
    return victim


def await_end(pid):
    limit = time.monotonic() + ATTEMPT_LIMIT_S
    while os.path.exists(f"/proc/{pid}") and time.monotonic() < limit:
        time.sleep(0.002)


def ends(text):
    """(last step, loss) of each rank that came to the end."""
    return [(int(last), float(loss)) for last, loss in re.findall(r"^rank .*: steps \d+ to (\d+), loss ([\d.]+)$", text, re.M)]


def main():
    options = argparse.ArgumentParser()
    options.add_argument("-n", type=int, default=100)
    options.add_argument("-s", type=int, default=int(time.time()))
    options.add_argument("python")
    options.add_argument("launch")
    options = options.parse_args()
    dice = random.Random(options.s)
    epochs = (options.n + 2) * STEPS_PER_KILL // 8
    mark = str(os.getpid())
    env = {**os.environ, MARK: mark, "CUDA_VISIBLE_DEVICES": ""}
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        launch = os.path.abspath(options.launch)
        os.chdir(place)
        script = [options.python, "-u", SCRIPT, f"--epochs={epochs}", f"--every={EVERY}"]
        peace = subprocess.run([launch, *script, "--checkpoint=peace.pt"], env=env, capture_output=True, text=True, check=False)
        kills = 0
        with open("out", "w+", encoding="utf-8") as out, open("err", "w+", encoding="utf-8") as err:
            job = subprocess.Popen([launch, "--nproc-per-node=2", f"--max-restarts={options.n}", "--shutdown-timeout=5", *script],
                                   env=env, stdout=out, stderr=err)
            while kills < options.n and await_progress(job, "checkpoint.pt"):
                time.sleep(dice.random() * DELAY_S)
                await_end(kill_one(dice, mark))
                kills += 1
            code = job.wait(timeout=ATTEMPT_LIMIT_S)
            out.seek(0)
            err.seek(0)
            text, report = out.read(), err.read()
        os.chdir("/")
    want, got = ends(peace.stdout), ends(text)
    same = len(want) == 1 and len(got) == 2 and all(step == want[0][0] and abs(loss - want[0][1]) < 1e-4 for step, loss in got)
    named = len(re.findall(r"rank \d of 2 failed first: it was killed by SIGKILL", report))
    left = ranks(mark)
    for pid in left:
        os.kill(pid, 9)
    good = code == 0 and kills == options.n == named and same and not left
    print(f"{kills} kills of {options.n}, seed {options.s}: exit code {code}, {named} named in a report, "
          f"{'the' if same else 'NOT the'} loss of one rank in peace, {len(left)} processes left, "
          f"{(time.monotonic() - started) / (kills + 2):.1f} s an attempt")
    if not good:
        print(f"--- in peace ({peace.returncode})\n{peace.stdout}{peace.stderr[-2000:]}--- killed\n{text}{report[-6000:]}")
    sys.exit(not good)


main()
