#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 180
# Standbys: seen in launch status, of low priority until they are warm, at their rank's place, and the first to go when memory runs out.
. "$SRC/tests/e2e/lib.sh"
cp "$BUILD/tests/fake/heal_job" . && job=$PWD/heal_job # a name of our own, for pgrep
unset XDG_RUNTIME_DIR
gpus 0; mkdir -p machine/dev/shm machine/tmp
start() { # launcher-arguments...: two ranks that go on until they are stopped
    rm -f pid.*
    "$LAUNCH" --nproc-per-node=2 --max-restarts=5 --on-failure=heal --run-id=spare "$@" >out 2>err </dev/null & pid=$!
    until_true test -s pid.0 -a -s pid.1 || fail "all ranks run: $(cat err)"
}
end() { kill -TERM $pid; wait $pid; rc=$?; expect 143 "the end"; check "nothing is left" not pgrep -fx "$job 0"; }
says() { "$LAUNCH" status spare >said 2>&1; has "$1" said; }
standby() { sed -nE "s/^standby $1: [a-z]+, pid ([0-9]+).*/\1/p" said; }
oom_adj() { cat "/proc/$1/oom_score_adj"; }
nice_is() { [ ! -e /proc/self/autogroup ] || has " nice $2\$" "/proc/$1/autogroup"; } # some kernels have no autogroups
mask() { grep Cpus_allowed_list "/proc/$1/status"; }
is_new() { [ -s "pid.$1" ] && [ "$(cat "pid.$1")" != "$2" ]; }

# One that needs its time to start.
mkfifo gate
worker slow.sh <<W
#!/bin/sh
[ -z "\$LAUNCH_SPARE" ] || read -r go <gate
exec "$job" 0
W
was=$(oom_adj self)
start --standby=exec ./slow.sh
until_true says '^standby 0: starting, pid [0-9]+, [0-9.]+M$' || fail "it starts: $(cat said)"
spare=$(standby 0)
until_true has slow.sh "/proc/$spare/cmdline"
check "its priority is low: $(cat /proc/$spare/autogroup)" nice_is $spare 10
check "a rank's is not" nice_is "$(cat pid.0)" 0
echo go >gate
until_true says '^standby 0: warm, pid '$spare || fail "it is warm: $(cat said)"
until_true nice_is $spare 0 || fail "it is no longer of low priority: $(cat /proc/$spare/autogroup)"
check "it goes first when memory runs out" test "$(oom_adj $spare)" = 1000
"$LAUNCH" status spare --json >said; check "JSON: $(cat said)" python3 - $spare <<'P'
import json, sys
standby, = json.load(open("said"))["standby"]
assert standby["pid"] == int(sys.argv[1]) and standby["state"] == "warm" and standby["rss_bytes"] > 100000 and standby["gpu_bytes"] is None, standby
P
old=$(cat pid.1); kill -9 "$old"; until_true is_new 1 "$old" || fail "it takes the place: $(cat err)"
check "that is it" test "$(cat pid.1)" = "$spare"
check "as a rank it goes no earlier than others" test "$(oom_adj $spare)" = "$was"
# Needed before it is warm: it starts as fast as any other.
until_true says '^standby 0: starting, pid' || fail "another one starts"
spare=$(standby 0); until_true has slow.sh "/proc/$spare/cmdline"
old=$(cat pid.0); kill -9 "$old"
until_true has 'rank 0 of 2 was killed' err; until_true nice_is $spare 0 || fail "its priority is a rank's: $(cat /proc/$spare/autogroup)"
until_true says '^standby 0: none$' || fail "there is no other meanwhile: $(cat said)"
echo go >gate; until_true is_new 0 "$old" || fail "it takes the place: $(cat err)"
check "that is it, too" test "$(cat pid.0)" = "$spare"
until_true says ', 0 restarts, 2 healings \(of 5 after failures\), ' || fail "what was healed is told apart: $(cat said)"
check "by ps, too: $("$LAUNCH" ps)" eval '"$LAUNCH" ps | grep -qE "^spare .* RUN .* 0 +2 +[0-9]+"'
check "and to programs: $("$LAUNCH" ps --json)" eval '"$LAUNCH" ps --json | grep -q "\"restarts\": 0, \"healings\": 2, .*\"generation\": 3,"'
until_true says '^standby 0: starting, pid' || fail "a third one starts"
kill -9 "$(standby 0)"; until_true has 'a standby \(pid [0-9]+\) was killed by SIGKILL .*before it was needed' err || fail "its end is told"
check "and is no failure" test "$(grep -c 'it is replaced' err)" = 2
end

