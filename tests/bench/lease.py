# SPDX-License-Identifier: MIT
"""What a lease costs, and how soon the next job runs: on a described machine of 8 GPUs, as nobody's driver is asked there."""
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

import measure


class Machine:
    """A directory that LAUNCH_SYSROOT takes for a server with n GPUs that no program uses."""

    def __init__(self, n):
        self.root = tempfile.mkdtemp(prefix="launch-bench-")
        os.chmod(self.root, 0o755)
        for i in range(n):
            self.put(f"proc/driver/nvidia/gpus/0000:{16 + i:02x}:00.0/information", f"Device Minor: \t {i}\n")
            self.put(f"dev/nvidia{i}", "")
        self.put("sys/module/nvidia_uvm/refcnt", "0\n")
        self.env = {k: v for k, v in os.environ.items() if k != "CUDA_VISIBLE_DEVICES"} | {"LAUNCH_SYSROOT": self.root}

    def put(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.root, ignore_errors=True)


def launch(machine, *argv, **kw):
    return subprocess.Popen([measure.LAUNCH, *argv], env={**machine.env, **kw.pop("more", {})}, text=True,
                            stdin=subprocess.DEVNULL, **kw)


def take_ms(machine, n):
    p = launch(machine, f"--gpus={n}", "true", stderr=subprocess.PIPE, more={"LAUNCH_LOG": "debug"})
    text = p.communicate(timeout=30)[1]
    return float(re.search(r"lease: gpu\S+ after ([\d.]+) ms", text).group(1))


def hand_over_ms(machine):
    """SIGKILL of a job that holds all GPUs to the workers of the one that waits for them, told by the worker's own clock."""
    holder = launch(machine, "--gpus=8", "sh", "-c", "echo up; exec sleep 100", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    holder.stdout.readline()
    waiter = launch(machine, "--gpus=8", "--wait", "-n8", "date", "+%s%N", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if "in line" not in waiter.stderr.readline():
        raise measure.Failed("the second job does not wait")
    at = time.time_ns()
    holder.send_signal(signal.SIGKILL)
    lines = waiter.communicate(timeout=30)[0].split()
    holder.communicate()
    if waiter.returncode or len(lines) != 8:
        raise measure.Failed(f"the job that waited: exit code {waiter.returncode}, {len(lines)} workers")
    return (max(int(line) for line in lines) - at) / 1e6


def run(bench):
    with Machine(8) as machine:
        add = bench.results.add
        take_ms(machine, 8)
        for n in (1, 8):
            taken = [take_ms(machine, n) for _ in range(bench.rounds(40, 5))]
            add("lease", f"taking {n} of 8 GPUs", "ms", taken, goal="<= 0.5 ms", limit=0.5)
        with Machine(0) as none:
            start = lambda m: measure.stopwatch(["env", f"LAUNCH_SYSROOT={m.root}", measure.LAUNCH, "-n8", "/bin/true"])[0][0]
            both = measure.interleave(bench.rounds(60, 5), {"gpus": (lambda: start(machine), None), "none": (lambda: start(none), None)})
        add("lease", "start of 8 on 8 GPUs, shared hold included", "ms", both["gpus"])
        add("lease", "start of 8 without a GPU", "ms", both["none"])
        waited = [hand_over_ms(machine) for _ in range(bench.rounds(40, 5))]
        add("lease", "SIGKILL of a holder to 8 workers of the next", "ms", waited, goal="<= 10 ms", limit=10)
