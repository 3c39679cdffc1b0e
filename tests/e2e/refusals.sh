#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 60
# Commands that run a job inside (check, bench, topo --transports): where launch refuses that job, or somebody ends it, they end with the
# same exit code, and say what launch said and nothing else: NCCL is not to blame.
. "$SRC/tests/e2e/lib.sh"
[ -e "$BUILD/tests/fake/launch-bench-nccl" ] || skip "no NCCL"
cp "$BUILD/tests/fake/launch-bench-nccl" job # under a name of its own
export LD_LIBRARY_PATH=$BUILD/tests/fake LAUNCH_BENCH_JOB=$PWD/job TMPDIR=$PWD FAKE_GPUS=1
gpus 1; mkdir -p machine/dev/shm machine/tmp; unset XDG_RUNTIME_DIR
"$LAUNCH" --run-id=holder --gpus=1 sh -c 'echo up >held; exec sleep '$TAG >/dev/null 2>hold.err </dev/null & holder=$!
until_true test -s held || fail "a job that has the GPU: $(cat hold.err)"
small='-b 8 -e 8 -n 1 -w 0'
for command in check 'check --json' 'topo --transports' 'bench --transports' 'bench --transports --json' "bench $small" "bench sendrecv $small" \
    "bench $small --format=json" "bench $small -J there.json" "bench $small --save=there.json"; do
    run $command --gpus=1; expect 75 "launch $command"
    check "$command: the refusal: $(cat err)" has '^launch: --gpus: 0 of the 1 GPUs? .* free' err
    check "$command: and who has the GPU: $(cat err)" has 'run holder' err
    check "$command: and nothing else: $(cat err)" not has 'NCCL|ended|launch (check|doctor|bench)|bench: ' err
    check "$command: nor on stdout: $(cat out)" test ! -s out
    check "$command: no file" test ! -e there.json
done
# A wait that is over is a refusal, too.
run check --gpus=1 --wait=10ms; expect 75 "a wait that is over"; check "is told: $(cat err)" has '^launch: --gpus: 0 of the 1 ' err
kill -9 $holder; wait $holder 2>/dev/null

# Somebody ends the job inside.
workers() { pgrep -f "^$PWD/job "; }
for command in check 'topo --transports' "bench $small"; do
    FAKE_NCCL_HANG=always "$LAUNCH" $command --run-id=inside >out 2>err </dev/null & pid=$!
    until_true eval 'workers >/dev/null' || fail "$command: a worker"
    until_true "$LAUNCH" stop inside >/dev/null 2>&1 || fail "$command: launch stop"
    wait $pid; rc=$?; expect 143 "launch stop and launch $command"
    check "$command: NCCL is not to blame: $(cat out err)" not has '^broken|NCCL (fails|hangs)' out err
done
finish
