#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Frameworks find the job by what they read, in our own words here; neither is installed.

Lightning, github.com/Lightning-AI/pytorch-lightning:
  src/lightning/fabric/connector.py @523c8dd09505253dabe90b8c6995ef1466404b4f, _choose_and_init_cluster_environment(): TorchElastic
    is asked before SLURM, LSF and MPI
  src/lightning/fabric/plugins/environments/torchelastic.py @062199a23ad3aca0506843590e2324d4f3fabd72, TorchElasticEnvironment:
    detect() is torch's is_torchelastic_launched(), that is, TORCHELASTIC_RUN_ID is set; then MASTER_ADDR, MASTER_PORT, WORLD_SIZE,
    RANK, LOCAL_RANK, GROUP_RANK; devices * nodes must be WORLD_SIZE
  src/lightning/fabric/utilities/rank_zero.py @0a6ba1029349b4c7122d5e0f8110dcc360b9b927, _get_rank(): RANK, LOCAL_RANK, SLURM_PROCID, ...
Accelerate, github.com/huggingface/accelerate:
  src/accelerate/state.py @b3a1aed2e129bb30176ae888501b697cf0ac902e, PartialState.__init__(): LOCAL_RANK other than -1 means that
    there is a group to join; on CPUs OMP_NUM_THREADS = 0 or unset makes it choose one itself, and MASTER_PORT is 29500 if unset
  src/accelerate/utils/environment.py @9b64bbf59c42a5cb714d00323f612bdb30e2dd38, get_cpu_distributed_information(): of each list
    the first variable with a number of 0 or more
"""
import json
import os
import subprocess
import sys

PROBE = """
import json, os
def first(*names, default):
    return next((v for v in (int(os.environ.get(n, -1)) for n in names) if v >= 0), default)
e = os.environ
lightning = None
if e.get("TORCHELASTIC_RUN_ID") is not None:
    lightning = {"address": e["MASTER_ADDR"], "port": int(e["MASTER_PORT"]) > 0, "world": int(e["WORLD_SIZE"]), "rank": int(e["RANK"]),
                 "local": int(e["LOCAL_RANK"]), "node": int(e.get("GROUP_RANK", 0)),
                 "log": next(int(e[n]) for n in ("RANK", "LOCAL_RANK", "SLURM_PROCID", "JSM_NAMESPACE_RANK") if n in e)}
accelerate = {"group": int(e.get("LOCAL_RANK", -1)) != -1,
              "rank": first("RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", default=0),
              "world": first("WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", default=1),
              "local": first("LOCAL_RANK", "MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_RANK", default=0),
              "local_world": first("LOCAL_WORLD_SIZE", "MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", default=1),
              "threads": first("OMP_NUM_THREADS", default=0) > 0, "port": bool(e.get("MASTER_PORT"))}
print(json.dumps({"lightning": lightning, "accelerate": accelerate}))
"""

# What an outer batch system or MPI left in the environment.
FOREIGN = {"SLURM_NTASKS": "64", "SLURM_PROCID": "17", "SLURM_JOB_NAME": "train", "OMPI_COMM_WORLD_RANK": "9", "OMPI_COMM_WORLD_SIZE": "12",
           "OMPI_COMM_WORLD_LOCAL_RANK": "3", "OMPI_COMM_WORLD_LOCAL_SIZE": "4", "PMI_RANK": "9", "PMI_SIZE": "12", "RANK": "7",
           "WORLD_SIZE": "99", "LOCAL_RANK": "5", "GROUP_RANK": "2"}


def main():
    failed = 0
    for what, options, foreign, local in [("alone", [], {}, lambda rank: rank), ("inside a batch job", [], FOREIGN, lambda rank: rank),
                                          ("with a GPU each", ["--virtual-local-rank"], FOREIGN, lambda rank: 0)]:
        run = subprocess.run([os.environ["LAUNCH"], "--nproc-per-node=3", *options, sys.executable, "-c", PROBE],
                             env={**os.environ, **foreign}, capture_output=True, text=True, check=False)
        expected = [{"lightning": {"address": "127.0.0.1", "port": True, "world": 3, "rank": r, "local": local(r), "node": 0, "log": r},
                     "accelerate": {"group": True, "rank": r, "world": 3, "local": local(r), "local_world": 3, "threads": True,
                                    "port": True}} for r in range(3)]
        got = sorted(map(json.loads, run.stdout.splitlines()), key=lambda found: found["accelerate"]["rank"])
        if got != expected:
            failed += 1
            print(f"FAIL: {what}: exit {run.returncode}\n{run.stderr}", *got, "expected:", *expected, sep="\n")
    sys.exit(bool(failed))


main()
