#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# Workers that joined hold a robust lock: a death is known before the memory is torn down, and nothing but a death is
# taken for one.
. "$SRC/tests/e2e/lib.sh"
sanitized && skip "needs the plain build"
command -v python3 >/dev/null || skip "no python3"
cat >job.py <<P
import ctypes, os, signal, sys, threading, time
how = sys.argv[1] if os.environ["RANK"] == "1" else "wait"
lib = ctypes.CDLL("$BUILD/liblaunch.so", mode=ctypes.RTLD_GLOBAL)
libc = ctypes.CDLL(None)
l = ctypes.c_void_p()
assert lib.launch_join(ctypes.byref(l), 0) == 0
ballast = bytearray(os.urandom(1 << 20)) * (400 if how in ("die", "exit3") else 1)
open("pid." + os.environ["RANK"], "w").write(str(os.getpid()))
def late(code):
    while not os.path.exists("go"): time.sleep(.01)
    os._exit(code)
if how == "die": os.kill(os.getpid(), signal.SIGKILL)
if how == "exit3": os._exit(3)
if how == "exit0": os._exit(0)
if how == "exec": os.execvp("sh", ["sh", "-c", "until [ -e go ]; do :; done; exit 6"])
if how == "headless":
    threading.Thread(target=late, args=(5,)).start()
    libc.syscall(60, 0)  # exit of this thread alone
if how == "leave":
    lib.launch_leave(l)
    os._exit(7)
if sys.argv[1] in ("exit0", "count"): late(0)
time.sleep(300)
P
job() { rm -f go pid.*; export LAUNCH_LOG=debug; run --nproc-per-node=3 --shutdown-timeout=10 python3 job.py "$@"; unset LAUNCH_LOG; }
line() { grep -nE -- "$1" err | head -1 | cut -d: -f1; }
before() { [ -n "$(line "$1")" ] && [ -n "$(line "$2")" ] && [ "$(line "$1")" -lt "$(line "$2")" ]; }

job die; expect 137 "a rank that kills itself"
check "the lock told first" before 'rank 1: pid [0-9]+ is ending \(signal 9' 'rank 1: pid [0-9]+ ended'
check "the group was stopped before the pidfd told" before '-> STOP' 'rank 1: pid [0-9]+ ended'
check "rank 1 is the culprit" has 'rank 1 of 3 failed first: it was killed by SIGKILL' err
job exit3; expect 3 "a rank that exits without leaving"
check "its code is known early" has 'rank 1: pid [0-9]+ is ending \(code 3' err
job leave; expect 7 "a rank that leaves"
check "no death was told" not has 'is ending' err

job exit0; expect 125 "an exit with 0 without leaving: the others would wait for it for ever"
check "that is said" has 'rank 1 of 3 failed first: it ended with 0 after launch_join\(\) and without launch_leave\(\)' err
check "and known by the pidfd" not has 'rank 1: pid [0-9]+ is ending' err

rm -f go pid.*
"$LAUNCH" --nproc-per-node=3 python3 job.py exec >out 2>err </dev/null & pid=$!
until_true test -s pid.0 -a -s pid.1
until_true grep -qx sh "/proc/$(cat pid.1)/comm"; pause
check "a rank that becomes another program is alive, and so are the others" kill -0 "$(cat pid.0)"; touch go
wait $pid; rc=$?; expect 6 "a rank that becomes another program"

rm -f go pid.*
"$LAUNCH" --nproc-per-node=3 python3 job.py headless >out 2>err </dev/null & pid=$!
until_true has 'rank 1: its main thread has ended' err || fail "a lost main thread is told"
check "the rank is alive" kill -0 "$(cat pid.1)"; touch go
wait $pid; rc=$?; expect 5 "the last thread's own exit code"
check "told once" test "$(grep -c 'its main thread' err)" = 1

threads() { ls /proc/"$(pgrep -P "$1" | head -1)"/task | wc -l; }
rm -f go pid.*
"$LAUNCH" --nproc-per-node=3 python3 job.py count >out 2>err </dev/null & pid=$!
until_true test -s pid.0 -a -s pid.1 -a -s pid.2
check "one helper thread for all" test "$(threads $pid)" = 2; touch go; wait $pid
"$LAUNCH" --nproc-per-node=3 sleep $TAG >out 2>err </dev/null & pid=$!
until_true running 3
check "no thread without liblaunch" test "$(threads $pid)" = 1; kill $pid; wait $pid
finish
