#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# limit: 120
"""Real PyTorch with gloo: the rendezvous of env://, collectives, DDP, and what code that knows torchelastic asks for.

Elastic-aware code: is_torchelastic_launched() of torch/distributed/distributed_c10d.py."""
import sys

sys.dont_write_bytecode = True
from torchlib import check, done, find_python, launch  # noqa: E402

SCRIPT = """
import os, torch, torch.distributed as dist
e = os.environ
assert dist.is_torchelastic_launched() and e["TORCHELASTIC_RUN_ID"] == "night"
dist.init_process_group("gloo", init_method="env://")
rank, world = dist.get_rank(), dist.get_world_size()
assert (rank, world) == (int(e["RANK"]), int(e["WORLD_SIZE"])) and e["LOCAL_RANK"] == e["RANK"]
store = dist.distributed_c10d._get_default_store()
while hasattr(store, "underlying_store"): store = store.underlying_store
assert store.port == int(e["MASTER_PORT"]), store.port  # hosted by rank 0, not by the launcher
t = torch.full((3,), float(rank)); dist.all_reduce(t)
g = [None] * world; dist.all_gather_object(g, (rank, e["MASTER_PORT"]))
assert g == [(r, e["MASTER_PORT"]) for r in range(world)], g
torch.manual_seed(rank)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
model(torch.ones(8, 4) * (rank + 1)).sum().backward()
grad = model.module.weight.grad
assert torch.equal(grad, torch.full((2, 4), 8 * (world + 1) / 2)), grad  # the mean over the ranks
sums = [torch.empty(()) for _ in range(world)]; dist.all_gather(sums, model.module.weight.detach().sum())
assert len({s.item() for s in sums}) == 1  # rank 0's parameters everywhere
dist.barrier(); dist.destroy_process_group()
print("rank %d of %d: sum %g" % (rank, world, t[0]), flush=True)
os._exit(0)  # torch 1.13 now and then aborts while the interpreter ends: a thread of its own is not joined
"""


def main():
    python = find_python()
    with open("job.py", "w", encoding="utf-8") as f:
        f.write(SCRIPT)
    r = launch("--standalone", "--nproc-per-node=4", "--rdzv-id=night", "job.py", PYTHON_EXEC=python)
    check("four ranks", r.returncode == 0 and
          sorted(r.stdout.splitlines()) == [f"rank {rank} of 4: sum 6" for rank in range(4)], r)
    done()


main()
