#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# launch grow, and a quarantine that ends: ranks without which a job goes on come back, and nothing that was committed is lost.
. "$SRC/tests/e2e/lib.sh"
cp "$BUILD/tests/fake/heal_job" . && job=$PWD/heal_job # a name of our own, for pgrep
unset XDG_RUNTIME_DIR
gpus 0; mkdir -p machine/dev/shm machine/tmp
start() { # launcher-arguments...: a job that goes on until it is stopped, once every rank has made a step
    rm -f pid.*
    "$LAUNCH" --nproc-per-node=4 --on-failure=shrink --run-id=tree "$@" "$job" 0 >out 2>err </dev/null & pid=$!
    until_true test -s pid.0 -a -s pid.1 -a -s pid.2 -a -s pid.3 || fail "all ranks run: $(cat err)"
}
end() { kill -TERM $pid; wait $pid; rc=$?; expect 143 "the end"; check "nothing is left" not pgrep -fx "$job 0"; check "no sum was wrong: $(cat err)" not has ': sum|torn' err; }
ask() { timeout -k 5 30 "$LAUNCH" "$@" >said 2>told </dev/null; rc=$?; }
times() { [ "$(grep -cE "$2" err)" -ge "$1" ]; }
told() { until_true times "$1" "$2" || fail "$2 is told $1 times: $(cat err)"; }
of() { ask status tree --rank "$1"; awk -v r="$1" -v f="$2" '$1 == r { print $f }' said; } # a column of launch status
pid_of() { of "$1" 2; }
step_of() { of "$1" 6; }
lose() { kill -9 "$(pid_of "$1")"; }
steps() { local r n=0; for r in $1; do n=$(step_of "$r"); [ "$n" -gt "$2" ] || return 1; done; }
back() { until_true steps "$1" "${2:-0}" || fail "rank $1 goes on behind step ${2:-0}: $(cat err)"; }
refused() { expect 2 "$1"; check "$1: one line: $(cat told)" test "$(wc -l <told)" = 1; check "$1: $(cat told)" has "$2" told; }

# A rank that was lost for good.
start
ask grow tree; refused "nobody is missing" '^launch: job tree: the job has all its 4 ranks$'
old0=$(pid_of 0)
lose 1; told 1 'rank 1 of 4 .*; the job goes on with 3 ranks$'; told 1 '^launch: healed'
ask status tree; check "status tells: $(cat said)" has '^ +1 +- .* lost; the job goes on without it \(launch grow\)$' said
check "three are alive" has '3 of 4 ranks alive' said
ask grow tree --rank 2; refused "another rank" '^launch: job tree: rank 2 is not missing$'
ask grow tree --rank 4; refused "no such rank" 'there is no rank 4, the job has 4 workers'
before=$(step_of 0)
ask grow tree; expect 0 "grow"; check "it has nothing to say" test ! -s told -a ! -s said
told 1 '^launch: asked for lost ranks to come back \(launch grow, pid [0-9]+\)$'
told 1 '^launch: grown to 4 ranks after [0-9.]+ ms: rank 1 is pid [0-9]+; generation 3$'
back '0 1 2 3' "$before"
check "a survivor keeps its process" test "$(pid_of 0)" = "$old0"
# Again, two of them, one after the other.
lose 0; told 2 'goes on with 3 ranks'; lose 3; told 1 'goes on with 2 ranks'
ask grow tree --rank 3; expect 0 "one of two"; told 1 'grown to 3 ranks .*: rank 3 is pid'; back 3
ask grow tree --rank 0; expect 0 "the other"; told 1 'grown to 4 ranks .*: rank 0 is pid'; back 0
ask grow tree; refused "never more than there were" 'has all its 4 ranks'
# A loss while it grows is one like any other.
lose 2; told 1 'rank 2 of 4 .* goes on with 3 ranks'; ask grow tree; lose 1; told 1 'rank 1 of 4 .* goes on with [23] ranks'; back '0 3' "$before"
until_true eval '"$LAUNCH" grow tree 2>told || has "all its 4 ranks" told' || fail "and it grows to the end: $(cat told)"
back '0 1 2 3' "$before"
end

# What cost nothing; and a standby.
start --max-restarts=1 --standby=exec
lose 1; told 1 'it is replaced \(restart 1 of 1\)$'; back 1; told 1 '^launch: healed'
lose 2; told 1 'the job goes on with 3 ranks'; told 2 '^launch: healed'
until_true eval '"$LAUNCH" status tree | grep -q "^standby 0: warm"' || fail "a standby is there"
ask grow tree; told 1 'grown to 4 ranks .*: rank 2 is pid [0-9]+ \(a standby\)'; back 2
end

# A job that has nothing to grow.
"$LAUNCH" --nproc-per-node=2 --run-id=tree sleep $TAG >out 2>err </dev/null & pid=$!
until_true running 2; ask grow tree; refused "a program without liblaunch" 'the job has all its 2 ranks'
kill -TERM $pid; wait $pid

# A GPU in quarantine, on fake CUDA and NCCL libraries.
export LD_LIBRARY_PATH=$BUILD/tests/fake FAKE_GPUS=4
gpus 4; mkdir -p machine/proc/sys/kernel/random machine/dev/shm machine/tmp lease; echo this-boot >machine/proc/sys/kernel/random/boot_id
mark() { printf '%-512s' "$1" | tr '~' '\n' >mark; dd if=mark of="$lock" bs=1 seek="$at" conv=notrunc status=none; }
start --lease-dir=lease --gpus=4
lock=$(ls lease/*00-12* lease/*12:00* 2>/dev/null | head -1); at=$(($(grep -oE 'HOLDER_PAGES +[0-9]+' "$SRC/agent/holder.h" | grep -oE '[0-9]+') * $(grep -oE 'HOLDER_PAGE_BYTES +[0-9]+' "$SRC/agent/holder.h" | grep -oE '[0-9]+')))
check "the lock file of GPU 2 is there: $(ls lease)" test -n "$lock"
mark 'launch quarantine~boot this-boot~since 1~run tree~reason Xid 79~'
lose 2; told 1 'rank 2 of 4 .*; the job goes on with 3 ranks$'; told 1 '^launch: healed'
ask grow tree; refused "its GPU is in quarantine" 'the GPU of rank 2 is in quarantine: Xid 79 \(launch gpus --clear ends that\)$'
mark ''
told 1 '^launch: the GPU of rank 2 is in quarantine no more$'; told 1 'grown to 4 ranks .*: rank 2 is pid'; back 2
end
finish
