#!/bin/bash
# SPDX-License-Identifier: MIT
# On a machine with NVIDIA GPUs: is launch topo the same as nvidia-smi topo, how much faster is it, and does NCCL take its XML?
# What both said goes into a folder (OUT, else the present one).
cd "$(dirname "$0")/../.." || exit 2
out=${OUT:-$PWD}
export LAUNCH=${LAUNCH:-$PWD/build/launch}
[ -x "$LAUNCH" ] || make >/dev/null || exit 2
failed=0
tests/e2e/topo_smi.py --record "$out" || failed=1
tests/e2e/topo_smi.py --time "${N:-31}" || failed=1
for format in text json xml svg dot; do "$LAUNCH" topo --format=$format >"$out/topo.$format" || failed=1; done
cat "$out/topo.text"
# Where the time goes.
command -v strace >/dev/null && strace -f -c -o "$out/strace.txt" "$LAUNCH" topo >/dev/null
command -v strace >/dev/null && strace -f -r -o "$out/strace-r.txt" "$LAUNCH" topo >/dev/null
# NCCL says which file it took, and what it made of it.
if [ -e build/liblaunch_nccl.so ]; then
    for file in "" "$out/topo.xml"; do
        NCCL_TOPO_FILE=$file NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH NCCL_TOPO_DUMP_FILE=$out/nccl${file:+-ours}.xml \
            "$LAUNCH" --nproc-per-node=gpu build/examples/allreduce >"$out/nccl${file:+-ours}.log" 2>&1 || failed=1
    done
    diff <(sed 's/host_hash="[^"]*"//' "$out/nccl.xml") <(sed 's/host_hash="[^"]*"//' "$out/nccl-ours.xml") && echo "NCCL has the same topology with our file"
else
    echo "no NCCL here: its part is left out"
fi
exit $failed
