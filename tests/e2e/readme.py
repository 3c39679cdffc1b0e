#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# limit: 300
"""Every ```console block of the READMEs does what it shows, and every link leads somewhere.

A block is one shell session: lines after "$ " are run, the rest is what they print, stderr included. Lines may come in any
order; "..." stands for anything within a line and, alone, for any other lines; pids, times and what launch bench measured are not compared. In the words after
"console", needs=torch, needs=python3, needs=pkg-config and needs=libdw skip a block where that is missing, gpus=N runs it on a described machine with N GPUs and
examples that were linked with fake CUDA and NCCL (otherwise there is no GPU), hang=p2p lets that NCCL hang unless P2P is off, machine=NAME on that one of tests/machines with a fake NVML. A ```c block that begins with /* NAME */, or a ```yaml block with # NAME, becomes that file. Other blocks are text."""
import ctypes.util
import os
import re
import shutil
import subprocess
import sys

SRC, BUILD = os.environ["SRC"], os.environ["BUILD"]
PAGES = ["README.md"]
MARK = "=-=-="


def torch_python():
    for python in filter(None, [shutil.which("python3"), "/usr/bin/python3"]):
        if subprocess.run([python, "-c", "import torch.distributed"], capture_output=True).returncode == 0:
            return python
    return None


def blocks(page):
    """(line, words after the ticks, text) of each fenced block."""
    info = start = None
    for number, line in enumerate(open(os.path.join(SRC, page), encoding="utf-8"), 1):
        if info is None and line.startswith("```"):
            info, start, text = line[3:].split(), number, []
        elif info is not None and line.startswith("```"):
            yield start, info or ["text"], text
            info = None
        elif info is not None:
            text.append(line.rstrip("\n"))


def steps(text):
    """(command, expected lines) of a console block."""
    found = []
    for line in text:
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line.startswith("> "):
            found[-1] = (found[-1][0] + "\n" + line[2:], [])
        else:
            found[-1][1].append(line)
    return found


def plain(line):
    line = re.sub(r"^( +\d+ +\d+ +\w+ +\w+ +-?\d+ ).*", r"\1#", line)  # a result of launch bench: the numbers are the machine's
    return re.sub(r"\bpid \d+|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|\d+\.\d+ s\b", "#", line)


def matches(expected, got):
    """Whether the lines of `got` are those expected, in any order."""
    rest = [plain(line) for line in got]
    more = "..." in expected
    wanted = [plain(line) for line in expected if line != "..."]
    for line in sorted(wanted, key=lambda line: "..." in line):  # whole lines first: a pattern takes what is left
        pattern = re.compile(".*".join(map(re.escape, line.split("..."))))
        hit = next((i for i, text in enumerate(rest) if pattern.fullmatch(text)), None)
        if hit is None:
            return False
        del rest[hit]
    return more or not rest


def link_all(names_from, into, but):
    for name in os.listdir(names_from):
        if name != but and not name.startswith("."):
            os.symlink(os.path.join(names_from, name), os.path.join(into, name))


def lay_out():
    """Work trees that look like the project's, of links: one here, one in gpu/ whose build/examples/ are the fakes'."""
    link_all(SRC, ".", "build")
    os.symlink(BUILD, "build")
    os.makedirs("gpu/build")
    link_all(SRC, "gpu", "build")
    link_all(BUILD, "gpu/build", "examples")
    os.symlink(BUILD + "/tests/fake", "gpu/build/examples")


