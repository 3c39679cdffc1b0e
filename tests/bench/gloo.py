# SPDX-License-Identifier: MIT
"""gloo.py LATENCY_ROUNDS LARGE_ROUNDS: what collective.c measures, over PyTorch's gloo. Prints the same lines."""
import sys
import time

import torch
import torch.distributed as dist


def measure(name, rounds, call):
    for i in range(-1 - rounds // 10, rounds):
        if name != "barrier":
            dist.barrier()
        start = time.monotonic_ns()
        call()
        if i >= 0 and dist.get_rank() == 0:
            print(name, time.monotonic_ns() - start)


latency, large = map(int, sys.argv[1:])
dist.init_process_group("gloo")
small, big = torch.ones(2), torch.ones((64 << 20) // 4 if large else 1)
measure("barrier", latency, dist.barrier)
measure("all_reduce_8B", latency, lambda: dist.all_reduce(small))
measure("all_reduce_64MiB", large, lambda: dist.all_reduce(big))
