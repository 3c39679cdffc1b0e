#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# Faults of GPUs: a program's own start it again, a GPU's own put that GPU into quarantine, which jobs avoid until it is cleared.
. "$SRC/tests/e2e/lib.sh"
[ -e "$BUILD/tests/fake/libnvidia-ml.so.1" ] || skip "no fake NVML"
gpus 4; : >machine/dev/kmsg
export FAKE_GPUS=4
# xid GPU NUMBER: as the driver writes it
xid() { printf '3,1,99,-;NVRM: Xid (PCI:0000:%02x:00): %d, pid=%s, name=x, what it says\n' $((16 + $1)) "$2" "'<unknown>'" >>machine/dev/kmsg; }
export -f xid
# fail.sh RANK NUMBER: in the first attempt that rank's GPU has a fault
worker fail.sh <<'W'
#!/bin/bash
[ "$TORCHELASTIC_RESTART_COUNT$RANK" != "0$1" ] || { xid $RANK $2; kill -ABRT $$; sleep 10; }
echo "rank $RANK after $TORCHELASTIC_RESTART_COUNT: $CUDA_VISIBLE_DEVICES"
W
worker see.sh <<'W'
#!/bin/sh
echo "$RANK of $WORLD_SIZE: $CUDA_VISIBLE_DEVICES"
W
told() { check "$1 is told: $(cat err)" has "$2" err; }
clear_all() { "$LAUNCH" gpus --clear >clear.out 2>&1; }
quarantined() { "$LAUNCH" gpus | sed -n 's/^\([0-9]*\) *faulty.*/\1/p' | paste -sd' '; }
bad() { check "GPUs in quarantine: '$1', not '$(quarantined)'" test "$(quarantined)" = "$1"; }

# The first of many has its fault before the last is started.
run --nproc-per-node=100 --share-gpus ./fail.sh 0 31; expect 134 "a fault while workers are started"
told "it" 'rank 0 of 100 .*was killed by SIGABRT.*, after Xid 31 \(access to GPU memory that is not mapped\) of GPU 0000:10:00 '
for how in --nproc-per-node=2 '--gpus=2 --nproc-per-node=gpu'; do
    run $how --max-restarts=1 ./fail.sh 1 31; expect 0 "$how: a fault of the program"
    told "it" 'rank 1 of 2 .*was killed by SIGABRT.*, after Xid 31 \(access to GPU memory that is not mapped\) of GPU 0000:11:00 '
    check "$how: both run again: $(cat out)" test "$(grep -c 'after 1' out)" = 2; bad ""
    run $how --max-restarts=3 --run-id=night ./fail.sh 1 79; expect 134 "$how: a GPU that is lost ends the job"
    told "it" 'was killed by SIGABRT.*, after Xid 79 \(the GPU has fallen off the bus\) of GPU 0000:11:00 '
    told "the quarantine" '^launch: warning: GPU 1 \(0000:11:00.0\) is in quarantine: Xid 79 \(the GPU has fallen off the bus\); until the server is booted again, or launch gpus --clear=1$'
    told "the end" 'exit code 134; a GPU of the job is in quarantine \(launch gpus\)$'; bad 1
    [ "$how" = --nproc-per-node=2 ] && clear_all
done
"$LAUNCH" gpus >out; check "launch gpus: $(cat out)" has '^1    faulty  in quarantine since 2.* .*: Xid 79 \(the GPU has fallen off the bus\) \(run night\)$' out
"$LAUNCH" gpus --json | python3 -c '
import json, sys
g = json.load(sys.stdin)["gpus"]
assert g[1]["state"] == "quarantined" and g[1]["quarantine"]["run"] == "night" and g[1]["quarantine"]["since"] > 1e9, g
assert g[0]["state"] == "free" and g[0]["quarantine"] is None, g' || fail "launch gpus --json"

