#!/bin/bash
# SPDX-License-Identifier: MIT
# Real PyTorch with NCCL on this machine's GPUs, under launch and, in the same minutes, under torchrun: DDP and a training to the end,
# one rank killed in the midst of an all-reduce with --max-restarts=1, which goes on from its checkpoint, and KILLS (10) such kills in a
# row. A rank for each GPU; on a single GPU two share it. What torchrun does is told, and no failure of ours.
#
#     tests/gpu/torch.sh [BUILD]        KILLS=10 RANKS=; PYTHON=, TORCHRUN= choose others than those of the PATH, TORCHRUN= leaves it out;
#                                       and see lib.sh. With FAKE=1 PyTorch runs on the CPU, with gloo
. "$(dirname "$0")/lib.sh"
needs launch
need_gpus 1
python=${PYTHON:-$(command -v python3)} torchrun=${TORCHRUN-$(command -v torchrun)} gpu=--gpu share= shim= ranks=${RANKS:-$gpus}
[ -z "${FAKE:-}" ] || gpu= ranks=${RANKS:-2}
"$python" -c 'import torch; print("GPUs, torch, NCCL:", torch.cuda.device_count(), torch.__version__, torch.cuda.is_available() and torch.cuda.nccl.version())' || exit 2
if [ -z "$torchrun" ] && [ -z "${TORCHRUN+set}" ]; then
    printf '#!/bin/sh\nexec "%s" -m torch.distributed.run "$@"\n' "$python" >"$dir/torchrun"
    chmod +x "$dir/torchrun"; torchrun=$dir/torchrun
fi
[ "$ranks" -gt 1 ] || { ranks=2 share=--share-gpus shim=--share; }
# What launch sets for ranks that share a GPU, in torchrun's favour.
settings=(NCCL_IB_DISABLE=1 NCCL_NVLS_ENABLE=0 NCCL_MNNVL_ENABLE=0 NCCL_MAX_CTAS=1 NCCL_SOCKET_IFNAME=lo)

ddp() {
    local begin=$EPOCHREALTIME
    limited 100 "$launch" --nproc-per-node="$ranks" $share "$python" -u examples/torch/ddp.py >"$dir/out" 2>"$dir/err" || fail "ddp.py: exit $?"
    took=$(seconds "$begin" "$EPOCHREALTIME")
    cat "$dir/out"
    holds "DDP, $ranks ranks, under launch" "$(tail -n 1 "$dir/out"), $took s" grep -qE "^$ranks ranks, [a-z]+: loss after 50 steps 0.0" "$dir/out"
    [ -n "$torchrun" ] && [ -z "$share" ] || return
    begin=$EPOCHREALTIME
    limited 100 "$torchrun" --nproc_per_node="$ranks" --no_python "$python" -u examples/torch/ddp.py 2>&1 | tail -n 1
    echo "under torchrun: $(seconds "$begin" "$EPOCHREALTIME") s"
}
# kills WHO N command...: runs and tells
kills() {
    local who=$1 n=$2 begin=$EPOCHREALTIME verdict=ok told; shift 2
    limited "$((100 + n * 20))" "$@" >"$dir/out" 2>&1 || verdict=missed
    told=$(grep ' kills of ' "$dir/out" || echo "not over after $(seconds "$begin" "$EPOCHREALTIME") s")
    echo "$who: $told"
    if [ "$who" = launch ] || [ $verdict = ok ]; then
        [ $verdict = ok ] || cat "$dir/out"
        goal $verdict "PyTorch under $who, $n kills, $ranks ranks" "$told"
    else
        tail -n 60 "$dir/out"
        goal ok "PyTorch under torchrun, $n kills, $ranks ranks: FAILS" "$told"
    fi
}
under_launch() { kills launch "$1" python3 tests/torture/torch_kills.py $gpu --ranks "$ranks" -n "$1" -s 1 "$python" "$launch" --shutdown-timeout=2 $share; }
under_torchrun() {
    kills torchrun "$1" env "${settings[@]}" python3 tests/torture/torch_kills.py $gpu $shim --ranks "$ranks" -n "$1" -s 1 "$python" "$torchrun" --no_python
}
n=${KILLS:-10}
section ddp 40 200 ddp
section launch_1 60 150 under_launch 1
section launch_many $((30 + n * 12)) $((120 + n * 20)) under_launch "$n"
[ -z "$torchrun" ] || section torchrun_1 60 200 under_torchrun 1
section launch_0 30 100 under_launch 0
[ -z "$torchrun" ] || section torchrun_0 30 100 under_torchrun 0
[ -z "$torchrun" ] || section torchrun_many 100 $((120 + n * 20)) under_torchrun "$n"
finish
