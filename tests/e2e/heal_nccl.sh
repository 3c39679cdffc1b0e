#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 400
# --on-failure=heal with GPUs, on fake CUDA and NCCL libraries: survivors are freed from collectives that the dead never end, by
# revoke or abort, never while they are inside a call; every sum stays right, and nothing is left.
. "$SRC/tests/e2e/lib.sh"
job=$BUILD/tests/fake/heal_job
export FAKE_LEAKS=1 LD_LIBRARY_PATH=$BUILD/tests/fake
gpus 4; export FAKE_GPUS=4
heals() { LIMIT=60 run --nproc-per-node=4 --max-restarts=60 --on-failure=heal "$@"; }
finished() { # GENERATION "what"
    expect 0 "$2"
    check "$2: 4 ranks with the right total in generation $1: $(cat out err)" test "$(grep -cE "of 4: step 60 total 18300 generation $1 " out)" = 4
    check "$2: nothing is left: $(cat err)" not has '^(\[[^]]*\]: ?)?fake:' err
}
told() { check "$1 is told: $(cat err)" has "$2" err; }

for version in 22809 22603; do # with ncclCommRevoke() and without
    export FAKE_NCCL_VERSION=$version
    heals "$job" 60; finished 1 "$version: nobody is lost"
    for wait in wait sync group; do
        export HEAL_WAIT=$wait
        heals "$job" 60 2=kill@30/1; finished 2 "$version, $wait: killed before a collective"
        HEAL_AT=inside heals "$job" 60 0=kill@30/1; finished 2 "$version, $wait: rank 0 is killed in a collective"
    done
    unset HEAL_WAIT
    heals "$job" 60 1=kill@1/1; finished 2 "$version: killed before the first collective, which connects"
    heals "$job" 60 1=kill@30/1 2=kill@30/2; finished 3 "$version: killed before the next communicator is there"
    heals "$job" 60 1=kill@30/1 2=kill@again/1 3=kill@again/1; finished '[234]' "$version: two die while one is replaced"
    heals "$job" 60 1=kill@20/1 2=kill@40/2 3=kill@50/3 0=kill@55/4; finished 5 "$version: one after the other"
    FAKE_NCCL_ABORT_MS=300 heals "$job" 60 1=kill@20/1 2=kill@40/2 0=kill@50/3; finished 4 "$version: an abort that takes long"
    FAKE_NCCL_CALL_MS=15 heals "$job" 60 1=kill@30/1; finished 2 "$version: the others may be inside a call"
    FAKE_NCCL_CALL_MS=15 HEAL_WAIT=sync heals "$job" 60 1=kill@30/1; finished 2 "$version: inside or asleep"
done
unset FAKE_NCCL_VERSION

# Only a call that the macro guards is safe: the fake ends a process in which another thread aborts meanwhile.
for how in exec cuda nccl; do
    rm -f go; { until_true eval '[ "$(pgrep -xfc "$job 60 1=hold@30/1 1=kill@31/1")" -ge 5 ]'; : >go; } & # the fifth is the standby
    heals --standby=$how "$job" 60 1=hold@30/1 1=kill@31/1; finished 2 "--standby=$how"
    told "--standby=$how" 'rank 1 is pid [0-9]+ \(a standby\)'
done
check "NVLS is off for jobs that heal" has '^NCCL_NVLS_ENABLE=0$' <("$LAUNCH" --nproc-per-node=4 --max-restarts=1 --on-failure=heal env)
check "and for no other" not has '^NCCL_(NVLS|CUMEM)_ENABLE=' <("$LAUNCH" --nproc-per-node=4 env)
check "so is cuMem" has '^NCCL_CUMEM_ENABLE=0$' <("$LAUNCH" --nproc-per-node=4 --max-restarts=1 --on-failure=heal env)
check "the user's own stays here, too" not has '^NCCL_CUMEM_ENABLE=0$' <(NCCL_CUMEM_ENABLE=1 "$LAUNCH" --nproc-per-node=4 --max-restarts=1 --on-failure=heal env)
check "the user's own stays" not has '^NCCL_NVLS_ENABLE=0$' <(NCCL_NVLS_ENABLE=1 "$LAUNCH" --nproc-per-node=4 --max-restarts=1 --on-failure=heal env)
heals --hang-timeout=1 "$job" 60 2=stop@30/1; finished 2 "one is stopped"
told "who" 'rank 2 of 4 is stopped by a signal.*replaced'
heals --hang-timeout=1 "$job" 60 2=pause@30/1; finished 2 "one does not come to a collective"
told "which" 'rank 2 of 4 hangs .*replaced'; told "what it does" '^launch:   rank 2: step 29, .*sleeps'
for wait in wait sync; do
    HEAL_WAIT=$wait heals --hang-timeout=2 "$job" 60 2=pause@30/1 1=pause@40/2; finished 3 "$wait: another one hangs after that"
    check "$wait: each is named, and no other: $(cat err)" test "$(sed -nE 's/^launch: warning: rank ([0-9]+) of .*replaced.*/\1/p' err | paste -sd' ')" = "2 1"
