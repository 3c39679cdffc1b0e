#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# Workers with liblaunch meet in shared memory: all of them, or the launcher says who did not come.
. "$SRC/tests/e2e/lib.sh"
job=$BUILD/tests/fake/join_job sums=$BUILD/examples/rank_sum
gpus 0
summed() { # N "what": out has each rank's line once and no other
    local i
    for ((i = 0; i < $1; i++)); do echo "rank $i of $1: sum = $(($1 * ($1 - 1) / 2))"; done | sort >want
    check "$2: every rank's line once" cmp -s want <(sort out)
    check "$2: nothing on stderr: $(cat err)" test ! -s err
}
for n in 1 2 8 64; do run --nproc-per-node=$n "$sums"; expect 0 "$n ranks"; summed $n "$n ranks"; done
run --nproc-per-node=8 "$sums.so"; expect 0 "a shared object"; summed 8 "a shared object"
"$sums" >out 2>err; rc=$?; expect 0 "a job that nobody launched"; summed 1 "a job that nobody launched"
run "$BUILD/liblaunch_none.so"; expect 127 "a shared object that is not there"
cp "$BUILD/liblaunch.so" plain.so; run --nproc-per-node=2 ./plain.so
expect 126 "a shared object without launch_main()"; check "says so: $(cat err)" has 'has no launch_main' err
printf 'text' >text.so; run ./text.so; check "a text is no shared object: exit $rc, $(cat err)" test $rc -ge 126

run --nproc-per-node=4 "$job"; expect 0 "all come"; check "all met" test "$(grep -c met out)" = 4
run --nproc-per-node=4 --rendezvous-timeout=1s "$job" 2=away
expect 124 "a rank that never joins"; check "is named: $(cat err)" has 'rank 2 never called launch_join\(\) within 1 s.*3 of 4 did' err
check "nobody met" test ! -s out
run --nproc-per-node=12 --rendezvous-timeout=300ms sh -c '[ $RANK = 0 ] || exec sleep '$TAG'; exec "$0"' "$job"
expect 124 "eleven never join"; check "eight are named: $(cat err)" has 'ranks 1, 2, 3, 4, 5, 6, 7, 8 and 3 more never' err
check "nothing is left" running 0
run --nproc-per-node=4 "$job" 3=exit
expect 125 "a rank that ends without joining"; check "is named: $(cat err)" has 'rank 3 of 4 failed first: it ended with 0 without calling launch_join' err
run --nproc-per-node=4 "$job" 1=kill
expect 137 "a rank killed before it joins"; check "is named" has 'rank 1 of 4 failed first: it was killed by SIGKILL' err
# The news of that death and of the first rank that joined may come to the agent at once.
worker late.sh <<W
#!/bin/bash
echo \$\$ >pid.\$RANK; w() { until [ -e \$1 ]; do read -r -t 0.02 <> <(:); done; }
[ \$RANK = 1 ] && { w die; kill -9 \$\$; }; w go; exec "$job"
W
state() { [ "$(sed 's/^[0-9]* (\(.*\)) \(.\).*/\1 \2/' /proc/"$(cat pid."$1")"/stat)" = "$2" ]; }
timeout 30 "$LAUNCH" --nproc-per-node=3 ./late.sh >out 2>err </dev/null & pid=$!
until_true test -s pid.0 -a -s pid.1 -a -s pid.2; agent=$(ps -o ppid= -p "$(cat pid.0)")
kill -STOP $agent; : >die; until_true state 1 'late.sh Z' || fail "rank 1 is dead"
: >go; for r in 0 2; do until_true state $r 'join_job S' || fail "rank $r waits"; done
kill -CONT $agent; wait $pid; rc=$?
expect 137 "a death and a join at once"; check "the death is told: $(cat err)" has 'rank 1 of 3 failed first: it was killed by SIGKILL' err
run --nproc-per-node=4 "$job" 0=abort
expect 134 "a crash after joining"; check "is named" has 'rank 0 of 4 failed first: it was killed by SIGABRT' err
for how in 'twice:this process has already joined' 'stranger:rank 1 has already been joined by process [0-9]+' \
    'flags:unknown flags 0x4' 'thread:not called from the main thread'; do
    run --nproc-per-node=3 "$job" "1=${how%%:*}"
    expect 0 "${how%%:*}: the job itself goes on"; check "all met" test "$(grep -c met out)" = 3
    check "${how%%:*}: $(cat err)" has "^second: -4 .*${how#*:}" err; check "one line" test "$(wc -l <err)" = 1
done
run --nproc-per-node=2 sh -c '[ $RANK = 1 ] && { "$0" 1=quit; exec "$0"; }; exec "$0" 0=stay' "$job"
expect 1 "two processes one after the other are no rank"; check "says so: $(cat err)" has 'rank 1 has already been joined' err
run --nproc-per-node=2 --max-restarts=1 sh -c '[ $RANK$TORCHELASTIC_RESTART_COUNT = 10 ] && kill -9 $$; exec "$0"' "$job"
expect 0 "the next attempt meets again"; check "both met" test "$(grep -c met out)" = 2

# The variables by hand: none of it crashes, hangs, or is believed.
: >file
for fd in '' x -1 ' 3' 3x 0 999 99999999999 7 8; do
    env LAUNCH_BOARD_FD="$fd" LAUNCH_BELL_FD=1 LAUNCH_SLOT=0 LAUNCH_GENERATION=1 timeout 20 "$sums" >out 2>err </dev/null 7<>file 8<"$sums"
    rc=$?; expect 1 "LAUNCH_BOARD_FD='$fd'"
    check "LAUNCH_BOARD_FD='$fd': one line that names it: $(cat err)" test "$(grep -c LAUNCH_BOARD_FD err)/$(wc -l <err)" = 1/1
    check "LAUNCH_BOARD_FD='$fd': no sum" test ! -s out
done
for wrong in 'LAUNCH_BELL_FD=' LAUNCH_BELL_FD=777 LAUNCH_BELL_FD=0 LAUNCH_SLOT= LAUNCH_SLOT=2 LAUNCH_SLOT=99999 -uLAUNCH_SLOT -uLAUNCH_BELL_FD; do
    run --nproc-per-node=2 env "$wrong" "$job"; expect 1 "$wrong"
    name=${wrong#-u}; check "$wrong: is named: $(cat err)" has "${name%%=*}" err
done

# What workers left behind and joins when they are gone is no worker.
worker left.sh <<W
#!/bin/bash
w() { until "\$@"; do read -r -t 0.02 <> <(:); done; }
(trap '' TERM; : >ready.\$RANK; w grep -q behind left.err; exec "$job") &
w test -e ready.\$RANK; exit 0
W
LAUNCH_LOG=debug timeout 30 "$LAUNCH" --nproc-per-node=2 ./left.sh >/dev/null 2>left.err </dev/null & pid=$!
until_true has 'rank 1: JOINED' left.err || fail "it never joined: $(tail -3 left.err)"
kill -TERM $pid; wait $pid; rc=$?; cp left.err err; expect 143 "it is ended with the job"
check "no event came unexpected: $(grep bug left.err)" not has 'bug' left.err
finish