def environment(needs, python):
    env = {k: v for k, v in os.environ.items() if k not in ("LAUNCH", "MAKELEVEL", "CUDA_VISIBLE_DEVICES")}
    # The variables of an outer make's command line (CC=clang), but not its jobs.
    env["MAKEFLAGS"] = "".join(env.get("MAKEFLAGS", "").partition("-- ")[1:])
    env["HOME"] = os.getcwd()
    gpus = int(next((n[5:] for n in needs if n.startswith("gpus=")), 0))
    root = env["LAUNCH_SYSROOT"] = os.path.abspath(f"machine{gpus}")
    for name in ("/dev/shm", "/tmp"):
        os.makedirs(root + name, exist_ok=True)
    for i in range(gpus):
        pci = f"{root}/proc/driver/nvidia/gpus/0000:{i + 16:02x}:00.0"
        os.makedirs(pci, exist_ok=True)
        with open(pci + "/information", "w", encoding="ascii") as f:
            f.write(f"Model: \t\t Fake GPU\nBus Location: \t 0000:{i + 16:02x}:00.0\nDevice Minor: \t {i}\n")
        open(f"{root}/dev/nvidia{i}", "w").close()
    env["FAKE_GPUS"] = str(gpus)
    if gpus:
        env["LAUNCH_BENCH_JOB"] = BUILD + "/tests/fake/launch-bench-nccl"
    env.update({"FAKE_NCCL_HANG": n[5:] for n in needs if n.startswith("hang=")})
    machine = next((n[8:] for n in needs if n.startswith("machine=")), None)
    if machine:
        root = env["LAUNCH_SYSROOT"] = os.path.abspath(machine)
        if not os.path.exists(root):
            subprocess.run([f"{SRC}/tests/machines/mkroot.py", f"{SRC}/tests/machines/{machine}.machine", root], check=True)
        os.makedirs(root + "/usr/lib", exist_ok=True)
        if not os.path.exists(root + "/usr/lib/libnvidia-ml.so.1"):
            os.symlink(BUILD + "/tests/fake/libnvidia-ml.so.1", root + "/usr/lib/libnvidia-ml.so.1")
        env["FAKE_NVML_MACHINE"] = root + "/nvml"
        env["FAKE_GPU_BUS"] = ",".join(sorted(os.listdir(root + "/proc/driver/nvidia/gpus"))) if gpus else ""
    if python:
        os.makedirs("bin", exist_ok=True)
        for name in ("bin/python", "bin/python3"):
            if os.path.exists(name):
                continue
            with open(name, "w", encoding="utf-8") as f:
                f.write(f'#!/bin/sh\nexec {python} "$@"\n')
            os.chmod(name, 0o755)
        env["PATH"] = os.path.abspath("bin") + ":" + env["PATH"]
    return env


def run(where, text, env):
    commands = steps(text)
    script = "".join(f"{c}\n__rc=$?; echo; echo '{MARK}'; (exit $__rc)\n" for c, _ in commands)
    p = subprocess.run(["bash", "-c", script], env=env, cwd="gpu" if env["FAKE_GPUS"] != "0" else ".", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True, timeout=120)
    ok = True
    for (command, expected), got in zip(commands, p.stdout.split("\n" + MARK + "\n") + [""] * len(commands)):
        got = got[:-1].split("\n") if got.endswith("\n") else got.split("\n") if got else []
        if not matches(expected, got):
            ok = False
            print(f"{where}: $ {command}")
            print("".join(f"    expected | {line}\n" for line in expected) + "".join(f"    got      | {line}\n" for line in got))
    return ok


def dead_links(page):
    """What the page's links name and what is not there: headings of its own (as GitHub makes anchors of them) and files."""
    text = "".join(line for line in re.split(r"^```.*?^```$", open(os.path.join(SRC, page), encoding="utf-8").read(), flags=re.M | re.S))
    anchors = ["#" + re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^#+ (.*)$", text, re.M)]
    return [to for to in re.findall(r"\]\(([^)]*)\)", text) if "://" not in to and to not in anchors
            and not os.path.exists(os.path.join(SRC, os.path.dirname(page), to))]


def main():
    if os.path.realpath(BUILD) != os.path.realpath(SRC + "/build"):
        print("a sanitizer's build is not the one that the README uses")
        sys.exit(77)
    lay_out()
    python, ran, failed = torch_python(), 0, 0
    here = {"torch": python, "python3": shutil.which("python3"), "pkg-config": shutil.which("pkg-config"), "libdw": ctypes.util.find_library("dw")}
    for page in PAGES:
        for to in dead_links(page):
            failed += 1
            print(f"{page}: a link to {to}, which is not there")
        for line, (kind, *needs), text in blocks(page):
            name = re.fullmatch({"c": r"/\* ([\w.]+) \*/", "yaml": r"# ([\w.]+)"}.get(kind, r"(?!)"), text[0])
            if name:
                for tree in (".", "gpu"):
                    with open(os.path.join(tree, name[1]), "w", encoding="utf-8") as f:
                        f.write("\n".join(text) + "\n")
            if kind != "console" or not all(here[n[6:]] for n in needs if n.startswith("needs=")):
                continue
            ran += 1
            failed += not run(f"{page}:{line}", text, environment(needs, python))
    if not ran:
        print("no block was run")
    sys.exit(bool(failed or not ran))


main()
