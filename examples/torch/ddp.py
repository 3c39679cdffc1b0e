# SPDX-License-Identifier: MIT
"""A data-parallel training run in plain PyTorch: it knows nothing of `launch`."""
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

STEPS, BATCH = 50, 64
WEIGHTS = torch.tensor([[1.0], [-2.0], [0.5], [3.0]])


def train(device):
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)  # the same start on every rank; DDP would see to it as well
    model = DistributedDataParallel(torch.nn.Linear(4, 1, bias=False).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.Generator().manual_seed(1 + rank)  # but other examples
    for _ in range(STEPS):
        x = torch.randn(BATCH, 4, generator=data)
        loss = torch.nn.functional.mse_loss(model(x.to(device)), (x @ WEIGHTS).to(device))
        optimizer.zero_grad()
        loss.backward()  # gradients are averaged over the ranks here
        optimizer.step()

    total = loss.detach().clone()
    dist.all_reduce(total)
    if rank == 0:
        print(f"{world} ranks, {dist.get_backend()}: loss after {STEPS} steps {total.item() / world:.4f}")


def main():
    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if on_gpu else "gloo")  # rank, world size and address: environment
    train(device)
    # The model has gone by now: PyTorch 1.13 can hang when it goes after the process group.
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
