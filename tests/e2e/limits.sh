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
finish
