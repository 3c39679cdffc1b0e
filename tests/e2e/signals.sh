#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 180
# Signals from outside: graceful end, second one means now, nohup, stop and continue, pass-through.
. "$SRC/tests/e2e/lib.sh"
start() { env --default-signal=INT,HUP,QUIT "$LAUNCH" "$@" >out 2>err </dev/null & pid=$!; }
stop() { kill -"$1" $pid; wait $pid; rc=$?; }
worker save.sh <<'W'
#!/bin/bash
trap 'echo saved >saved.$RANK; exit 0' TERM INT; echo up >up.$RANK; while :; do read -r -t 0.05 <> <(:); done
W
worker deaf.sh <<W
#!/bin/sh
trap '' TERM INT HUP QUIT; exec sleep $TAG
W
for sig in TERM:143 INT:130 QUIT:131 HUP:129; do
    start --nproc-per-node=2 sleep $TAG; until_true running 2 || fail "start"
    stop ${sig%:*}; expect ${sig#*:} "${sig%:*} ends the job"
    check "${sig%:*}: no worker is left" running 0
done
start --nproc-per-node=2 --shutdown-timeout=20 ./save.sh; until_true test -s up.0 -a -s up.1
stop TERM; expect 143 "workers may save"; check "both saved" test -s saved.0 -a -s saved.1
start --nproc-per-node=2 --shutdown-timeout=1 ./deaf.sh; until_true running 2
stop TERM; expect 143 "deaf workers are killed at the end of the grace"; check "none left" running 0
start --nproc-per-node=2 --shutdown-timeout=600 ./deaf.sh; until_true running 2
kill -INT $pid; until_true grep -q SigCgt /proc/$pid/status
until_true grep -q 'ranks 0, 1 have been asked to end .* or when asked again' err || fail "who waits is told what for: $(cat err)"
until ! running 2; do kill -INT $pid 2>/dev/null || break; pause; done
wait $pid; rc=$?; expect 130 "a second SIGINT means now"; check "none left" running 0
start --nproc-per-node=2 --shutdown-timeout=600 ./deaf.sh; until_true running 2
agent=$(pgrep -P $pid); kill -INT $pid $agent; pause; check "one Ctrl-C that comes twice is one" running 2
kill -KILL $agent; wait $pid

nohup "$LAUNCH" --nproc-per-node=2 sleep $TAG >out 2>&1 </dev/null & pid=$!; until_true running 2
kill -HUP $pid; kill -USR2 $pid; until_true running 0 || fail "USR2 reaches the workers"
wait $pid; rc=$?; expect 140 "under nohup SIGHUP changes nothing, SIGUSR2 was the workers' end"

worker usr1.sh <<'W'
#!/bin/bash
trap 'echo got >usr1.$RANK' USR1; echo up >ready.$RANK
until [ -s usr1.$RANK ]; do read -r -t 0.05 <> <(:); done; exit 0
W
start --nproc-per-node=2 ./usr1.sh; until_true test -s ready.0 -a -s ready.1
stop USR1; # wait returns when the job has ended by itself
expect 0 "SIGUSR1 is passed on and the job goes on"

stopped() { [ "$(ps -o stat= -p "$1" | cut -c1)" = T ]; }
start --nproc-per-node=2 sleep $TAG; until_true running 2
w0=$(pgrep -fx "sleep $TAG" | head -1)
kill -TSTP $pid; until_true stopped $w0 || fail "TSTP stops the workers"
until_true stopped $pid || fail "TSTP stops the launcher"
kill -CONT $pid; until_true not stopped $w0 || fail "CONT resumes the workers"
stop TERM; expect 143 "and they can still be ended"
start --nproc-per-node=2 sleep $TAG; until_true running 2; pkill -STOP -fx "sleep $TAG"
stop TERM; expect 143 "stopped workers are ended too"; check "none left" running 0
finish
