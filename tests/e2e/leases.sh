#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# --gpus: GPUs for one job alone, in every form; what workers see of them; who is told what.
. "$SRC/tests/e2e/lib.sh"
worker p.sh <<'W'
#!/bin/sh
echo "$CUDA_VISIBLE_DEVICES|$CUDA_DEVICE_ORDER|$NCCL_RAS_ADDR" >v.$RANK
W
# hold ARGUMENTS...: a job that keeps its GPUs until release, which returns when they are free: who looks at once may find the
# agent still ending the job
hold() {
    : >held; "$LAUNCH" --run-id=holder "$@" sh -c 'echo up >>held; exec sleep '$TAG >/dev/null 2>hold.err </dev/null & holder=$!
    until_true test -s held || fail "hold $*: $(cat hold.err)"
}
free() { not eval '"$LAUNCH" gpus | grep -q "run holder"'; }
release() { kill -9 $holder; wait $holder 2>/dev/null; until_true free || fail "GPUs are still held"; }
# sees ENTRIES|ORDER arguments...: N workers that see that
sees_exactly() { case $(cat v.0) in "$1" | "$1|"*) true ;; *) false ;; esac; }
sees() {
    local want=$1; shift; rm -f v.*
    run "$@" ./p.sh; expect 0 "$*"; check "$*: $want, not $(cat v.0)" sees_exactly "$want"
}
gpus 8
sees '0,1|PCI_BUS_ID' --gpus=2
sees '0,1|PCI_BUS_ID' --gpus=2 --nproc-per-node=gpu; check "two workers" test -e v.1 -a ! -e v.2
sees '0,1,2|PCI_BUS_ID' --gpus=auto --nproc-per-node=3
sees '4,5,6,7|PCI_BUS_ID' --gpus=4-7 --nproc-per-node=gpu; check "four workers" test -e v.3 -a ! -e v.4
sees '2,0|PCI_BUS_ID' --gpus=2,0
sees '3|PCI_BUS_ID' --gpus=3-3
sees '0,1,2,3,4,5,6,7|PCI_BUS_ID' --gpus=all
sees 'GPU-000000a3,GPU-000000a1|PCI_BUS_ID' --gpus=GPU-000000a3,GPU-000000a1
sees 'GPU-000000a0-0000-0000-0000-000000000000|PCI_BUS_ID' --gpus=1 --gpu-ids=uuid
sees '0|PCI_BUS_ID' --gpus=2 --gpu-visibility=rank --nproc-per-node=gpu; check "the other: $(cat v.1)" has '^1\|' v.1
LAUNCH_GPUS=2 sees '0,1|PCI_BUS_ID' --nproc-per-node=gpu
# the variable bounds the choice, and its notation is kept
CUDA_VISIBLE_DEVICES=6,5,4 sees '5,4|' --gpus=2
CUDA_VISIBLE_DEVICES=GPU-000000a6,GPU-000000a5 sees 'GPU-000000a5|' --gpus=5-5
CUDA_VISIBLE_DEVICES=6,5,4 sees '4,6|' --gpus=GPU-000000a4,6
CUDA_VISIBLE_DEVICES=1,2 CUDA_DEVICE_ORDER=FASTEST_FIRST sees '1|FASTEST_FIRST' --gpus=1
CUDA_VISIBLE_DEVICES=MIG-377e0049-554c-540b-93c6-d0976f8426cb sees 'MIG-377e0049-554c-540b-93c6-d0976f8426cb|' --gpus=1
NCCL_RAS_ADDR=localhost:9 sees '0|PCI_BUS_ID|localhost:9' --gpus=1

# what can't be
refused() { local text=$1; shift; rm -f v.*; run "$@" ./p.sh; expect 2 "$*"
    check "$*: has '$text': $(cat err)" has "$text" err; check "$*: one line" test "$(wc -l <err)" = 1 -a ! -e v.0; }
