#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 300
# --hang-timeout: silence ends the job with 123; the rank furthest behind is named; who gives signs is left alone.
. "$SRC/tests/e2e/lib.sh"
LIMIT=60

# One rank leaves early, the other waits for ever: the one that stays is named, the other mentioned.
worker stuck.sh <<W
#!/bin/sh
[ \$RANK = 1 ] && exit 0; exec sleep $TAG
W
run --nproc-per-node=2 --hang-timeout=1 ./stuck.sh; expect 123 "one left early, one waits"
check "rank 0 is named" has 'rank 0 of 2 failed first: it hangs' err
check "the early leaver is mentioned" has 'rank 1 ended early with 0' err
check "what it does is told" has 'rank 0: sleeps in (clock_)?nanosleep' err
check "nothing is left" running 0
run --nproc-per-node=1 --hang-timeout=500ms sleep $TAG; expect 123 "a single silent worker"
run --nproc-per-node=2 --hang-timeout=500ms --exit-code=torchrun sleep $TAG; expect 1 "torchrun's exit code"

# Output as a sign: as long as any is written; also of a single worker, whose stdin stays its own.
worker uneven.sh <<'W'
#!/bin/bash
[ $RANK = 1 ] && exit 0; for i in 1 2 3 4 5 6; do echo step $i; read -r -t 0.4 <> <(:); done; exit 0
W
for n in 1 2 4; do run --nproc-per-node=$n --hang-timeout=1200ms ./uneven.sh; expect 0 "$n ranks that write"; done
check "the output came through" test "$(grep -c step out)" = 18
echo hello | "$LAUNCH" --hang-timeout=60 cat >out; check "a single worker reads our stdin" has hello out

# WATCHDOG=1, from any language: silent but alive; then no longer, in spite of output.
worker dog.py <<'W'
#!/usr/bin/env python3
import os, socket, sys, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
name = os.environ["NOTIFY_SOCKET"]
at = "\0" + name[1:] if name[0] == "@" else name
period = int(os.environ["WATCHDOG_USEC"]) / 1e6
assert "WATCHDOG_PID" not in os.environ
if os.environ["RANK"] == "0":
    for i in range(6):
        s.sendto(b"READY=1\nSTATUS=epoch %d\nWATCHDOG=1" % i, at); time.sleep(period / 2)
    while len(sys.argv) > 1:
        print("still writing", flush=True); time.sleep(period / 8)
W
WATCHDOG_PID=1 NOTIFY_SOCKET=/nowhere run --nproc-per-node=2 --hang-timeout=1 ./dog.py; expect 0 "heartbeats keep a silent job alive"
run --nproc-per-node=2 --hang-timeout=1 ./dog.py x; expect 123 "no heartbeat any more"
check "that rank is named" has 'rank 0 of 2 failed first: it hangs: no step and no heartbeat' err
check "its last words are shown" has 'STATUS: epoch 5' err
NOTIFY_SOCKET=/outer run sh -c 'echo $NOTIFY_SOCKET; exit 0'; check "off: nothing of this is changed" has '^/outer$' out

