#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# limit: 300
"""A training run in real PyTorch, unchanged: DDP comes to the same loss with any number of ranks; one that crashes goes on
from its checkpoint; one that is asked to end saves first. DataLoader's processes are gone afterwards."""
import os
import re
import signal
import sys
import time

sys.dont_write_bytecode = True
from torchlib import EXAMPLES, check, done, find_python, finish, launch, left, start  # noqa: E402


def losses(run):
    """{rank: (world size, first step, last step, loss)} of what resume.py prints."""
    found = re.findall(r"^rank (\d+) of (\d+): steps (\d+) to (\d+), loss ([\d.]+)$", run.stdout, re.M)
    return {int(r): (int(n), int(first), int(last), float(loss)) for r, n, first, last, loss in found}


def a_crash_is_made_good_from_the_checkpoint(script, python):
    alone = losses(launch("--nproc-per-node=1", *script, "--checkpoint=alone.pt"))
    r = launch("--nproc-per-node=2", "--max-restarts=1", *script, "--crash-at=33", "--loaders=1")
    check("it succeeds", r.returncode == 0, r)
    check("both ranks go on from the last checkpoint and come to the loss of one rank, on the same examples, uninterrupted",
          0 in alone and sorted(losses(r)) == [0, 1] and
          all(first == 30 and last == 64 and abs(loss - alone[0][3]) < 1e-5 for _, first, last, loss in losses(r).values()), r)
    check("the culprit is named, not the rank that lost its peer", f"launch: {python}: rank 1 of 2 failed first: it exited with code 1 " in r.stderr, r)
    check("with what @record wrote", "launch:   it said: RuntimeError: a bad example in step 33\n" in r.stderr and
          re.search(r"its traceback:\n(launch:   \|.*\n)*launch:   \| RuntimeError: a bad example in step 33\n", r.stderr), r)
    check(f"no process of a DataLoader is left: {left()}", not left(), r)


def who_is_asked_to_end_saves_first(script):
    running = start("--nproc-per-node=2", *script, "--epochs=1000000", "--checkpoint=term.pt")
    limit = time.monotonic() + 100
    while not os.path.exists("term.pt") and running.poll() is None and time.monotonic() < limit:
        time.sleep(0.01)
    running.send_signal(signal.SIGTERM)
    r = finish(running)
    ends = {last for _, _, last, _ in losses(r).values()}
    check("the code is that of the signal", r.returncode == 128 + signal.SIGTERM, r)
    check("both ranks left after the same step", sorted(losses(r)) == [0, 1] and len(ends) == 1, r)
    r = launch("--nproc-per-node=1", *script, "--epochs=1", "--checkpoint=term.pt")
    check(f"which is saved: {ends}", {first for _, first, _, _ in losses(r).values()} == ends, r)


def main():
    python = find_python()
    script = [python, "-u", EXAMPLES + "/resume.py"]
    a_crash_is_made_good_from_the_checkpoint(script, python)
    who_is_asked_to_end_saves_first(script)
    done()


main()