done
heals --heal-timeout=1 "$job" 60 0=kill@30/1 3=pause@again/1; finished 3 "one does not come back"
told "it" 'rank 3 of 4 did not meet the others again within 1 s.*replaced'
LIMIT=60 run --nproc-per-node=4 --on-failure=shrink "$job" 60 1=kill@30/1; expect 0 "shrinking"
check "three ranks go on: $(cat out err)" test "$(grep -c 'of 3: step 60 ' out)" = 3

# What a warm standby found out about the server its successors and the survivors need not ask again: all of them, or none.
knows() { grep -c "fake: rank [0-9] of 4 knows GPU .* from $1" err; }
once() { check "nothing is there twice: $(cat err)" not has twice err; }
looks() { # STANDBYS N: rank 1 is killed when so many are warm and were asked
    rm -f go; : >err; { until_true eval '[ "$(grep -c "a standby has .*told" err)" -ge '"$2"' ]'; : >go; } &
    FAKE_NCCL_TOPO=1 LAUNCH_LOG=debug heals --standby=nccl --standby-count=$1 "$job" 60 1=hold@30/1 1=kill@31/1; expect 0 "topology"
    check "topology: right sums: $(cat out)" test "$(grep -c "step 60 total 18300 generation 2" out)" = 4; once
}
looks 4 4; check "first all ask NVML, then nobody: $(cat err)" eval '[ "$(knows NVML)" = 4 ] && [ "$(knows "a file")" = 4 ]'
looks 1 1; check "all ask where only some could be told: $(cat err)" test "$(knows NVML)" = 8
FAKE_NCCL_TOPO_TORN=1 looks 4 4; check "not from a file that was not written to its end: $(cat err)" test "$(knows NVML)" = 8
NCCL_TOPO_FILE=/nowhere looks 4 0; check "not if the user has a file: $(cat err)" test "$(knows NVML)" = 8
mkdir -p machine/etc; echo NCCL_TOPO_FILE=/nowhere >machine/etc/nccl.conf
looks 4 0; check "nor if the server has one: $(cat err)" test "$(knows NVML)" = 8; rm -r machine/etc
given() { "$LAUNCH" --nproc-per-node=4 --max-restarts=1 --on-failure=heal --standby=nccl --standby-count=4 env; }
check "a job whose standbys need all descriptors has no such file" not has ^NCCL_TOPO_FILE= <(ulimit -n 74; given)
check "any other has" has ^NCCL_TOPO_FILE=/proc/ <(given)
FAKE_NCCL_TOPO=1 heals --affinity=none --standby=nccl --standby-count=4 "$job" 60 1=kill@20/1 1=kill@30/2 2=kill@40/3 1=kill@50/4; expect 0 "standbys of other ranks"; once
gpus 1; FAKE_GPUS=1 FAKE_GPU_MIB=8192 heals --share-gpus --standby=nccl --standby-count=2 "$job" 60 1=kill@20/1 2=kill@30/2 1=kill@40/3; finished 4 "ranks that share a GPU"
gpus 4

# One that is dead and not gone, as if it were in the kernel still: whoever traces it has not taken note of its end.
cat >trace.py <<'W'
import ctypes, os, signal, sys
libc, pid = ctypes.CDLL(None), int(sys.argv[1])
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
open("untraced" if libc.ptrace(0x4206, pid, None, None) else "traced", "w").close()  # PTRACE_SEIZE
os.kill(pid, signal.SIGKILL)
signal.pause()
W
if command -v python3 >/dev/null; then
    rm -f pid.*; "$LAUNCH" --nproc-per-node=4 --max-restarts=1 --on-failure=heal --heal-timeout=1 "$job" 0 >out 2>err </dev/null & pid=$!
    until_true test -s pid.0 -a -s pid.1 -a -s pid.2 -a -s pid.3 || fail "all ranks run: $(cat err)"
    python3 trace.py "$(cat pid.1)" & tracer=$!
    until_true test -e traced -o -e untraced || fail "it is traced"
    if [ -e traced ]; then
        until_true not test -e "/proc/$(cat pid.0)" || fail "the others end: $(cat err)"
        kill $tracer; wait $pid; rc=$?; expect 123 "a process that keeps its GPU"
        told "it" 'rank 1 of 4 failed first: it was replaced, but its old process keeps its GPU: it is not gone after 1 s \(--heal-timeout; state D\?\)'
    else
        kill $tracer; kill -TERM $pid; wait $pid
    fi
fi

# Fifty losses: survivors end with what they began with.
kills=; for ((i = 1; i <= 50; i++)); do kills+=" $((1 + i % 3))=kill@$((i + 1))/$i"; done
heals "$job" 60 $kills; finished 51 "fifty losses"
finish
