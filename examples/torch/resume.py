# SPDX-License-Identifier: MIT
"""Data-parallel training that goes on from its last checkpoint. Plain PyTorch: it knows nothing of `launch`.

The same examples make up each step, however many ranks share it, so that 1, 2 or 4 ranks come to the same loss, with or
without an interruption.
"""
import argparse
import itertools
import os
import signal
import traceback

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

EXAMPLES, BATCH = 512, 64  # BATCH: of all ranks together
STEPS = EXAMPLES // BATCH  # in an epoch

asked_to_stop = False


def on_sigterm(_signal, _frame):
    global asked_to_stop
    asked_to_stop = True


def everyone_shall_stop(device):
    """Ranks are asked at slightly different times; all leave after the same step."""
    flag = torch.tensor(float(asked_to_stop), device=device)
    dist.all_reduce(flag, dist.ReduceOp.MAX)
    return bool(flag)


def save(path, model, optimizer, step):
    """To a new file first: whatever happens meanwhile, there is a whole checkpoint."""
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, path + ".new")
    os.replace(path + ".new", path)


def restore(path, model, optimizer, device):
    """The step that the checkpoint was made after; 0 without one."""
    if not os.path.exists(path):
        return 0
    saved = torch.load(path, map_location=device)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    return saved["step"]


def train(options, device):
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    inputs = torch.randn(EXAMPLES, 8)
    targets = torch.sin(inputs).sum(1, keepdim=True)
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    step = first = restore(options.checkpoint, model, optimizer, device)
    replicas = DistributedDataParallel(model)
    dataset = TensorDataset(inputs, targets)
    sampler = DistributedSampler(dataset, shuffle=True, seed=1)
    loader = DataLoader(dataset, BATCH // world, sampler=sampler, num_workers=options.loaders,
                        persistent_workers=options.loaders > 0)

    stopped = False
    for epoch in range(step // STEPS, options.epochs):
        sampler.set_epoch(epoch)
        for x, y in itertools.islice(loader, step % STEPS, None):  # those before are in the checkpoint
            if step == options.crash_at and rank == 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
                raise RuntimeError(f"a bad example in step {step}")
            loss = torch.nn.functional.mse_loss(replicas(x.to(device)), y.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            stopped = everyone_shall_stop(device)
            if rank == 0 and (stopped or step % options.every == 0):
                save(options.checkpoint, model, optimizer, step)
            if stopped:
                break
        if stopped:
            break

    with torch.no_grad():
        loss = torch.nn.functional.mse_loss(model(inputs.to(device)), targets.to(device))
    print(f"rank {rank} of {world}: steps {first} to {step}, loss {loss.item():.6f}", flush=True)


@record  # so that the report has the traceback
def main():
    options = argparse.ArgumentParser()
    options.add_argument("--epochs", type=int, default=8)
    options.add_argument("--checkpoint", default="checkpoint.pt")
    options.add_argument("--every", type=int, default=10, help="steps between checkpoints")
    options.add_argument("--loaders", type=int, default=0, help="DataLoader's processes, of each rank")
    options.add_argument("--crash-at", type=int, help="step of the first attempt in which rank 1 fails")
    options = options.parse_args()

    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    signal.signal(signal.SIGTERM, on_sigterm)
    dist.init_process_group("nccl" if on_gpu else "gloo")
    train(options, device)
    # The model has gone by now: PyTorch 1.13 can hang when it goes after the process group.
    dist.destroy_process_group()


if __name__ == "__main__":
    try:
        main()
    except Exception:  # @record has written it down
        traceback.print_exc()
        # Not by way of the interpreter's end: a thread of gloo's that frees its last tensor after that aborts the process (seen
        # with PyTorch 1.13), destroy_process_group() or not, and SIGABRT would be reported in the place of the exception.
        os._exit(1)
