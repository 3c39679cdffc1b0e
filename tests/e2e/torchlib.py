# SPDX-License-Identifier: MIT
"""What the tests with real PyTorch share: a Python that has it, a launcher to run, and a count of failures."""
import os
import shutil
import subprocess
import sys

LAUNCH, SRC = os.environ["LAUNCH"], os.environ["SRC"]
EXAMPLES = SRC + "/examples/torch"
MARK = "LAUNCH_TEST_MARK"  # in the environment of everything that is started here

failures = []


def find_python():
    """One that has torch; the first on PATH may be another than the distribution's. Skips the test if there is none."""
    tried = dict.fromkeys(filter(None, [os.environ.get("PYTHON"), shutil.which("python3"), "/usr/bin/python3"]))
    for python in tried:
        if subprocess.run([python, "-c", "import torch.distributed"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0:
            return python
    print("no PyTorch in " + ", ".join(tried) + " (python3-torch)")
    sys.exit(77)


def environment(env):
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    return {**clean, MARK: str(os.getpid()), "CUDA_VISIBLE_DEVICES": "", **env}


def start(*arguments, **env):
    return subprocess.Popen([LAUNCH, *arguments], env=environment(env), text=True, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def finish(job):
    """Waits for it; as subprocess.run()."""
    out, err = job.communicate(timeout=200)
    return subprocess.CompletedProcess(job.args, job.returncode, out, err)


def launch(*arguments, **env):
    return finish(start(*arguments, **env))


def check(what, holds, run):
    if not holds:
        failures.append(what)
        print(f"FAIL: {what}: exit {run.returncode}\n{run.stdout}{run.stderr}")


def read(path):
    """Bytes of a file of /proc; none if its process has gone."""
    try:
        with open(path, "rb") as f:
            return f.read()
    except OSError:
        return b""


def left():
    """Processes of ours that are still there: ranks, DataLoader's workers, anything they started."""
    mark = f"{MARK}={os.getpid()}".encode()
    return [int(p) for p in os.listdir("/proc") if p.isdigit() and mark in read(f"/proc/{p}/environ").split(b"\0")]


def done():
    sys.exit(bool(failures))
