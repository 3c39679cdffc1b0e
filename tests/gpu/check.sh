#!/bin/bash
# SPDX-License-Identifier: MIT
# launch check and --transports with real NCCL on this machine's GPUs: one rank, four that share a GPU, one for each GPU, without P2P; how
# long each takes, and whether NCCL's log of today's version is understood. Exit code 1: something was not as it must be.
#
#     tests/gpu/check.sh [BUILD]          see lib.sh
. "$(dirname "$0")/lib.sh"
needs launch launch-bench-nccl
need_gpus 1
share="-n 4 --share-gpus --gpus=1"

one_rank() {
    local bad=0
    try 0 "one rank" check -n 1 && must '^healthy: 1 rank over NCCL [0-9]' || bad=1
    holds "launch check, one rank" "$took s" [ $bad = 0 ]
}
four_shared() {
    local bad=0
    try 0 "four on one GPU" check $share && must '^healthy: 4 ranks over NCCL .*GPUs shared' || bad=1
    [ "$(grep -c '^rank [0-3] of 4: sum = 6$' "$dir/out")" = 4 ] || { fail "four right sums"; bad=1; }
    holds "launch check, 4 ranks on one GPU: healthy, every sum" "$took s" [ $bad = 0 ]
}
as_json() { try 0 "as JSON" check $share --json && must '"phase": "data"' && must '"gpu": "[0-9a-f]{4}:'; }
transports_shared() {
    local bad=0
    try 0 "transports, four on one GPU" topo --transports $share && must '^12 connections, ' && must 'NET/Socket x[0-9]+' &&
        must 'NET, not P2P: --share-gpus' && must '^AllReduce of 8 bytes: [A-Z]+, LL' || bad=1
    holds "topo --transports, 4 ranks on one GPU: NCCL's log is understood" "$took s" [ $bad = 0 ]
}
each_gpu() {
    local bad=0
    try 0 "a rank per GPU" check && must "^healthy: $gpus ranks over NCCL" || bad=1
    holds "launch check, a rank per GPU" "$took s" [ $bad = 0 ]
    bad=0
    try 0 "transports" topo --transports && must "^$((gpus * (gpus - 1))) connections, 0 not as expected" || bad=1
    holds "topo --transports, a rank per GPU: as expected" "$took s" [ $bad = 0 ]
}
# A rank that is stopped for ever: broken, and it says which.
stopped() {
    local bad=0
    printf '#!/bin/bash\n[ "$RANK" != 1 ] || kill -STOP $$\nexec "%s" "$@"\n' "${LAUNCH_BENCH_JOB:-$PWD/$build/launch-bench-nccl}" >"$dir/stops"
    chmod +x "$dir/stops"
    LAUNCH_BENCH_JOB=$dir/stops try 1 "rank 1 is stopped" check $share --timeout="${STOP_TIMEOUT:-8s}" && must '^as it is: hangs' || bad=1
    holds "launch check with a stopped rank: broken, and says so" "$took s" [ $bad = 0 ]
}
nothing_left() {
    ls -d "${TMPDIR:-/tmp}"/launch-nccl-* 2>/dev/null && fail "logs are left"
    smi memory.used | sed 's/^/afterwards in use: /'
}

section one_rank 10 60 one_rank
section four_shared 15 60 four_shared
[ "$gpus" = 1 ] || section each_gpu 30 120 each_gpu
section transports_shared 15 60 transports_shared
section stopped 30 110 stopped
[ "$gpus" = 1 ] || section without_p2p 40 150 without_p2p
section as_json 15 60 as_json
section nothing_left 1 20 nothing_left
finish
