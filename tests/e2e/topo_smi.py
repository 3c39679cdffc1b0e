#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# limit: 120
"""On a machine with nvidia-smi: launch topo has the same cells as `nvidia-smi topo -m` and `topo -p2p`.

    topo_smi.py               compares (part of make check)
    topo_smi.py --time [N]    compares, then runs both N times in turns and tells the medians
    topo_smi.py --record DIR  compares, and writes what both said into DIR"""
import os
import re
import shutil
import statistics
import subprocess
import sys
import time

LAUNCH = os.environ.get("LAUNCH", "build/launch")


def output(*command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, timeout=60).stdout


def table(text):
    """Rows of the matrix at the top of the text: {device: {heading: cell}}, in the words of the headings."""
    rows, headings = {}, None
    for line in re.sub(r"\033\[[0-9;]*m", "", text).splitlines():
        cells = [cell.strip() for cell in (line.split("\t") if "\t" in line else re.split(r"  +", line.rstrip()))]
        if headings is None and any(re.fullmatch(r"GPU\d+", cell) for cell in cells[1:]):
            headings = [cell for cell in cells if cell]
        elif re.fullmatch(r"(GPU|NIC)\d+", cells[0]):
            # nvidia-smi puts more tabs than columns before the last one.
            last = len(headings) if cells[0].startswith("GPU") else sum(bool(re.match("GPU|NIC", h)) for h in headings)
            rows[cells[0]] = dict(zip(headings, [cell for cell in cells[1:] if cell][:last]))
        elif headings is not None and cells[0] not in headings:
            break
    return rows


def compare(what, theirs, ours):
    theirs, ours = table(theirs), table(ours)
    wrong = [f"{what}: no matrix"] if not theirs else []
    for device in theirs.keys() | ours.keys():
        a, b = theirs.get(device, {}), ours.get(device, {})
        for heading in sorted(a.keys() | b.keys()):
            if a.get(heading) != b.get(heading):
                wrong.append(f"{what}: {device}, {heading}: nvidia-smi says {a.get(heading)}, launch {b.get(heading)}")
    return wrong


def medians(n, *commands):
    times = [[] for _ in commands]
    for _ in range(n):
        for command, took in zip(commands, times):
            start = time.monotonic()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            took.append((time.monotonic() - start) * 1000)
    return [statistics.median(took) for took in times]


def main():
    smi = shutil.which("nvidia-smi")
    if not smi or subprocess.run([smi, "-L"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
        print("no nvidia-smi with a GPU")
        sys.exit(77)
    said, wrong = {}, []
    for name, theirs, ours in [("topo -m", ["-m"], ["-m"]), ("topo -m and all the rest", ["-m"], [])] + [(f"topo -p2p {k}", ["-p2p", k], ["--p2p", k]) for k in "rwnap"]:
        said[name] = output(smi, "topo", *theirs), output(LAUNCH, "topo", *ours)
        wrong += compare(name, *said[name])
    print("\n".join(wrong) or f"{len(said)} matrices have the same cells")
    args = sys.argv[1:]
    if args[:1] == ["--record"]:
        for name, texts in said.items():
            for who, text in zip(("smi", "launch"), texts):
                with open(f"{args[1]}/{who}.{name.replace(' ', '')}.txt", "w", encoding="utf-8") as f:
                    f.write(text)
    if args[:1] == ["--time"]:
        n = int(args[1]) if args[1:] else 21
        commands = [smi, "topo", "-m"], [LAUNCH, "topo", "-m"], [LAUNCH, "topo"], [smi, "topo", "-p2p", "r"], [LAUNCH, "topo", "--p2p=r"]
        took = medians(n, *commands)
        print(f"medians of {n}:", *(f"{took[k]:.1f} ms  {took[of] / took[k]:.1f}x  {' '.join([os.path.basename(commands[k][0]), *commands[k][1:]])}"
                                    for k, of in enumerate([0, 0, 0, 3, 3])), sep="\n  ")
    sys.exit(bool(wrong))


main()
