#!/bin/bash
# SPDX-License-Identifier: MIT
# All figures of `make bench` of this machine in one run of about BUDGET (460) seconds: installs nothing, leaves bench.json,
# bench.md (the README's table) and bench.txt in LOGS. What the README names first comes first; items that were not begun in
# time are skipped and named. Exit code 1: something could not be measured.
#
#     tests/gpu/bench_host.sh [BUILD]          BUDGET=460 ITEMS=, and see lib.sh
BUDGET=${BUDGET:-460}
. "$(dirname "$0")/lib.sh"
items=${ITEMS:-start restart heal kill idle memory id notice config ps lease relay torn blocked collective growth}
export BUILD=$PWD/$build
peers=()
for mpi in openmpi mpich; do
    echo '#include <mpi.h>' | "mpicc.$mpi" -E - >/dev/null 2>&1 && peers+=("tests/bench/collective_$mpi")
done
needs launch launch-run launch-bench liblaunch.a liblaunch.so examples/rank_sum \
    tests/bench/{stopwatch,floor,collective,heal,lines,killwatch,board_id,deathwatch} "${peers[@]}"
figures() {
    # What has begun may take longer than the limit.
    local limit=$((budget - SECONDS - 100)) got; [ "$limit" -gt 20 ] || limit=20
    # shellcheck disable=SC2086
    limited $((limit + 90)) python3 tests/bench/run.py $items --limit "$limit" --json "$logs/bench.json" ${QUICK:+--quick} 2>"$dir/err" | tee "$logs/bench.txt"
    got=${PIPESTATUS[0]}
    [ "$got" = 0 ] || fail "run.py: exit code $got"
    goal "$([ "$got" = 0 ] && echo ok || echo missed)" "make bench: $(grep -c ' ok$' "$logs/bench.txt") within their goals" "$(grep -c ' over$' "$logs/bench.txt") over: $(grep ' over$' "$logs/bench.txt" | cut -c1-60 | paste -sd ';')"
}
table() {
    python3 tests/bench/run.py --markdown "$logs/bench.json" >"$logs/bench.md" 2>"$dir/err" || fail "--markdown"
    cat "$logs/bench.md"
}
section figures 60 1000 figures
section table 0 20 table
finish
