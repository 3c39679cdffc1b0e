# SPDX-License-Identifier: MIT
"""torch_again.py FILE: in the first attempt a rank kills itself amid all-reduces over gloo, after it has written the time to FILE;
in the second one the milliseconds since then are printed once all ranks were in an all-reduce."""
import os
import signal
import sys
import time

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
x = torch.ones(1)
dist.all_reduce(x)
if os.environ["TORCHELASTIC_RESTART_COUNT"] != "0":
    now = time.monotonic()
    if dist.get_rank() == 0:
        with open(sys.argv[1], encoding="ascii") as f:
            print("again", (now - float(f.read())) * 1e3, flush=True)
    sys.exit()
while True:
    if dist.get_rank() == 1:
        with open(sys.argv[1], "w", encoding="ascii") as f:
            f.write(repr(time.monotonic()))
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(x)