for bad in 0 -1 x 1.5 '' 65 9,x 4-; do refused 'gpus: must be' "--gpus=$bad"; done
refused '9 GPUs are asked for, this server has 8' --gpus=9
refused 'no GPU 8 here.*0 to 7' --gpus=6-8
refused 'no GPU GPU-77' --gpus=GPU-77
refused 'already in the list' --gpus=1,1
refused 'already in the list' --gpus=1,GPU-000000a1
refused 'auto' --gpus=auto --nproc-per-node=gpu
CUDA_VISIBLE_DEVICES=1,2 refused "CUDA_VISIBLE_DEVICES='1,2' leaves 2" --gpus=3
CUDA_VISIBLE_DEVICES=1,2 refused "3 is not among those of CUDA_VISIBLE_DEVICES='1,2'" --gpus=2-3
CUDA_VISIBLE_DEVICES= refused "leaves none of the 8" --gpus=1
CUDA_VISIBLE_DEVICES=MIG-37 refused 'whole name' --gpus=1
refused 'lease-dir|missing' --gpus=1 --lease-dir=./missing
mkdir open; chmod 777 open; refused 'sticky bit' --gpus=1 --lease-dir=open
: >plain; refused 'plain' --gpus=1 --lease-dir=plain
run --wait --nproc-per-node=1 ./p.sh; expect 0 "--wait alone"; check "--wait alone is told: $(cat err)" has '--wait has no effect without --gpus' err

# taken is taken: each form, and what is told
hold --gpus=0,3
sees '1,2|PCI_BUS_ID' --gpus=2
run --gpus=7 ./p.sh; expect 75 "seven of six"
check "who has them: $(cat err)" has '^launch:   3    leased  run holder \(sh, user [a-z0-9]+, pid '$holder', since ' err
check "what is free: $(cat err)" has '^launch:   1    free' err
check "how many: $(cat err)" has '6 of the 8 GPUs asked for are free, 7 are needed \(--wait' err
for which in all 0-0 0,1 GPU-000000a3 2-4; do run --gpus=$which ./p.sh; expect 75 "--gpus=$which"; done
CUDA_VISIBLE_DEVICES=0,1 run --gpus=2 ./p.sh; expect 75 "those of the variable"
CUDA_VISIBLE_DEVICES=0,1 sees '1|' --gpus=1
run --nproc-per-node=4 ./p.sh; expect 0 "a job without --gpus"
check "it is warned once: $(cat err)" test "$(grep -c 'GPU 0 is leased by run holder' err)" = 1 -a "$(wc -l <err)" = 1
"$LAUNCH" gpus >out; check "launch gpus: $(cat out)" has '^3    leased  run holder' out
check "and free ones: $(cat out)" has '^7    free$' out
"$LAUNCH" gpus --json | python3 -c '
import json, sys
d = json.load(sys.stdin)
assert [g["index"] for g in d["gpus"] if g["state"] == "leased"] == [0, 3], d
assert d["gpus"][3]["holders"][0]["run"] == "holder" and d["gpus"][3]["holders"][0]["pid"] == int(sys.argv[1]), d
assert d["gpus"][1] | {"processes": 0} == {"index": 1, "pci": "0000:11:00.0", "processes": 0, "state": "free", "holders": [], "quarantine": None,
    "uuid": "GPU-000000a1-0000-0000-0000-000000000001"}, d' $holder || fail "gpus --json"
run gpus --jsn; expect 2 "launch gpus with a wrong option"; check "it is told: $(cat err)" has "gpus: --jsn: unknown option; did you mean --json\?" err
run gpus --help; expect 0 "launch gpus --help"; check "it is short: $(cat out)" has '^usage: launch gpus' out
"$LAUNCH" gpus >/dev/full 2>err; rc=$?; expect 125 "launch gpus on a full disk"; check "it is told: $(cat err)" has 'No space left' err
release; sees '0,1|PCI_BUS_ID' --gpus=2
# a worker has none of the descriptors
run --gpus=2 sh -c 'ls -l /proc/self/fd' ; check "no lock in a worker: $(cat out)" not has 'launch-(gpu|queue)' out