# who avoids it, and who has it all the same
run --gpus=3 ./see.sh; expect 0 "three others"; check "they are: $(cat out)" has ': 0,2,3$' out
run --gpus=1-1 ./see.sh; expect 75 "the GPU by its name"; told "--force" 'free, 1 are needed .*; --force takes those in quarantine, too'
told "the reason" '^launch:   1    faulty  in quarantine since'
run --gpus=4 ./see.sh; expect 75 "all four"; run --gpus=4 --force ./see.sh; expect 0 "all four with --force"
run --nproc-per-node=gpu ./see.sh; expect 0 "one worker per GPU"; check "three are left: $(cat out)" has '2 of 3: 0,2,3$' out
told "what is left out" '^launch: warning: GPU 1 is in quarantine: Xid 79 .*; the job does without it \(--force uses it\)$'
run --nproc-per-node=gpu --gpu-visibility=rank ./see.sh; check "one each: $(cat out)" has '^1 of 3: 2$' out
run --nproc-per-node=gpu --force ./see.sh; expect 0 "--force"; check "all: $(cat out)" has '^3 of 4: $' out; check "nothing is said: $(cat err)" test ! -s err
run --nproc-per-node=3 ./see.sh; check "three workers have the others: $(cat out)" has '^2 of 3: 0,2,3$' out
run --nproc-per-node=1 ./see.sh; check "who does not come to it sees no change: $(cat out)" has '^0 of 1: $' out
run --nproc-per-node=4 ./see.sh; expect 0 "four workers"; told "why it is used" 'GPU 1 is in quarantine: .*; it is used all the same, as the job needs so many$'
CUDA_VISIBLE_DEVICES=3,1 run --nproc-per-node=gpu ./see.sh; check "in the notation of the variable: $(cat out)" has '^0 of 1: 3$' out
CUDA_VISIBLE_DEVICES=1 run --nproc-per-node=gpu ./see.sh; expect 75 "nothing is left"; told "that" 'all 1 GPUs .* in quarantine \(launch gpus\); --force uses them'
run --nproc-per-node=gpu --on-failure=shrink --min-workers=4 ./see.sh; expect 75 "too few for --min-workers"; check "one line: $(cat err)" test "$(wc -l <err)" = 1
run --nproc-per-node=2 --force --max-restarts=1 ./fail.sh 1 79; expect 0 "with --force a fault ends nothing"
# who waits gets it when it is cleared
"$LAUNCH" --gpus=4 --wait=20s ./see.sh >wait.out 2>wait.err </dev/null & waiter=$!
until_true test -s wait.err || fail "it waits: $(cat wait.err)"
run gpus --clear=1; expect 0 "clearing"; check "it is told: $(cat out)" has '^GPU 1 is out of quarantine: Xid 79 ' out
wait $waiter || fail "the waiting job has all four: $(cat wait.err)"; bad ""
run gpus --clear=0-3; expect 0 "nothing to clear"; check "that is told: $(cat out)" has '^no GPU of these was in quarantine$' out
for wrong in --clear=4 --clear= --clear=x --clear=1,-2 --clear=GPU-1 --clear=0-9999999999; do
    run gpus $wrong; expect 2 "$wrong"; check "$wrong, one line: $(cat err)" has '^launch: gpus: --clear must name GPUs of this server, which has 4' err
done
# a boot ends it
mkdir -p machine/proc/sys/kernel/random; echo 1-2-3 >machine/proc/sys/kernel/random/boot_id
run --nproc-per-node=1 ./fail.sh 0 95; told "what helps" 'after a reset: launch gpus --clear=0$'; bad 0; echo 4-5-6 >machine/proc/sys/kernel/random/boot_id; bad ""

# the job shrinks, with right sums, and other losses are healed as ever
job=$BUILD/tests/fake/heal_job
LD_LIBRARY_PATH=$BUILD/tests/fake "$LAUNCH" --nproc-per-node=4 --on-failure=shrink --max-restarts=5 "$job" 0 >out 2>err </dev/null & pid=$!
until_true test -s pid.0 -a -s pid.1 -a -s pid.2 -a -s pid.3 || fail "all ranks run: $(cat err)"
healed() { [ "$(grep -c 'healed after' err)" = "$1" ]; }
is_new() { [ -n "$(cat pid.2)" ] && [ "$(cat pid.2)" != "$1" ]; }
xid 2 31; old=$(cat pid.2); kill -9 "$old"; until_true healed 1; until_true is_new "$old"
told "one that is replaced" 'rank 2 of 4 was killed by SIGKILL.*, after Xid 31 .*; it is replaced \(restart 1 of 5\)'
xid 2 79; kill -9 "$(cat pid.2)"; until_true healed 2; told "one that is not" 'rank 2 of 4 was killed by SIGKILL.*, after Xid 79 .*; the job goes on with 3 ranks$'
xid 3 43; kill -9 "$(cat pid.3)"; until_true healed 3; told "others" 'rank 3 of 4 .*, after Xid 43 .*; it is replaced \(restart 2 of 5\)'
kill -TERM $pid; wait $pid; rc=$?; expect 143 "the job with three ranks ends when it is asked to"; bad 2; clear_all

