#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 300
# The scripts for real GPUs, on fake ones: they come to their end, and what they run in sections (tests/gpu/lib.sh) fails, takes too
# long or finds the budget spent without harm to the rest.
. "$SRC/tests/e2e/lib.sh"
[ -e "$BUILD/tests/fake/launch-bench-nccl" ] || skip "no NCCL"
sanitized && skip "needs the plain build"
export LOGS=$PWD/logs
lives() { [ -n "$({ tr -d '\0' <"/proc/$(cat "$1")/cmdline"; } 2>/dev/null)" ]; } # no zombie
said() { check "$1: $(cat out)" has "$2" out; }

# ---- sections ----
mkdir -p tree/tests/gpu; cp "$SRC/tests/gpu/lib.sh" tree/tests/gpu/
worker tree/tests/gpu/try.sh <<'W'
#!/bin/bash
. "$(dirname "$0")/lib.sh"
good() { echo "it runs"; goal ok "a goal" 7; at_most 3 2.5 ms "a limit"; }
bad() { fail "a reason"; at_most 3 3.5 ms "another limit"; }
stuck() { echo $BASHPID >stuck.pid; (trap '' TERM; exec setsid sleep 1000 & echo $! >stray.pid); sleep 1000; }
section good 1 60 good
section bad 1 60 bad
section stuck 1 ${STUCK:-1} stuck
section dear 1000 60 good
section last 1 60 good
finish
W
try() { GPUS=3 timeout -k 5 120 tree/tests/gpu/try.sh >out 2>err </dev/null; rc=$?; }
try; expect 1 "a failure ends with 1"
said "sections are headed" '^== [0-9]+ s: good \(at most 60 s\)$'
said "a failure is told" '^failed: bad: a reason$'; said "a missed limit too" '^missed  another limit +3.5 ms \(at most 3\)$'
said "a goal that is met" '^ok      a limit +2.5 ms \(at most 3\)$'
said "what takes too long is ended" '^failed: stuck: not over after 1 s$'
check "and so is what left its process group" not lives tree/stray.pid; check "and the rest" not lives tree/stuck.pid
said "what does not fit is skipped" '^skipped: dear$'
check "the last runs: $(cat out)" test "$(grep -c '^it runs$' out)" = 2
check "each has its log" has '^it runs$' logs/last.log; check "so has the summary" has '^skipped: dear$' logs/summary.log
ONLY='good|last' try; expect 0 "two that are well"; check "and no other: $(cat out)" test "$(grep -c '^== .*at most' out)" = 2
LIST=1 try; expect 0 "the list"; said "names all" '^dear +1000 s, at most 60$'; check "and runs none" not has 'it runs' out
# Ended from outside: the summary is there all the same.
rm -f tree/stray.pid
STUCK=1000 GPUS=3 tree/tests/gpu/try.sh >out 2>err </dev/null & pid=$!
for name in good bad stuck; do until_true has "^== .*$name" out; done; until_true test -s tree/stray.pid || fail "it is stuck"; kill -TERM $pid; wait $pid
said "the summary" '^failed: bad: a reason$'
check "and nothing stays" not lives tree/stray.pid

# ---- the scripts ----
cd "$SRC" || exit 1
build=${BUILD#"$SRC"/}
script() { # NAME: with fakes
    FAKE=1 timeout -k 5 200 "tests/gpu/$1.sh" "$build" >"$LOGS/../out" 2>&1 </dev/null; rc=$?
    cd "$LOGS/.." || exit 1
    [ $rc = 0 ] || fail "$1.sh: exit code $rc: $(tail -n 40 out)"
    cd "$SRC" || exit 1
}
ONLY='all_gpus|record' script several
cd "$LOGS/.." || exit 1

# ---- a machine that was recorded is the same again ----
for name in epyc-nps4-a100; do
    rm -rf first again; machines=$SRC/tests/machines
    "$machines/mkroot.py" "$machines/$name.machine" first
    LAUNCH_SYSROOT=$PWD/first "$machines/record.py" "$machines/$name.topo.json" >again.machine || fail "$name is recorded"
    "$machines/mkroot.py" again.machine again; fake_nvml again
    LAUNCH_SYSROOT=$PWD/again FAKE_NVML_MACHINE=$PWD/again/nvml run topo --format=json
    expect 0 "$name again"; check "$name: $(diff out "$machines/$name.topo.json" | head -5)" cmp -s out "$machines/$name.topo.json"
done
finish
