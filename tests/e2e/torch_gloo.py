#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# limit: 300
"""Real PyTorch with gloo under the launcher: the rendezvous of env://, collectives, DDP, a restart."""
import os
import re
import shutil
import subprocess
import sys

LAUNCH, SRC = os.environ["LAUNCH"], os.environ["SRC"]

SCRIPT = """
import os, torch, torch.distributed as dist
e = os.environ
assert dist.is_torchelastic_launched()
dist.init_process_group("gloo", init_method="env://")
rank, world = dist.get_rank(), dist.get_world_size()
assert (rank, world) == (int(e["RANK"]), int(e["WORLD_SIZE"])) and e["LOCAL_RANK"] == e["RANK"]
store = dist.distributed_c10d._get_default_store()
while hasattr(store, "underlying_store"): store = store.underlying_store
assert store.port == int(e["MASTER_PORT"]), store.port  # hosted by rank 0, not by the launcher
attempt = int(e["TORCHELASTIC_RESTART_COUNT"])
t = torch.full((3,), float(rank)); dist.all_reduce(t)
if rank == 1 and attempt < int(e.get("FAIL_ATTEMPTS", 0)): os._exit(3)
g = [None] * world; dist.all_gather_object(g, (rank, attempt))
assert g == [(r, attempt) for r in range(world)], g
torch.manual_seed(rank)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
model(torch.ones(8, 4) * (rank + 1)).sum().backward()
grad = model.module.weight.grad
assert torch.equal(grad, torch.full((2, 4), 8 * (world + 1) / 2)), grad  # the mean over the ranks
sums = [torch.empty(()) for _ in range(world)]; dist.all_gather(sums, model.module.weight.detach().sum())
assert len({s.item() for s in sums}) == 1  # rank 0's parameters everywhere
dist.barrier(); dist.destroy_process_group()
print("rank %d of %d attempt %d: sum %g" % (rank, world, attempt, t[0]), flush=True)
os._exit(0)  # torch 1.13 now and then aborts while the interpreter ends: a thread of its own is not joined
"""

failures = []


def find_python():
    """One that has torch; the first on PATH may be another than the distribution's."""
    tried = dict.fromkeys(filter(None, [os.environ.get("PYTHON"), shutil.which("python3"), "/usr/bin/python3"]))
    for python in tried:
        if subprocess.run([python, "-c", "import torch.distributed"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0:
            return python
    print("no PyTorch in " + ", ".join(tried) + " (python3-torch)")
    sys.exit(77)


def check(what, holds, run):
    if not holds:
        failures.append(what)
        print(f"FAIL: {what}: exit {run.returncode}\n{run.stdout}{run.stderr}")


def launch(*arguments, **env):
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    clean.update(env, CUDA_VISIBLE_DEVICES="")
    return subprocess.run([LAUNCH, *arguments], env=clean, text=True, capture_output=True, timeout=200)


def lines(world, attempt):
    total = world * (world - 1) // 2
    return [f"rank {r} of {world} attempt {attempt}: sum {total}" for r in range(world)]


def main():
    python = find_python()
    with open("job.py", "w", encoding="utf-8") as f:
        f.write(SCRIPT)
    r = launch("--nproc-per-node=4", python, "job.py")
    check("four ranks", r.returncode == 0 and sorted(r.stdout.splitlines()) == lines(4, 0), r)
    r = launch("--nproc-per-node=2", "--max-restarts=1", python, "job.py", FAIL_ATTEMPTS="1")
    check("a restart", r.returncode == 0 and sorted(r.stdout.splitlines()) == lines(2, 1), r)
    check("its reason", re.search("rank 1 of 2 failed first: it exited with code 3", r.stderr), r)
    r = launch("--nproc-per-node=3", python, SRC + "/examples/torch/ddp.py")
    check("the example", r.returncode == 0 and re.fullmatch(r"3 ranks, gloo: loss after 50 steps 0\.00\d+\n", r.stdout), r)
    sys.exit(bool(failures))


main()
