#!/bin/bash
# SPDX-License-Identifier: MIT
# Healing on this machine's GPUs: milliseconds from SIGKILL of a rank in the midst of an all-reduce to the first right all-reduce of
# all ranks, by step (medians of ROUNDS, least and greatest of the last column); 30 losses in a row and what they leave; ranks that
# are stopped or go round on the CPU; examples/train with and without kills. Exit code 1: something was wrong or a goal was missed.
#
#     tests/gpu/heal.sh [BUILD]          ROUNDS=10 LOSSES=30 PAUSE=1200 (ms before each) KILLS=10 STEPS=4000 (1200 where GPUs are shared), and see lib.sh
#
# Where NCCL's part goes: its own "Init timings", of survivors and of standbys apart, and its calls of NVML, each in a run of its own,
# for writing them takes time, too.
. "$(dirname "$0")/lib.sh"
. tests/gpu/heal_lib.sh
needs launch tests/gpu/nvml_count.so
[ -n "${FAKE:-}" ] || needs tests/gpu/heal examples/train
need_gpus 1
# Unbound, so that a standby can take any place.
share="--share-gpus --affinity=none"
n=$((gpus < 4 ? gpus : 4)) per_gpu="--standby=nccl --standby-count=$((gpus < 4 ? gpus : 4))"

# What the environment changes in it. NCCL reads what it knows of NVLink from a file, where it is given
# one, in the place of hundreds of calls of NVML, which all ranks make at the same time.
for_variables() { # RANKS VARIABLE=VALUE... -- options
    local ranks=$1 variable variables=(); shift
    while [ "$1" != -- ]; do variables+=("$1"); shift; done
    NCCL_TOPO_DUMP_FILE=$dir/topo.xml limited 60 "$launch" --nproc-per-node="$n" "$rank_sum" >/dev/null 2>"$dir/err"
    for variable in NCCL_DEBUG=VERSION "${variables[@]}"; do # the first changes nothing
        echo "with ${variable/$dir\//}:"
        (export "$variable"; rounds=4 label=", ${variable/$dir\//}" measure 0 "$ranks" '' "$@")
    done
}
# Collectives of 4 ranks that share a GPU, by blocks and by algorithm: µs. What a run gets is the luck of the GPU's time slices, too:
# five of each, in turn, and fewer where they take long.
ctas() {
    local turn variable size least median most runs max=16M begin=$SECONDS variables=(NCCL_MAX_CTAS=1 NCCL_MAX_CTAS=2 NCCL_MAX_CTAS=4 NCCL_ALGO=Tree)
    [ -z "${FAKE:-}" ] || max=256K
    : >"$dir/ctas"
    for ((turn = 0; turn < 5 && SECONDS - begin < 95; turn++)); do
        for variable in "${variables[@]}"; do
            limited 15 env "$variable" "$launch" bench all_reduce -g 4 --share-gpus --gpus=1 -b 4K -e "$max" -f 64 -n 5 >"$dir/out" 2>"$dir/err" </dev/null ||
                { fail "bench with $variable: exit $?"; continue; }
            awk -v v="$variable" '$1 ~ /^[0-9]+$/ && NF >= 13 {print v, $1, $6}' "$dir/out" >>"$dir/ctas"
        done
    done
    cp "$dir/ctas" "$logs/$section.runs"
    echo "all_reduce of 4 ranks on one GPU, µs: median (least..greatest)"
    for size in 4096 262144 16777216; do
        for variable in "${variables[@]}"; do
            read -r least median most runs < <(awk -v v="$variable" -v s=$size '$1 == v && $2 == s {print $3}' "$dir/ctas" | spread) &&
                printf '%9d  %-16s %9.0f  (%.0f..%.0f), %d runs\n' $size "$variable" "$median" "$least" "$most" "$runs"
        done
    done
}
afterwards() { smi memory.used | sed 's/^/afterwards in use: /'; }

section shared_4_nccl 75 120 measure 250 4 '' -- $share --standby=nccl
section shared_4_none 30 80 measure 1300 4 '' -- $share
section shared_8_nccl 80 140 measure 600 8 '' -- $share --standby=nccl
section shared_8_none 35 100 measure 1300 8 '' -- $share
if [ "$gpus" -gt 1 ]; then
    section each_nccl 75 120 measure 300 $n '' -- $per_gpu
    section each_none 30 80 measure 1300 $n '' --
fi
section shared_4_nccl_sync 75 120 measure 250 4 sync -- $share --standby=nccl
section shared_4_timings 35 80 timings 4 -- $share --standby=nccl
section shared_4_nvml 35 80 nvml_calls 4 -- $share --standby=nccl
section losses $((${LOSSES:-30} * 2)) $((60 + ${LOSSES:-30} * 2)) losses "${LOSSES:-30}" 4 "${PAUSE:-1200}" -- $share --standby=nccl
section stop 25 60 hung 4 stop -- $share
section spin 25 60 hung 4 spin -- $share
STEPS=${STEPS:-1200} section train 60 200 train_survives 4 $share --standby=nccl # 14 ms each
section shared_4_exec 30 80 measure 0 4 '' -- $share --standby=exec
section shared_4_cuda 50 100 measure 0 4 '' -- $share --standby=cuda
if [ "$gpus" -gt 1 ]; then
    section each_nccl_sync 75 120 measure 300 $n sync -- $per_gpu
    section each_timings 35 80 timings $n -- $per_gpu
    section each_nvml 35 80 nvml_calls $n -- $per_gpu
    section each_train 40 200 train_survives $n --standby=nccl
    section variables 170 300 for_variables $n NCCL_TOPO_FILE="$dir/topo.xml" CUDA_MODULE_LOADING=EAGER NCCL_MAX_CTAS=4 NCCL_CUMEM_HOST_ENABLE=0 \
        NCCL_RUNTIME_CONNECT=0 NCCL_SHM_DISABLE=1 -- $per_gpu
fi
# Buffers of a protocol that is not used over sockets, which are pinned and cleared all the same.
section shared_variables 120 240 for_variables 4 NCCL_LL128_BUFFSIZE=131072 NCCL_CUMEM_HOST_ENABLE=0 NCCL_MAX_CTAS=4 -- $share --standby=nccl
section ctas 40 120 ctas
section afterwards 1 20 afterwards
finish
