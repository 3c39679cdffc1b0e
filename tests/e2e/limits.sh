#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# Limits that are too low: one line, exit 125, nothing left.
. "$SRC/tests/e2e/lib.sh"
told() { # REGEX: the last run failed as ours, in one line that says this
    expect 125 "$1"; check "message has '$1': $(cat err)" has "$1" err
    check "$1: one line: $(cat err)" test "$(wc -l <err)" -le 2; check "$1: nothing is left" running 0
}
(ulimit -n 60; LIMIT=20 run --nproc-per-node=64 sleep $TAG; echo $rc >rc); rc=$(cat rc); told 'ulimit -Hn'
(ulimit -f 1; LIMIT=20 run --nproc-per-node=8 sleep $TAG; echo $rc >rc); rc=$(cat rc); told 'shared memory'
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    cp "$LAUNCH" launch; chmod 755 . launch; rm -f err out; : >out; : >err; chmod 666 out err
    setpriv --reuid=54321 --clear-groups bash -c 'ulimit -u 6; exec ./launch --nproc-per-node=16 sleep '$TAG >out 2>err </dev/null
    rc=$?; told 'ulimit -u'; check "the rank is named: $(cat err)" has 'rank [0-9]+ can.t be started' err
fi
run --nproc-per-node=300 true; expect 0 "300 workers"
gpus 2
small() { # CODE arguments...: under a limit of the stack with which every small program starts
    local code=$1; shift
    (ulimit -s 64; run "$@"; echo $rc >rc); rc=$(cat rc); expect "$code" "ulimit -s 64: $*"
}
small 0 --nproc-per-node=2 --no-python sh -c 'ulimit -s'
check "the workers have the limit that was given: $(cat out)" test "$(sort -u out)" = 64
small 3 --nproc-per-node=2 --max-restarts=1 --hang-timeout=60 --tee=3 --log-dir=logs --log-rotate-size=1M --no-python sh -c 'exit 3'
small 0 --lease-dir="$PWD" --gpus=auto --wait=20s --nproc-per-node=2 --report-placement --no-python true
for command in ps topo "topo --json" "gpus --lease-dir=." doctor "help" "check --help"; do
    (ulimit -s 64; run $command; echo $rc >rc); check "ulimit -s 64: launch $command ends by itself: $(cat rc)" test "$(cat rc)" -lt 126
done
gpus 0
sanitized || small 0 --on-failure=heal --max-restarts=2 --nproc-per-node=2 "$BUILD/tests/fake/heal_job" 60 1=kill@30/1
finish
