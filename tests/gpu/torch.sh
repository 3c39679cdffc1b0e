#!/bin/bash
# SPDX-License-Identifier: MIT
# Real PyTorch with NCCL on this machine's GPUs, under launch and, in the same minutes, under torchrun: training to the end, one
# rank killed in the midst of an all-reduce with --max-restarts=1, and KILLS (10) such kills in a row. Two ranks; on a single GPU
# they share it. One line each, "ok" or "FAILED"; what a failed one printed is in ./torch-gpu.log. Exit code 1: launch failed.
#
#     tests/gpu/torch.sh [LAUNCH]        PYTHON=, TORCHRUN= choose others than those of the PATH; TORCHRUN= leaves it out
cd "$(dirname "$0")/../.." || exit 2
launch=${1:-build/launch} python=${PYTHON:-$(command -v python3)} torchrun=${TORCHRUN-$(command -v torchrun)}
gpus=$("$python" -c 'import torch; print(torch.cuda.device_count(), torch.__version__, torch.cuda.nccl.version())') || exit 2
echo "GPUs, torch, NCCL: $gpus"
[ "${gpus%% *}" -gt 0 ] || { echo "no GPU that torch can use"; exit 2; }
log=$PWD/torch-gpu.log rc=0
: >"$log"
# What launch sets for ranks that share a GPU, in torchrun's favour.
settings=(NCCL_IB_DISABLE=1 NCCL_NVLS_ENABLE=0 NCCL_MNNVL_ENABLE=0 NCCL_MAX_CTAS=4 NCCL_SOCKET_IFNAME=lo)
share= shim=
[ "${gpus%% *}" -gt 1 ] || { share=--share-gpus shim=--share; }

# one WHO KILLS LIMIT WORDS...: runs and tells
one() {
    local who=$1 kills=$2 limit=$3 out verdict=ok
    shift 3
    out=$(timeout -k 10 "$limit" "$@" 2>&1) || verdict=FAILED
    [ $verdict = ok ] || { printf '==== %s, %s kills\n%s\n' "$who" "$kills" "$out" >>"$log"; [ "$who" != launch ] || rc=1; }
    printf '%-9s %-6s %s\n' "$who" "$verdict" "$(grep ' kills of ' <<<"$out" || echo "$kills kills: not over after $limit s")"
}

for kills in 0 1 "${KILLS:-10}"; do
    one launch "$kills" 400 python3 tests/torture/torch_kills.py --gpu -n "$kills" -s 1 "$python" "$launch" --shutdown-timeout=2 $share
    [ -z "$torchrun" ] || one torchrun "$kills" 200 env "${settings[@]}" python3 tests/torture/torch_kills.py --gpu $shim -n "$kills" \
        -s 1 "$python" "$torchrun" --no-python
done
exit $rc
