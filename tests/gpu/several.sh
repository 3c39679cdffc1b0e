#!/bin/bash
# SPDX-License-Identifier: MIT
# What one GPU cannot show, with a rank for each of 2, 4 or 8: right sums on all and on some of them, two jobs side by side, topo
# beside nvidia-smi, the machine recorded, every collective beside nccl-tests, heals, and all that without P2P. torch.sh has PyTorch,
# heal.sh more of healing. Exit code 1: something was wrong or a goal was missed.
#
#     NCCL_TESTS=DIR ONE_PROCESS= tests/gpu/several.sh [BUILD]     ROUNDS=10 (of heals; TURNS=3 of bench) LOSSES=100 MAX=2147483648, and see lib.sh
#
# All of it is more than BUDGET: ONLY='bench_' and ONLY='heal_' are halves.
. "$(dirname "$0")/lib.sh"
. tests/gpu/heal_lib.sh
. tests/gpu/bench_lib.sh
turns=${TURNS:-3}
needs launch launch-bench-nccl
[ -n "${FAKE:-}" ] || needs tests/gpu/heal examples/rank_sum
need_gpus 2
max=${MAX:-2147483648}
per_gpu="--standby=nccl --standby-count=$gpus"

# ---- sums ----
sums_right() { # N launch's options: rank_sum of N ranks
    local n=$1; shift
    limited 60 "$launch" --nproc-per-node=gpu "$@" "$rank_sum" >"$dir/out" 2>"$dir/err" </dev/null || { fail "rank_sum of $n: exit $?"; return 1; }
    sort "$dir/out"
    [ "$(grep -cE "rank [0-9]+ of $n: sum = $((n * (n - 1) / 2))\b" "$dir/out")" = "$n" ] || { fail "rank_sum: not $n right sums"; return 1; }
}
all_gpus() {
    local bad=0
    sums_right "$gpus" && try 0 "all" check && must "^healthy: $gpus ranks over NCCL" || bad=1
    holds "rank_sum and launch check, $gpus ranks" "check ${took:-?} s" [ $bad = 0 ]
}
# The last alone, all backwards, and half of them.
some_gpus() {
    local list n bad=0 lists
    lists=("$((gpus - 1))" "$(seq -s, $((gpus - 1)) -1 0)" "$(seq -s, $((gpus / 2)) $((gpus - 1)))")
    for list in "${lists[@]}"; do
        n=$(tr , '\n' <<<"$list" | wc -l)
        echo "-- CUDA_VISIBLE_DEVICES=$list"
        export CUDA_VISIBLE_DEVICES=$list
        sums_right "$n" && try 0 "GPUs $list" check && must "^healthy: $n ranks? over NCCL" || bad=1
        unset CUDA_VISIBLE_DEVICES
    done
    holds "rank_sum and launch check, CUDA_VISIBLE_DEVICES" "${lists[*]}" [ $bad = 0 ]
}
# ---- two jobs, each on half of the GPUs ----
half() { # FILE: all_reduce in a job of its own: algbw out of place, GB/s (busbw of one rank is 0)
    limited 100 "$launch" bench all_reduce -g $((gpus / 2)) --gpus=$((gpus / 2)) -b "${HALF_SIZE:-1G}" -e "${HALF_SIZE:-1G}" -f 2 -w 5 -n "${HALF_N:-1000}" -c 1 >"$1" 2>"$1.err" </dev/null
}
speed() { awk '$1 ~ /^[0-9]+$/ && NF >= 13 {printf "%s", $7}' "$1"; }
halves() {
    local bad=0 pid alone a b shared
    half "$dir/alone" || { cp "$dir/alone.err" "$dir/err"; fail "one job on half of the GPUs"; bad=1; }
    half "$dir/a" & pid=$!
    half "$dir/b" || { cp "$dir/b.err" "$dir/err"; fail "the second of two jobs"; bad=1; }
    wait $pid || { cp "$dir/a.err" "$dir/err"; fail "the first of two jobs"; bad=1; }
    cat "$dir/alone" "$dir/a" "$dir/b"
    shared=$(comm -12 <(grep -o '\[[0-9a-f:]*\]' "$dir/a" | sort) <(grep -o '\[[0-9a-f:]*\]' "$dir/b" | sort))
    [ -z "$shared" ] && [ "$(cat "$dir/a" "$dir/b" | grep -c '^#  *Rank')" = $((gpus / 2 * 2)) ] || { fail "the two share $shared"; bad=1; }
    alone=$(speed "$dir/alone") a=$(speed "$dir/a") b=$(speed "$dir/b")
    holds "two jobs at once on halves of the GPUs: right sums, no GPU shared" "algbw $a and $b, alone $alone GB/s" [ $bad = 0 ]
}
# ---- topology ----
beside_smi() {
    local said
    mkdir -p "$logs/topo"
    said=$(LAUNCH=$launch limited 120 tests/e2e/topo_smi.py --record "$logs/topo" 2>&1); local got=$?
    echo "$said"
    holds "launch topo and --p2p: the cells of nvidia-smi" "$(tail -n 1 <<<"$said")" [ $got = 0 ]
    limited 60 "$launch" topo
}
record() {
    local to=$logs/machine
    mkdir -p "$to"
    NCCL_TOPO_DUMP_FILE=$to/nccl-topo.xml NCCL_GRAPH_DUMP_FILE=$to/nccl-graph.xml limited 60 "$launch" --nproc-per-node=gpu "$rank_sum" >/dev/null 2>"$dir/err"
    limited 60 "$launch" topo --format=json >"$to/machine.topo.json"
    limited 60 "$launch" topo >"$to/machine.topo.txt"
    limited 60 "$launch" topo --format=xml >"$to/launch.xml"
    limited 60 nvidia-smi topo -m >"$to/machine.smi.txt"
    limited 60 nvidia-smi -q -x >"$to/nvidia-smi.xml"
    ! command -v lstopo-no-graphics >/dev/null || limited 60 lstopo-no-graphics --of xml >"$to/hwloc.xml"
    python3 tests/machines/record.py "$to/machine.topo.json" >"$to/machine.machine" 2>"$dir/err" || fail "record.py"
    cat "$to/machine.machine"
    ls -l "$to"
    # What is recorded makes a machine that looks the same.
    python3 tests/machines/mkroot.py "$to/machine.machine" "$dir/again" 2>"$dir/err" || fail "mkroot.py"
}
# ---- speed ----
pairs() {
    local bad=0
    try 0 "pairs" bench --pairs && { [ -n "${FAKE:-}" ] || must '^# no slow pair'; } || bad=1
    holds "launch bench --pairs: no slow pair" "$took s" [ $bad = 0 ]
}
transports() {
    local bad=0
    try 0 "transports" topo --transports && must "^$((gpus * (gpus - 1))) connections, 0 not as expected" || bad=1
    holds "topo --transports: what NCCL chose is what the topology predicts" "$took s" [ $bad = 0 ]
}
baseline() {
    local bad=0 told
    try 0 "save" bench all_reduce -b 8 -e "${BASE_MAX:-1G}" -f 4 --save="$logs/baseline.json" || bad=1
    try 0 "compare" bench all_reduce -b 8 -e "${BASE_MAX:-1G}" -f 4 --compare="$logs/baseline.json" || bad=1
    told=$(grep '^# Compared' "$dir/out" | cut -c3-120)
    holds "baseline saved and compared: no slower" "${told:-no verdict}" [ $bad = 0 ]
}
settings_without_p2p() {
    local bad=0 with without
    with=$(limited 60 "$launch" bench all_reduce -b "${P2P_SIZE:-256M}" -e "${P2P_SIZE:-256M}" -f 2 2>/dev/null | awk '$1 ~ /^[0-9]+$/ && NF >= 13 {print $8}')
    without_p2p
    export NCCL_P2P_DISABLE=1
    without=$(limited 60 "$launch" bench all_reduce -b "${P2P_SIZE:-256M}" -e "${P2P_SIZE:-256M}" -f 2 2>/dev/null | awk '$1 ~ /^[0-9]+$/ && NF >= 13 {print $8}')
    goal ok "busbw of an all_reduce of ${P2P_SIZE:-256M} with and without P2P" "$with and $without GB/s"
    try 0 "bench --transports" bench --transports || bad=1
    limited 60 "$launch" doctor >"$dir/doctor"
    grep -A2 -E 'NCCL_P2P_DISABLE' "$dir/doctor" || { fail "doctor does not tell of NCCL_P2P_DISABLE"; bad=1; }
    holds "without P2P: doctor and bench --transports tell the setting" "$(grep -m1 -E 'NCCL_P2P_DISABLE' "$dir/doctor" | tr -s ' ')" [ $bad = 0 ]
}

section all_gpus 15 100 all_gpus
section some_gpus 30 120 some_gpus
section record 15 100 record
section beside_smi 10 60 beside_smi
section heal_nccl 75 130 measure 300 "$gpus" '' -- $per_gpu
section heal_none 30 90 measure 1300 "$gpus" '' --
section nccl_tests 1 200 build_nccl_tests
for collective in "${collectives[@]}"; do
    section "bench_$collective" 25 100 compare "$collective" "-g $gpus" "$gpus" "$max" 4 16777216 1.05 1.01
done
section halves 30 120 halves
section pairs 10 80 pairs
section transports 8 60 transports
section baseline 25 100 baseline
section without_p2p 40 150 settings_without_p2p
section heal_stop 25 60 hung "$gpus" stop --
section heal_spin 25 60 hung "$gpus" spin --
section heal_sync 75 130 measure 300 "$gpus" sync -- $per_gpu
section heal_losses $((${LOSSES:-100} * 3 / 2)) 300 losses "${LOSSES:-100}" "$gpus" 300 -- $per_gpu
section heal_timings 35 80 timings "$gpus" -- $per_gpu
finish
