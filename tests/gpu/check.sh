#!/bin/bash
# SPDX-License-Identifier: MIT
# launch check and --transports with real NCCL on this machine's GPUs: one rank, four that share a GPU, one for each GPU, without P2P; how
# long each takes, and whether NCCL's log of today's version is understood. Exit code 1: something was not as it must be.
#
#     tests/gpu/check.sh [BUILD]          GPUS= (of the machine)
cd "$(dirname "$0")/../.." || exit 2
build=${1:-build} rc=0
[ -x "$build/launch" ] && [ -x "$build/launch-bench-nccl" ] || make all || exit 2
gpus=${GPUS:-$(ls -d /dev/nvidia[0-9]* 2>/dev/null | wc -l)}
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT || exit 2
echo "$gpus GPUs"; nvidia-smi --query-gpu=name,driver_version,memory.used --format=csv,noheader 2>/dev/null
[ "$gpus" -gt 0 ] || { echo "no GPU"; exit 2; }
fail() { echo "FAILED: $*"; rc=1; }

try() { # CODE "what" words...: launch's output, exit code and time
    local code=$1 what=$2 start end got; shift 2
    start=$(date +%s.%N)
    timeout -k 5 150 "$build/launch" "$@" >"$dir/out" 2>"$dir/err" </dev/null; got=$?
    end=$(date +%s.%N)
    printf '== %s: launch %s: exit code %d, %.1f s\n' "$what" "$*" "$got" "$(echo "$end $start" | awk '{print $1 - $2}')"
    sed 's/^/    /' "$dir/out"; tail -25 "$dir/err" | sed 's/^/    | /'
    [ "$got" = "$code" ] || fail "$what: exit code $code expected"
}
must() { grep -qE "$1" "$dir/out" || fail "no line like $1"; }

try 0 "one rank" check -n 1; must '^healthy: 1 rank over NCCL [0-9]'
try 0 "four on one GPU" check -n 4 --share-gpus --gpus=0; must '^healthy: 4 ranks over NCCL .*GPUs shared'
[ "$(grep -c '^rank [0-3] of 4: sum = 6$' "$dir/out")" = 4 ] || fail "four right sums"
try 0 "as JSON" check -n 4 --share-gpus --gpus=0 --json; must '"phase": "data"'; must '"gpu": "[0-9a-f]{4}:'
try 0 "transports, four on one GPU" topo --transports -n 4 --share-gpus --gpus=0
must '^12 connections, '; must 'NET/Socket x[0-9]+'; must 'NET, not P2P: --share-gpus'; must '^AllReduce of 8 bytes: [A-Z]+, LL'
if [ "$gpus" -gt 1 ]; then
    try 0 "a rank per GPU" check; must "^healthy: $gpus ranks over NCCL"
    try 0 "transports" topo --transports; must "^$((gpus * (gpus - 1))) connections, 0 not as expected"
    export NCCL_P2P_DISABLE=1
    try 0 "check without P2P" check; must 'not tried: what NCCL_P2P_DISABLE=1 \(the environment\)'
    try 0 "transports without P2P" topo --transports; must 'SHM, not P2P: NCCL_P2P_DISABLE=1 \(the environment\)'
    export NCCL_SHM_DISABLE=1
    try 0 "transports without P2P and SHM" topo --transports
    must 'NET, not P2P: NCCL_P2P_DISABLE=1 \(the environment\) and NCCL_SHM_DISABLE=1'
    unset NCCL_P2P_DISABLE NCCL_SHM_DISABLE
fi
# A rank that is stopped for ever: broken, and it says which.
"$build/launch" check -n 4 --share-gpus --gpus=0 --timeout=8s >"$dir/out" 2>"$dir/err" </dev/null & pid=$!
for ((i = 0; i < 100; i++)); do
    victim=$(pgrep -f "launch-bench-nccl check" | sed -n 2p)
    [ -n "$victim" ] && kill -STOP "$victim" && break
    read -r -t 0.02 <> <(:) || true
done
wait $pid; got=$?
echo "== a stopped rank: exit code $got"; sed 's/^/    /' "$dir/out"
[ "$got" = 1 ] || fail "a stopped rank: exit code 1 expected"
must '^as it is: hangs'
ls -d "${TMPDIR:-/tmp}"/launch-nccl-* 2>/dev/null && fail "logs are left"
nvidia-smi --query-gpu=memory.used --format=csv,noheader 2>/dev/null | sed 's/^/afterwards in use: /'
exit $rc
