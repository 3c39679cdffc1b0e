#!/bin/bash
# SPDX-License-Identifier: MIT
# Faults on this machine's real GPUs: a kernel that writes where nothing is mapped gives an Xid 31 (or 13), which the report names,
# by the kernel's log or by NVML, and which is restarted; no GPU is in quarantine then. And what listening costs: milliseconds
# that a job which is older than half a second takes to end with it and without. Exit code 1: something was wrong.
#
#     tests/gpu/fault.sh [BUILD]         ROUNDS=10, and see lib.sh
. "$(dirname "$0")/lib.sh"
if [ -n "${FAKE:-}" ]; then needs launch; else needs launch tests/gpu/fault; fi
need_gpus 1
export LAUNCH_LEASE_DIR=$dir
chmod 1777 "$dir"
share=
[ "$gpus" -gt 1 ] || share=--share-gpus
kmsg=${LAUNCH_SYSROOT:-}/dev/kmsg

program_fault() {
    local told bad=0
    echo "/dev/kmsg $(dd if="$kmsg" of=/dev/null bs=8192 count=1 iflag=nonblock status=none 2>/dev/null && echo can || echo "can't") be read"
    limited 100 "$launch" --nproc-per-node=2 --max-restarts=1 $share "$fault" 2000 2>"$dir/err" || { fail "it was not restarted: $?"; bad=1; }
    sed 's/^/    | /' "$dir/err"
    told=$(sed -n 's/.*\(after Xid.*\)/\1/p' "$dir/err" | head -1)
    grep -qE '^after Xid (13|31) .* of GPU ' <<<"$told" || bad=1
    "$launch" gpus | tee "$dir/gpus"
    grep -q faulty "$dir/gpus" && { fail "a fault of the program put a GPU into quarantine"; bad=1; }
    holds "an Xid of the program: named, started again, no quarantine" "${told:-no Xid was told}" [ $bad = 0 ]
}
# From the end of the workers to that of launch: with the helper, and in a job that is over before it begins.
ends() { # SECONDS
    for ((i = 0; i < ${ROUNDS:-10}; i++)); do
        limited 30 "$launch" --nproc-per-node=2 $share sh -c "sleep $1; date +%s%N >$dir/end.\$RANK"
        echo $((($(date +%s%N) - $(sort -n "$dir"/end.* | tail -1)) / 10000))
    done | sort -n | awk '{v[NR]=$1} END {printf "%.2f (%.2f..%.2f)", v[int((NR+1)/2)]/100, v[1]/100, v[NR]/100}'
}
cost() {
    local without with
    without=$(ends 0.2) with=$(ends 2)
    goal ok "ms from the end of the workers to that of launch" "$without without NVML listening, $with with"
}
section program_fault 20 120 program_fault
section cost $((${ROUNDS:-10} * 3)) $((${ROUNDS:-10} * 6 + 20)) cost
finish
