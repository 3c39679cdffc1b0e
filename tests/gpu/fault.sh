#!/bin/bash
# SPDX-License-Identifier: MIT
# Faults on this machine's real GPUs: a kernel that writes where nothing is mapped gives an Xid 31 (or 13), which the report names,
# by the kernel's log or by NVML, and which is restarted; no GPU is in quarantine then. And what listening costs: milliseconds
# that a job which is older than half a second takes to end with it and without. Exit code 1: something was wrong.
#
#     tests/gpu/fault.sh [BUILD]         ROUNDS=10
cd "$(dirname "$0")/../.." || exit 2
build=${1:-build} rc=0
[ -x "$build/launch" ] && [ -x "$build/tests/gpu/fault" ] || make all "$build/tests/gpu/fault" || exit 2
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT || exit 2
fail() { echo "FAILED: $*"; sed 's/^/    | /' "$dir/err"; rc=1; }
export LAUNCH_LEASE_DIR=$dir
chmod 1777 "$dir"
gpus=$(ls -d /dev/nvidia[0-9]* 2>/dev/null | wc -l) share=
[ "$gpus" -gt 1 ] || share=--share-gpus
echo "$gpus GPUs, /dev/kmsg $(head -c1 /dev/kmsg >/dev/null 2>&1 && echo can || echo "can't") be read"
timeout 120 "$build/launch" --nproc-per-node=2 --max-restarts=1 $share "$build/tests/gpu/fault" 2000 2>"$dir/err" || fail "it was not restarted: $?"
grep -qE 'after Xid (13|31) .* of GPU ' "$dir/err" || fail "no Xid was told"
sed -n 's/.*\(after Xid.*\)/told: \1/p' "$dir/err" | head -1
"$build/launch" gpus | grep faulty && { echo "FAILED: a fault of the program put a GPU into quarantine"; rc=1; }
# From the end of the workers to that of launch: with the helper, and in a job that is over before it begins.
ends() { # SECONDS
    for ((i = 0; i < ${ROUNDS:-10}; i++)); do
        "$build/launch" --nproc-per-node=2 $share sh -c "sleep $1; date +%s%N >$dir/end.\$RANK"
        echo $((($(date +%s%N) - $(sort -n "$dir"/end.* | tail -1)) / 10000))
    done | sort -n | awk '{v[NR]=$1} END {printf "%.2f (%.2f..%.2f)", v[int((NR+1)/2)]/100, v[1]/100, v[NR]/100}'
}
echo "ms from the end of the workers to that of launch: $(ends 0.2) without NVML listening, $(ends 2) with"
exit $rc