# without --gpus a hold is shared, on the GPUs that the workers use
hold --nproc-per-node=3
"$LAUNCH" gpus >out; check "shared: $(cat out)" test "$(grep -c '^[012]    shared  run holder' out)" = 3 -a "$(grep -c free out)" = 5
sees '3,4|PCI_BUS_ID' --gpus=2
run --nproc-per-node=3 ./p.sh; expect 0 "two that share"; check "nobody is warned: $(cat err)" test ! -s err
release
CUDA_VISIBLE_DEVICES=6,7 hold --nproc-per-node=1; sees '7|PCI_BUS_ID' --gpus=7-7; run --gpus=6-6 ./p.sh; expect 75 "a GPU that is shared"; release

# every process of a job may be killed: its GPUs are free at once
for victim in guard agent both worker; do
    hold --gpus=all --nproc-per-node=2; agent=$(pgrep -P $holder); w=$(pgrep -P "$agent" | head -1)
    case $victim in guard) kill -9 $holder ;; agent) kill -9 "$agent" ;; both) kill -9 $holder "$agent" ;; worker) kill -9 "$w" ;; esac
    wait $holder 2>/dev/null
    until_true running 0
    run --gpus=all --wait=10s ./p.sh; expect 0 "after the end of $victim"
done

# a launch within a job is part of it
LIMIT=20 run --gpus=2 "$LAUNCH" --nproc-per-node=2 ./p.sh; expect 0 "launch within launch"; check "it is not warned: $(cat err)" test ! -s err
check "its RAS port is its own: $(cat v.0)" has '\|127.0.0.1:[0-9]+$' v.0
# MIG instances by themselves; of the old names the GPU is known
mig=MIG-377e0049-554c-540b-93c6-d0976f8426cb
CUDA_VISIBLE_DEVICES=$mig hold --gpus=1; CUDA_VISIBLE_DEVICES=$mig run --gpus=1 ./p.sh; expect 75 "a MIG instance that is taken"; release
old=MIG-GPU-000000a1-0000-0000-0000-000000000001
CUDA_VISIBLE_DEVICES=$old/1/0 hold --gpus=1
CUDA_VISIBLE_DEVICES=$old/2/0 sees "$old/2/0|" --gpus=1
run --gpus=1-1 ./p.sh; expect 75 "the GPU of a MIG instance that is taken"
check "whose is told: $(cat err)" has '^launch:   1    shared  run holder ' err; release
CUDA_VISIBLE_DEVICES=$old/1/0 hold --nproc-per-node=1; run --gpus=1-1 ./p.sh; expect 75 "the GPU of a MIG instance that is used"
release
# of the new ones NVML knows it
if [ -e "$BUILD/tests/fake/libnvidia-ml.so.1" ]; then
    fake_nvml machine; export FAKE_NVML_MIG="5 $mig"
    CUDA_VISIBLE_DEVICES=$mig hold --gpus=1
    run --gpus=5-5 ./p.sh; expect 75 "the GPU of a MIG instance, as NVML tells"; sees '0,1,2,3,4,6,7|PCI_BUS_ID' --gpus=7
    check "launch gpus: $("$LAUNCH" gpus)" eval '"$LAUNCH" gpus | grep -q "^5    shared  run holder "'; release
    hold --gpus=5-5; CUDA_VISIBLE_DEVICES=$mig run --gpus=1 ./p.sh; expect 75 "a MIG instance of a GPU that is taken"; release
    unset FAKE_NVML_MIG; rm -r machine/usr
fi
# who runs in the background is found by the process that does
mkdir -p machine/tmp; id=$("$LAUNCH" --gpus=1 --detach --log-dir=back sleep $TAG); pid=$("$LAUNCH" ps --json | grep -o '"pid": [0-9]*')
"$LAUNCH" gpus >out; check "the same process as ps: $pid, $(cat out)" has "run $id .*pid ${pid##* }," out; "$LAUNCH" stop "$id"
finish
