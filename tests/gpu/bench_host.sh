#!/bin/bash
# SPDX-License-Identifier: MIT
# All figures of `make bench` of this machine in one run of about LIMIT + 60 seconds: installs nothing, leaves DIR/bench.json,
# DIR/bench.md (the README's table) and DIR/bench.txt. What the README names first comes first; items that were not begun in
# time are skipped and named. Exit code: that of run.py, 1 if something could not be measured.
#
#     tests/gpu/bench_host.sh [DIR]          LIMIT=360 ITEMS=
cd "$(dirname "$0")/../.." || exit 2
dir=${1:-${OUT:-build/bench-host}} limit=${LIMIT:-360}
items=${ITEMS:-start restart heal kill idle memory id notice config ps lease relay torn blocked collective growth}
mkdir -p "$dir" || exit 2
make -j"$(nproc)" all >"$dir/make.txt" 2>&1 &&
    make -j"$(nproc)" build/tests/bench/{stopwatch,floor,collective,heal,lines,killwatch,board_id,deathwatch} >>"$dir/make.txt" 2>&1 ||
    { tail -20 "$dir/make.txt"; exit 2; }
for mpi in openmpi mpich; do
    echo '#include <mpi.h>' | "mpicc.$mpi" -E - >/dev/null 2>&1 && make "build/tests/bench/collective_$mpi" >>"$dir/make.txt" 2>&1
done
# shellcheck disable=SC2086
timeout -k 5 $((limit + 100)) python3 tests/bench/run.py $items --limit "$limit" --json "$dir/bench.json" >"$dir/bench.txt" 2>&1
rc=$?
tail -3 "$dir/bench.txt"
python3 tests/bench/run.py --markdown "$dir/bench.json" >"$dir/bench.md" || rc=2
cat "$dir/bench.md"
exit $rc
