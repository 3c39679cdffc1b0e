#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# What steers a terminal (here its title) is planted wherever a job, a file or a machine can put text, and comes out of no command.
. "$SRC/tests/e2e/lib.sh"
[ "$(id -u)" = 0 ] && chmod 755 .
gpus 2; mkdir -p machine/tmp machine/dev/shm; unset XDG_RUNTIME_DIR
export LAUNCH_LEASE_DIR=$PWD/locks; mkdir -m 1777 locks
evil=$'\033]0;x\007\302\233'
sed -i "s/Fake GPU/Fake ${evil}GPU/" machine/proc/driver/nvidia/gpus/*/information
all=0
# shown COMMAND...: nothing of it is in what that prints
shown() {
    timeout -k 5 60 "$@" >o 2>e </dev/null; rc=$?; all=$((all + 1))
    check "$* printed something" test -s o -o -s e
    check "$*: $(cat -v o e)" not grep -aqE $'[\001-\010\013-\037\177]|\302[\200-\237]' o e
}
quiet() { shown "$LAUNCH" "$@"; }
worker "job$evil" <<W
#!/bin/sh
printf 'out $evil\\n'; printf 'err $evil\\n' >&2
printf '{"message": {"message": "said $evil", "extraInfo": {"py_callstack": "stack $evil"}}}' | tr -d '\\000' >"\$TORCHELASTIC_ERROR_FILE"
[ "\$1" != stay ] || exec sleep $TAG
exit 3
W
quiet -n 2 --log-dir="logs$evil" -r 3 "./job$evil" "$evil"
check "it is a report: $(cat -v e)" has 'exited with code 3' e
check "with the last lines: $(cat -v e)" has '\| err \?\]0;x\?' e
LAUNCH_LOG=debug quiet -n 1 -r 3 --log-dir=l "./job$evil"
# mistakes
quiet "./no$evil"; quiet "--no$evil"; quiet --nproc-per-node="$evil" true; quiet --run-id="$evil" true; quiet --role="$evil" true
quiet --name="$evil" true; quiet --gpus="$evil" true; quiet --config="no$evil" ; quiet --log-dir="/proc/$evil" true
printf 'progr%s: x\n' '"\e]0;x"' >bad.yaml; sed -i 's/progr"\\e]0;x"/"progr\\e]0;x\\a"/' bad.yaml; quiet --config=bad.yaml
for c in status logs attach stop restart grow signal doctor; do quiet $c "x$evil"; done; quiet "stat$evil"; quiet help "$evil"; quiet ps "--$evil"
LAUNCH_TIMEOUT=$evil quiet true; CUDA_VISIBLE_DEVICES=$evil quiet --gpus=1 true; NCCL_DEBUG="$evil" NCCL_ALGO="$evil" quiet doctor
quiet doctor --log "logs$evil"; quiet doctor --log "no$evil"; quiet topo; quiet topo --format=json; quiet topo --format=dot; quiet topo --format=svg
# a job that runs
"$LAUNCH" --run-id=evil --gpus=1 -n 2 -r 3 --log-dir="logs$evil" "./job$evil" stay >/dev/null 2>&1 </dev/null & job=$!
seen() { "$LAUNCH" status evil 2>/dev/null | grep -aq "[0-9]s  err .]0;x"; }
until_true running 2
until_true seen || fail "its last line is seen: $("$LAUNCH" status evil)"
quiet ps; quiet ps --json; quiet status evil; check "$(cat -v o)" has '(out|err) \?\]0;x' o
quiet status evil --json; quiet gpus; check "the holder's program is shown: $(cat -v o)" has 'run evil \(./job\?' o
quiet gpus --json; quiet doctor evil; quiet doctor evil --json; quiet --gpus=2 true; quiet status e; quiet status "ev$evil"
"$LAUNCH" stop evil --now >/dev/null 2>&1; wait $job
# the lock files' pages are anybody's
for f in locks/launch-gpu-*; do head -c 8192 /dev/zero | tr '\000' '\033' >"$f"; done; quiet gpus
check "all commands were tried: $all" test $all -ge 40
finish