# A hang is a failure like others: the group comes again.
worker again.sh <<W
#!/bin/sh
[ \$TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0; exec sleep $TAG
W
run --nproc-per-node=2 --hang-timeout=500ms --max-restarts=1 ./again.sh; expect 0 "hangs once, then runs"
check "the restart is told" has 'restart 1 of 1' err

# What a rank wrote in an attempt before is no sign of life of this one: it may be silent while another writes.
worker boom.sh <<'W'
#!/bin/bash
if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then [ $RANK = 1 ] && { echo boom >&2; exit 1; }; exec sleep 60; fi
for i in 1 2 3 4 5 6 7 8; do [ $RANK = 0 ] && echo step $i; read -r -t 0.4 <> <(:); done; exit 0
W
run --nproc-per-node=2 --hang-timeout=1200ms --max-restarts=1 ./boom.sh
expect 0 "a rank whose failure was its only output is silent in the next attempt"
# Counters that nobody uses are no reason.
worker half.sh <<W
#!/bin/bash
[ \$RANK = 1 ] && { echo begin; exec sleep $TAG; }; while echo step; do read -r -t 0.2 <> <(:); done
W
run --nproc-per-node=2 --hang-timeout=1200ms ./half.sh; expect 123 "one writes, the other no longer"
check "it is not told of steps: $(cat err)" has 'rank 1 of 2 failed first: it hangs: no sign of life' err

# A program with a helper process is looked at itself; a shell's program instead of the shell.
worker helper.py <<W
#!/usr/bin/env python3
import subprocess, time
child = subprocess.Popen(["sleep", "$TAG"])
time.sleep(60)
W
run --hang-timeout=1 ./helper.py; expect 123 "it hangs beside its helper"
check "its own place is told: $(cat err)" has 'main thread: .*(time_sleep|\[python)|no stack' err
run --hang-timeout=1 sh -c "sleep $TAG; exit 0"; expect 123 "a shell's program hangs"
check "the program's place is told: $(cat err)" has 'main thread: .*\[sleep\]|no stack' err

stacks() { python3 -c 'import ctypes; ctypes.CDLL("libdw.so.1")' 2>/dev/null; }

# Ranks that are only slow, and end while evidence is taken: they did not hang, and the helper is nobody's leftover. Rank 0
# notices it by being traced for its stack, which ends its epoll_wait; the others end when the launcher has seen its end.
worker late.py <<'W'
#!/usr/bin/env python3
import ctypes, os, select, sys, time
if os.environ["RANK"] == "0": # the suspect, which is looked at first
    open("pid.new", "w").write(str(os.getpid())); os.rename("pid.new", "pid")
    ctypes.CDLL(None).epoll_wait(select.epoll().fileno(), ctypes.create_string_buffer(16), 1, -1)
    os._exit(0)
while not os.path.exists("pid"): time.sleep(0.01)
there = "/proc/" + open("pid").read()
while os.path.exists(there): time.sleep(0.002)
time.sleep(0.4 if sys.argv[1] == "others" else 0)
os._exit(0)
W
stacks && for who in others none; do
    rm -f pid; run --nproc-per-node=8 --hang-timeout=1500ms ./late.py $who; expect 0 "late, while evidence is taken ($who)"
    check "nothing is told ($who): $(cat err)" test ! -s err
done

# Liblaunch: rank 2 spins, the others wait in a barrier for it.
cat >spin.c <<'C'
#include "launch.h"
__attribute__((noinline)) static void spin(void) { for (volatile int x = 1; x;) ; }
int launch_main(struct launch *l, int argc, char **argv)
{
    (void)argc, (void)argv;
    for (uint64_t step = 1; launch_step(l, step) == 0; step++) {
        if (step == 5 && launch_rank(l) == 2)
            spin();
        if (launch_barrier(l) != 0)
            break;
    }
    return 0;
}
C
if cc -g -O1 -I"$SRC/worker" spin.c "$BUILD/liblaunch.a" -pthread -o spin 2>cc.err; then
    run --nproc-per-node=4 --hang-timeout=1 ./spin; expect 123 "a rank that spins"
    check "the one that spins is named" has 'rank 2 of 4 failed first: it hangs before collective 5' err
    check "its state is told" has '^launch:   rank 2: step 5, 4 collectives finished, runs on a CPU' err
    check "the others share a line" has '^launch:   ranks 0, 1, 3: step 5, in collective 5, sleeps in futex' err
    if stacks; then
        check "its stack is told" has 'main thread: spin < launch_main' err
        check "the others' stack is told" has 'main thread: .*launch_barrier < launch_main' err
    else
        check "why there is no stack is told" has 'no stack: libdw.so.1' err
    fi
    check "the report is short: $(wc -l <err)" test "$(wc -l <err)" -le 25
elif ! grep -q '__asan\|__ubsan\|__tsan' cc.err; then # a sanitizer's library, which this job lacks
    fail "spin.c does not compile: $(cat cc.err)"
fi

# Somebody stops a worker: told at once, and named when the time is over.
start() { "$LAUNCH" "$@" >out 2>err </dev/null & pid=$!; }
start --nproc-per-node=2 sleep $TAG; until_true running 2; w=$(pgrep -fx "sleep $TAG" | tail -1)
kill -STOP "$w"; until_true has "warning: rank [01] \(pid $w\) was stopped by SIGSTOP" err || fail "a stop is told"
kill -CONT "$w"; until_true has "rank [01] \(pid $w\) goes on" err || fail "its end is told"
kill -TERM $pid; wait $pid
start --nproc-per-node=3 --hang-timeout=1 sleep $TAG; until_true running 3; w=$(pgrep -fx "sleep $TAG" | sed -n 2p)
kill -STOP "$w"; wait $pid; rc=$?; expect 123 "a stopped worker"
check "it is named as stopped" has "failed first: it is stopped by a signal .*pid $w" err
check "nothing is left" running 0

# Ctrl-Z: stopping the whole job is no hang.
stopped() { [ "$(ps -o stat= -p "$1" | cut -c1)" = T ]; }
worker slow.sh <<'W'
#!/bin/bash
echo up; echo up >up.$RANK; until [ -e go ]; do read -r -t 0.05 <> <(:); echo .; done; exit 0
W
start --nproc-per-node=2 --hang-timeout=1 ./slow.sh; until_true test -s up.0 -a -s up.1
kill -TSTP $pid; until_true stopped $pid || fail "TSTP stops the launcher"
read -r -t 1.5 <> <(:) # longer than the timeout
kill -CONT $pid; touch go; wait $pid; rc=$?; expect 0 "time in which the job was stopped does not count"
check "no word of it" not has stopped err

# A reader that takes nothing is no hang of those who write to it.
mkfifo pipe; exec 9<>pipe
"$LAUNCH" --nproc-per-node=2 --hang-timeout=500ms sh -c 'head -c 1000000 /dev/zero | tr "\0" "x" | fold -w 99' >pipe 2>err & pid=$!
read -r -t 2 <> <(:)
check "still there" kill -0 $pid; { cat <&9 >/dev/null & } 2>/dev/null; reader=$!
wait $pid; rc=$?; expect 0 "goes on when it is read again"; kill $reader; exec 9>&-

run --nproc-per-node=1 --hang-timeout=-1 true; expect 2 "a negative time"
run --nproc-per-node=1 --hang-timeout=soon true; expect 2 "no time"; check "one line" test "$(wc -l <err)" = 1
finish
