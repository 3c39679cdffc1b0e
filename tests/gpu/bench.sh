#!/bin/bash
# SPDX-License-Identifier: MIT
# launch bench beside nccl-tests on one GPU of this machine, in turns: 1 rank, 4 ranks that share it. A table of both times (us, median
# of ROUNDS) and their ratio, out of place and in place; then every collective, type and operation, and a planted fault. Exit code
# 1: something was wrong, or ours takes more than 3 % longer from 1 MiB up or 10 % below. several.sh is for more GPUs.
#
#     NCCL_TESTS=DIR tests/gpu/bench.sh [BUILD]      a copy of NVIDIA's nccl-tests; without it only ours is measured
#     ROUNDS=3 MAX=1073741824 MAX_SHARED=67108864 TYPES_MAX=1048576    and see lib.sh
. "$(dirname "$0")/lib.sh"
. tests/gpu/bench_lib.sh
needs launch launch-bench-nccl
need_gpus 1
max=${MAX:-1073741824} max_shared=${MAX_SHARED:-67108864}
share="-g 4 --share-gpus --gpus=1"

types() { # COLLECTIVE: all types and operations, with a root that is not the first
    local file=$logs/types.$1 root=
    case $1 in broadcast | reduce | gather | scatter) root="-r 1" ;; esac
    rm -f "$file"*
    ours "$file" "$share" "$1" -b 4096 -e "${TYPES_MAX:-1048576}" -f 256 -n 2 -w 1 -c 1 -d all -o all $root || return
    awk -v c="$1" '{n++; w += $6} END {printf "  %-16s %4d results, wrong %d\n", c, n, w; exit w > 0 || n == 0}' "$file"
}
all_types() {
    local collective good=0
    for collective in "${collectives[@]}"; do types "$collective" && good=$((good + 1)); done
    holds "every collective, type and operation, 4 ranks on one GPU: right" "$good of ${#collectives[@]}" [ $good = ${#collectives[@]} ]
}
planted() {
    local wrong
    limited 100 env LAUNCH_BENCH_FAULT=2:777 "$launch" bench all_reduce $share -b "$max_shared" -e "$max_shared" -f 2 -n 2 -w 1 -c 1 --format=csv >"$dir/csv" 2>"$dir/err"
    echo "exit code $?"; cat "$dir/csv"
    wrong=$(awk -F, 'NR > 1 {w += $10} END {print w + 0}' "$dir/csv")
    holds "a planted fault in one rank's element 777 is found, out of place and in place" "wrong $wrong" [ "$wrong" = 2 ]
}
whole_check() {
    local begin=$EPOCHREALTIME
    ours "$logs/whole_check" "-g 1 --gpus=1" all_reduce -b "$max" -e "$max" -f 2 -n 1 -w 0 -c 4 &&
        goal ok "8 checks of $max bytes, start and end of the job" "$(seconds "$begin" "$EPOCHREALTIME") s"
}
section nccl_tests 1 150 build_nccl_tests
section one_rank 40 150 compare all_reduce "-g 1 --gpus=1" 1 "$max" 2 1048576 1.10 1.03
section four_shared 60 200 compare all_reduce "$share" 4shared "$max_shared" 4 1048576 1.10 1.03
section planted 15 60 planted
section all_types 60 200 all_types
section whole_check 15 60 whole_check
finish
