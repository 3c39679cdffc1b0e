#!/bin/bash
# SPDX-License-Identifier: MIT
# The peers that `make bench` measures launch beside, and strace: the distribution's Open MPI and MPICH, by apt-get where that is
# there and we are root; PyTorch in build/bench-venv where no python3 has one that works, with TORCH=1 only, for its wheels
# bring CUDA along, some GB. What can't be had is named, and make bench does without.
set -u
build=${BUILD:-build}
missing=()
for pair in mpirun.openmpi:openmpi-bin mpicc.openmpi:libopenmpi-dev mpirun.mpich:mpich mpicc.mpich:libmpich-dev strace:strace; do
    command -v "${pair%%:*}" >/dev/null || missing+=("${pair##*:}")
done
if [ ${#missing[@]} -gt 0 ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    for package in "${missing[@]}"; do apt-get install -qq -y "$package" >/dev/null || echo "could not install $package"; done
elif [ ${#missing[@]} -gt 0 ]; then
    echo "please install: ${missing[*]}"
fi
works() { command -v "$1" >/dev/null && timeout 90 "$1" -m torch.distributed.run --standalone --nproc_per_node=1 --no_python /bin/true 2>/dev/null; }
for python in "${BENCH_PYTHON:-}" "$build/bench-venv/bin/python" python3 /usr/bin/python3; do
    [ -n "$python" ] && works "$python" && { echo "torchrun: by $python"; exit 0; }
done
if [ -n "${TORCH:-}" ]; then
    python3 -m venv "$build/bench-venv" && "$build/bench-venv/bin/pip" install --quiet torch numpy && works "$build/bench-venv/bin/python" &&
        { echo "torchrun: by $build/bench-venv/bin/python"; exit 0; }
    echo "torchrun: could not be installed"
else
    echo "torchrun: no python3 has one that works: make bench-deps TORCH=1 installs it in $build/bench-venv, or BENCH_PYTHON=/path/to/python"
fi