# One that is warm goes before one that was made for this rank.
worker slow1.sh <<W
#!/bin/sh
[ "\$LAUNCH_SPARE:\$LAUNCH_SLOT" != 1:3 ] || read -r go <gate
exec "$job" 0
W
start --standby=exec --standby-count=2 ./slow1.sh
until_true says '^standby 0: warm, pid' || fail "the first is warm: $(cat said)"
check "the second is not: $(cat said)" has '^standby 1: starting, pid' said
spare=$(standby 0); old=$(cat pid.1); kill -9 "$old"
until_true is_new 1 "$old" || fail "rank 1 is replaced: $(cat err)"
check "by the warm one" test "$(cat pid.1)" = "$spare"
check "and not by way of the other: $(cat err)" test "$(grep -c 'it is replaced' err)" = 1
end

# A rank and its standby die before the agent hears of either: the dead one is not taken.
state() { has "^State:.$2" "/proc/$1/status"; }
start --standby=exec "$job" 0
until_true says '^standby 0: warm, pid' || fail "a standby is there: $(cat said)"
spare=$(standby 0) old=$(cat pid.1) agent=$(pgrep -P $pid)
kill -STOP "$agent"; until_true state "$agent" T; kill -9 "$old"; until_true state "$old" Z; kill -9 "$spare"; until_true state "$spare" Z; kill -CONT "$agent"
until_true is_new 1 "$old" || fail "the rank is replaced: $(cat err)"
until_true has 'healed after' err || fail "it is healed: $(cat err)"
check "by a new process, at the price of one restart: $(cat err)" test "$(grep -c 'it is replaced' err)" = 1
end

# CPUs: a standby is for the rank that it was placed like.
if [ "$(nproc)" -ge 2 ]; then
    start --standby=exec --standby-count=2 --affinity=cores "$job" 0
    until_true says '^standby 1: warm' || fail "two standbys"
    spare=$(standby 1); old=$(cat pid.1); cpus=$(mask "$old"); kill -9 "$old"; until_true is_new 1 "$old" || fail "it takes the place"
    check "standby 1 is rank 1" test "$(cat pid.1)" = "$spare"
    check "it has the CPUs of that: $cpus" test "$(mask "$spare")" = "$cpus"
    end
fi

# Memory runs out, in a memory cgroup of our own, v2 or v1, if one can be had.
memory_group
if [ -n "$group" ] && ! sanitized; then
    [ -e "$group/memory.swap.max" ] && echo 0 >"$group/memory.swap.max"
    trap 'until_true rmdir $group' EXIT
    worker inside.sh <<W
#!/bin/sh
echo \$\$ >$group/cgroup.procs; exec "\$@"
W
    real=$LAUNCH; printf '#!/bin/sh\nexec ./inside.sh %s "$@"\n' "$LAUNCH" >launch; chmod +x launch; LAUNCH=./launch
    unset LAUNCH_SYSROOT # the counter of kills is a real one
    start --standby=exec "$job" 0
    LAUNCH=$real
    until_true says '^standby 0: warm, pid' || fail "a standby is there"
    spare=$(standby 0); old0=$(cat pid.0) old1=$(cat pid.1)
    # Two others in the group eat all of it: one that has all alone is the killer's first choice, whatever it is told of a standby.
    ./inside.sh bash -c 'x=0123456789abcdef; for ((i = 0; i < 20; i++)); do x=$x$x; done; : >eaten; read -r x <gate' & eater=$!
    until_true test -e eaten
    { ./inside.sh bash -c 'x=0123456789abcdef; while :; do x=$x$x; done'; } 2>/dev/null
    told="a standby \(pid $spare\) was killed by the kernel's out-of-memory killer, .* before it was needed"
    until_true has "$told" err || fail "the standby goes first: $(cat err)"
    check "no rank goes" test -d "/proc/$old0" -a -d "/proc/$old1"
    check "and nothing is healed: $(cat err)" not has 'is replaced|healed' err
    kill $eater 2>/dev/null; wait $eater 2>/dev/null
    end
fi

# With GPUs, on fake CUDA, NCCL and NVML libraries.
gpus 2; mkdir -p machine/dev/shm machine/tmp machine/sys/module/nvidia_uvm; echo 1 >machine/sys/module/nvidia_uvm/refcnt; fake_nvml machine
export LD_LIBRARY_PATH=$BUILD/tests/fake FAKE_GPUS=2 FAKE_NVML_USE=$PWD/use; : >use
start --standby=cuda "$job" 0
until_true says '^standby 0: warm, pid [0-9]+, [0-9.]+M, 0.0M on GPU 0$' || fail "it is warm: $(cat said)"
echo "0 $(standby 0) 524288000" >use
until_true says '^standby 0: warm, pid [0-9]+, [0-9.]+M, 500.0M on GPU 0$' || fail "its GPU memory is shown: $(cat said)"
"$LAUNCH" status spare --json >said; check "in JSON, too" has '"gpu": "0", .*"gpu_bytes": 524288000}' said
end
finish
