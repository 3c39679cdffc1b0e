#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# launch logs and attach, and jobs in the background.
. "$SRC/tests/e2e/lib.sh"
gpus 0; mkdir -p machine/dev/shm machine/tmp tmp; unset XDG_RUNTIME_DIR; export TMPDIR=$PWD/tmp
ask() { timeout -k 5 30 "$LAUNCH" "$@" >said 2>told </dev/null; rc=$?; }
there_are() { [ "$("$LAUNCH" ps --json | grep -c run_id)" = "$1" ]; }
worker w.sh <<'W'
#!/bin/bash
echo "out of $RANK in $TORCHELASTIC_RESTART_COUNT"; echo "err of $RANK" >&2
until [ -e "go$RANK" ]; do read -r -t 0.05 <> <(:); done
echo "went $RANK"; exit ${CODE:-0}
W

# log files: all of them, one rank's, and as they grow, over a restart
"$LAUNCH" -n 2 --run-id=files --log-dir=runs --tee=3 ./w.sh >out 2>err </dev/null & pid=$!
until_true eval '"$LAUNCH" logs files | grep -q "err of 1"' || fail "log files are shown"
ask logs files; expect 0 "logs"
check "under titles: $(cat said)" test "$(grep -c '^==> rank [01], std[a-z]* <==$' said)" = 4
ask logs files --rank 1; check "one rank" not has 'of 0' said
ask logs files --rank 5; expect 2 "no such rank"; check "is told" has 'there is no rank 5' told
"$LAUNCH" logs files -f >followed 2>&1 </dev/null & follower=$!
until_true has 'out of 1 in 0' followed || fail "-f begins with what is there"
ask restart files; expect 0 "restart"
until_true has 'out of 1 in 1' followed || fail "-f goes on with the next attempt"
touch go0 go1
until_true has 'went 1' followed || fail "-f shows what comes"
wait $pid; rc=$?; expect 0 "the job"; wait $follower; rc=$?; expect 0 "-f ends with the job"

# none: the last lines that are kept; a single worker's go past us
rm -f go*
"$LAUNCH" -n 2 --run-id=none ./w.sh >out 2>err </dev/null & pid=$!
until_true eval '"$LAUNCH" logs none 2>/dev/null | grep -q "err of 1"' || fail "kept lines are shown"
ask logs none; expect 0 "without files"
check "and it is said that there are no files" has 'no log files .*these are the last lines' told
check "both streams" has 'out of 0 in 0' said
ask logs none -f; expect 2 "nothing to follow"; check "is told" has 'no log files to follow' told
ask attach none; expect 2 "nothing to attach to"; check "is told: $(cat told)" has 'writes where it was started' told
touch go0 go1; wait $pid
rm -f go*
"$LAUNCH" --run-id=single ./w.sh >out 2>err </dev/null & pid=$!
until_true there_are 1
ask logs single; expect 2 "a single worker"; check "is told" has "writes to launch.s own stdout" told
ask status single; check "status says so, too" has 'no last line is known' said
touch go0; wait $pid
rm -f go*

# in the background
export CODE=7
setsid -w "$LAUNCH" -n 2 --detach --run-id=back --log-dir=runs ./w.sh >id 2>told </dev/null; rc=$?
expect 0 "--detach"; check "prints the run id" test "$(cat id)" = back
check "is listed at once" there_are 1
agent=$("$LAUNCH" ps --json | grep -o '"pid": [0-9]*' | cut -d' ' -f2)
check "in a session of its own" test "$(ps -o sid= -p "$agent" | tr -d ' ')" = "$agent"
check "with no terminal or pipe of ours: $(readlink /proc/$agent/fd/[012])" test "$(readlink /proc/$agent/fd/[012] | grep -vc '/dev/null\|console.log')" = 0
env --default-signal=INT "$LAUNCH" attach back >attached 2>&1 </dev/null & follower=$!
until_true has 'out of 1' attached || fail "attach shows what was written: $(cat attached)"
kill -INT $follower; wait $follower 2>/dev/null
check "who stops following does not stop the job" there_are 1
env --default-signal=INT "$LAUNCH" attach back >attached 2>&1 </dev/null & follower=$!
until_true has 'out of 1' attached || fail "attach shows it again: $(cat attached)" # else the job may end before it is asked
touch go0; until_true has 'went 0' attached || fail "attach shows what comes"
wait $follower; rc=$?; expect 7 "attach ends as the job does"
check "the report, too" has 'failed first' attached
until_true there_are 0
check "nothing is left" test -z "$(find machine/dev/shm machine/tmp -mindepth 1)"
ask -n 2 --detach ./missing; expect 127 "what is wrong is told before"; check "in one line" test "$(wc -l <told)" = 1
ask -n 1 --detach --master-addr=203.0.113.1 sleep $TAG
[ $rc = 0 ] && { expect 0 "a job that can't start leaves its reason"; }
ask -n 1 --detach sleep $TAG; expect 0 "without --log-dir"
check "the place of its output is told" has 'log files are in .*/tmp/launch_' told
ask stop "$(cat said)"; expect 0 "is stopped"
ask -n 1 --detach --log-dir=/dev/null --run-id=mute sleep $TAG; expect 0 "without any output"
ask attach mute; expect 2 "can't be attached to"
ask stop mute --now; expect 0 "and is stopped"
finish
