#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 180
# kill -9 of any one process of ours, at any moment: nothing of the job is left, grandchildren included.
. "$SRC/tests/e2e/lib.sh"
worker tree.sh <<W
#!/bin/bash
sleep $TAG & setsid sleep $TAG & (setsid sh -c "sleep $TAG & sleep $TAG") & exec sleep $TAG
W
mkdir tmp runtime; export TMPDIR=$PWD/tmp XDG_RUNTIME_DIR=$PWD/runtime
alive() { [ -e /proc/"$1" ] && not grep -q "^State:.Z" /proc/"$1"/status 2>/dev/null; }
for victim in guard agent worker grandchild; do
    for round in 1 2 3; do
        "$LAUNCH" --nproc-per-node=3 --shutdown-timeout=5 ./tree.sh >out 2>err </dev/null & pid=$!
        until_true running 15 || fail "$victim: the trees come up ($(tagged))"
        agent=$(pgrep -P $pid)
        case $victim in
        guard) kill -9 $pid ;;
        agent) kill -9 $agent ;;
        worker) kill -9 "$(pgrep -P "$agent" -x sleep | head -1)" ;;
        grandchild) kill -9 "$(pgrep -fx "sleep $TAG" | tail -1)"; kill -TERM $pid ;;
        esac
        wait $pid 2>/dev/null; rc=$?
        until_true running 0 || fail "$victim: $(tagged) processes are left"
        until_true not alive "$agent" || fail "$victim: the agent is left"
        case $victim in
        guard|agent|worker) expect 137 "$victim killed" ;;
        *) expect 143 "$victim killed" ;;
        esac
    done
done
# at random moments of the first milliseconds, where processes are half made
for i in $(seq 60); do
    "$LAUNCH" --nproc-per-node=4 sleep $TAG >out 2>err </dev/null & pid=$!
    for ((k = RANDOM % 400; k > 0; k--)); do :; done
    if ((i % 2)); then kill -9 $pid; else agent=$(pgrep -P $pid | head -1); kill -9 ${agent:-$pid}; fi
    wait $pid 2>/dev/null
done
until_true running 0 || fail "random kills: $(tagged) processes are left"
# Whoever was spared puts its files away when the workers are gone.
left() { ls -A tmp runtime | grep -v :; ls -A /dev/shm | grep -i launch | grep -vx "launch-[0-9]*"; }
tidy() { local found; found=$(left); [ -z "${found//[[:space:]]/}" ]; }
until_true tidy || fail "a file is left: $(left)"
# A rank that dies while NCCL connects leaves a file there, which its peer would have removed.
leases() { python3 -c 'import fcntl, os, sys; fcntl.fcntl(os.open(sys.argv[1], os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_WRLCK)' "$1" 2>/dev/null; }
held=$(mktemp /dev/shm/nccl-XXXXXX)
if leases "$held"; then
    exec 9<>"$held"
    run --nproc-per-node=2 --no-python bash -c 'chmod 600 '"$held"'; mktemp /dev/shm/nccl-XXXXXX; kill -9 $$'; expect 137 "both die"
    check "they told of a file: $(cat out err)" test -s out
    check "NCCL's files of the dead go: $(cat out)" not ls $(cat out) 2>/dev/null
    check "what somebody has open stays" test -e "$held"
    exec 9<&-
fi
rm -f "$held"
finish
