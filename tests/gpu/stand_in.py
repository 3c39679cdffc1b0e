#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""For FAKE=1, under the names of programs that only a GPU server has: nvidia-smi and nccl-tests, which print what those would,
in their form; and mpirun, which executes the program once."""
import os
import re
import sys

FIELDS = {"name": "NVIDIA H200", "driver_version": "580.159.04", "memory.used": "4 MiB", "compute_cap": "9.0"}


def smi(words):
    gpus = int(os.environ["FAKE_GPUS"])
    query = next((w.partition("=")[2] for w in words if w.startswith("--query-gpu=")), None)
    if query:
        for _ in range(gpus):
            print(", ".join(FIELDS.get(f, "[N/A]") for f in query.split(",")))
    elif words[:2] == ["topo", "-m"]:
        print(open(os.environ["FAKE_SMI_TOPO"], encoding="utf-8").read(), end="")
    elif words[:2] == ["topo", "-p2p"]:
        print(" \t" + "\t".join(f"GPU{i}" for i in range(gpus)))
        for i in range(gpus):
            print(f" GPU{i}\t" + "\t".join("X" if i == j else "OK" for j in range(gpus)))
        print("\nLegend:\n\n  X    = Self\n  OK   = Status Ok")
    else:
        print("\n".join(f"GPU {i}: NVIDIA H200 (UUID: GPU-0)" for i in range(gpus)))


def size_of(text):
    return int(float(text.rstrip("KMG")) * 1024 ** (" KMG".find(text[-1]) if text[-1] in "KMG" else 0))


def perf(name, words):
    flags = dict(zip(words[::2], words[1::2]))
    ranks, at, factor = int(flags["-g"]), size_of(flags["-b"]), int(flags["-f"])
    print(f"# nccl-tests version 2.19.6 nccl-headers=22809 nccl-library=22809\n# Collective test starting: {name}")
    print("# Using devices")
    for i in range(ranks):
        print(f"#  Rank {i:2d} Group  0 Pid {os.getpid():6d} on       here device {i:2d} [0000:00:{6 + i:02x}] NVIDIA H200")
    print("#\n#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong ")
    while at <= size_of(flags["-e"]):
        # Of the same whole 16 bytes for each rank, where each has a part.
        size = at if name.startswith(("all_reduce", "broadcast", "reduce_perf", "sendrecv")) else (at // 4 // ranks & -4) * 4 * ranks
        us = 13 + at / 340e3
        half = f"{us:8.2f} {at / us / 1e3:7.2f} {at / us / 1e3:7.2f} {'N/A' if flags['-c'] == '0' else '0':>7}"
        print(f"{size:12d} {size // 4:13d}     float     sum      -1 {half} {half}")
        at *= factor
    print(f"# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 96.9600\n#\n# Collective test concluded: {name}")


def main():
    name, words = os.path.basename(sys.argv[0]), sys.argv[1:]
    if name == "nvidia-smi":
        smi(words)
    elif name == "mpirun":
        while re.match("-", words[0]):  # options: -np has a value
            words = words[2 if words[0] in ("-np", "-n", "-x") else 1:]
        os.environ["OMPI_COMM_WORLD_RANK"] = "0"
        os.execvp(words[0], words)
    else:
        perf(name, words)


main()