# NVML tells what no log does; it may hang, too
fake_nvml machine; rm machine/dev/kmsg
export FAKE_NVML_EVENTS=$PWD/events FAKE_NVML_RECOVERY=$PWD/recovery
worker nvml.sh <<'W'
#!/bin/bash
[ $TORCHELASTIC_RESTART_COUNT = 0 ] || exit 0
until [ -e events.ready ]; do sleep 0.02; done
[ $RANK = 1 ] || exec sleep 30
[ -z "$2" ] || echo "$2" >recovery
echo "$1" >>events
until [ -e dead ]; do sleep 0.02; done
exit 6
W
nvml() { # TYPE DATA [ACTIONS]: rank 1 fails when that was told
    : >events; : >recovery; rm -f events.ready dead
    "$LAUNCH" --nproc-per-node=2 --max-restarts=1 ./nvml.sh "$1 $2" "${3:-}" >out 2>err </dev/null & pid=$!
    until_true test -e events.ready || fail "NVML's events are waited for: $(cat err)"
}
ended() { : >dead; wait $pid; rc=$?; expect "$1" "$2"; }
nvml "1 8" 31; ended 0 "a fault of the program, by NVML"; bad ""
nvml "1 8" 48; until_true has 'GPU 1 .* is in quarantine: Xid 48 ' err; ended 6 "a memory error, by NVML"; told "it" 'exited with code 6, after Xid 48 \(an uncorrectable memory error\) of GPU 0000:11:00.0 '; bad 1; clear_all
nvml "1 2" 0; until_true has 'is in quarantine: NVML event 0x2 \(a double-bit' err; ended 6 "a double-bit error"; bad 1; clear_all
nvml "1 8000" 0 "1 1"; until_true has 'is in quarantine: recovery action 1 \(the GPU is to be reset\)' err; ended 6 "a recovery action"; bad 1; clear_all
# as long as nobody has CUDA open NVML is left alone; it is told of who opens it, and does not look for that
mkdir -p machine/sys/module/nvidia_uvm; uses() { echo "$1" >machine/sys/module/nvidia_uvm/refcnt; }
uses 0; : >machine/dev/nvidia-uvm; rm -f events.ready
"$LAUNCH" --nproc-per-node=1 sleep 60 >out 2>err </dev/null & pid=$!
looks() { cat "/proc/$(pgrep -oP $pid)/fdinfo/"* 2>/dev/null | grep -q inotify; } # the agent
until_true looks || fail "who opens CUDA is looked for: $(cat err)"; check "NVML is left alone" test ! -e events.ready
uses 1; : <machine/dev/nvidia-uvm
until_true test -e events.ready || fail "NVML's events are waited for from then on"; check "nobody is looked for any more" not looks
kill -TERM $pid; wait $pid; rc=$?; expect 143 "a job that is ended"; rm -r machine/sys/module/nvidia_uvm machine/dev/nvidia-uvm
FAKE_NVML_EVENTS_HANG=1 nvml "1 8" 79; ended 0 "NVML that hangs"; check "nobody waits for it: $(cat err)" not has 'left|NVML' err; bad ""

# what somebody may have put into the file
file=machine/tmp/launch-gpu-0000:11:00.0; [ -e "$file" ] || fail "the lock file is there"
record=131072 # where it begins
hostile() { run --nproc-per-node=gpu ./see.sh; expect 0 "$1"; check "$1: nothing is said: $(cat err)" test ! -s err; "$LAUNCH" gpus >out 2>&1 || fail "$1: launch gpus: $(cat out)"; bad ""; }
head -c 200000 /dev/urandom >"$file"; hostile "noise"
truncate -s 1T "$file"; hostile "a huge file"; truncate -s 0 "$file"
printf 'launch quarantine\nboot x\nreason y\n' | dd of="$file" bs=$record seek=1 conv=notrunc status=none; hostile "another boot"
printf 'launch quarantine\nboot 4-5-6\nsince 99999999999999999999\nrun \33[2J\nreason %0999d' 7 | dd of="$file" bs=$record seek=1 conv=notrunc status=none
"$LAUNCH" gpus >out; check "a forged one is shown as text: $(cat out)" has '^1    faulty  in quarantine since .*: 0000* \(run \?\[2J\)$' out; clear_all; bad ""
: >machine/dev/kmsg; echo precious >victim; chmod 666 victim; rm "$file"; ln -s "$PWD/victim" "$file"
run --nproc-per-node=2 --max-restarts=3 ./fail.sh 1 79; expect 134 "a link in the place of the file"; told "it" 'GPU 1 .* is faulty: Xid 79 .*; other jobs are not kept from it: .*symbolic link'
check "the victim is as it was" test "$(cat victim)" = precious; rm "$file"
# another user's file is as good as ours
: >"$file"; chmod 666 "$file"; [ "$(id -u)" != 0 ] || chown 65534 "$file"
run --nproc-per-node=2 ./fail.sh 1 79; bad 1; clear_all; bad ""
finish
