#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 300
# --on-failure=heal: a lost rank is replaced, the others keep their processes, every sum stays right, nothing is left.
. "$SRC/tests/e2e/lib.sh"
cp "$BUILD/tests/fake/heal_job" . && job=$PWD/heal_job # a name of our own, for pgrep
gpus 0; mkdir -p machine/dev/shm machine/tmp; unset XDG_RUNTIME_DIR
heals() { LIMIT=60 run --nproc-per-node=4 --max-restarts=5 --on-failure=heal "$@"; }
# finished N TOTAL GENERATION "what": N ranks came to the end, all with the same state; GENERATION: a pattern
finished() {
    expect 0 "$4"
    check "$4: $1 ranks with total $2 in generation $3: $(cat out)" test "$(grep -cE "of $1: .* total $2 generation $3 " out)" = "$1"
}
culprits() { sed -nE 's/^launch: warning: rank ([0-9]+) of .*replaced.*/\1/p' err | paste -sd' '; }
told() { check "$1 is told: $(cat err)" has "$2" err; }

heals "$job" 100 1=kill@50/1; finished 4 50500 2 "one is killed"
told "the loss" '^launch: warning: rank 1 of 4 was killed by SIGKILL.*; it is replaced \(restart 1 of 5\)$'
told "the new one" '^launch: healed after [0-9.]+ ms: rank 1 is pid [0-9]+; generation 2$'
check "two lines, no more" test "$(wc -l <err)" = 2
check "the state is a survivor's" not has 'root (-1|1)$' out
heals "$job" 100 2=exit3@50/1; finished 4 50500 2 "one fails"; told "its code" 'rank 2 of 4 exited with code 3 .*replaced'
heals "$job" 100 2=quit@50/1; finished 4 50500 2 "one ends with 0"
heals "$job" 100 1=kill@50/1 1=kill@0/2; finished 4 50500 3 "the new one dies at once"
heals "$job" 100 0=kill@50/1 3=kill@again/1; finished 4 50500 3 "another one dies during healing"
heals "$job" 100 0=kill@50/1 1=kill@again/1 2=kill@again/1; finished 4 50500 '[0-9]+' "those whose state would be taken die, too"
heals --heal-timeout=1 "$job" 100 0=kill@50/1 3=pause@again/1; finished 4 50500 '[3-9]' "one does not come back"
told "it" 'rank 3 of 4 did not meet the others again within 1 s \(--heal-timeout\).*replaced'
heals --hang-timeout=1 "$job" 100 2=stop@50/1; finished 4 50500 2 "one hangs"
told "who" 'rank 2 of 4 is stopped by a signal.*replaced'; told "where" '^launch:   rank 2: step 49'
heals --hang-timeout=1 "$job" 100 2=pause@50/1; finished 4 50500 2 "one does not come to a collective"
told "which" 'rank 2 of 4 hangs before collective 50, which others have entered.*replaced'; told "what it does" '^launch:   rank 2: step 49, 49 collectives finished, sleeps'
heals --hang-timeout=2 "$job" 100 2=pause@50/1 1=pause@50/2 3=pause@70/3; finished 4 50500 4 "one after the other hangs, the second right after a healing"
check "each is named, and no other: $(cat err)" test "$(culprits)" = "2 1 3"
heals "$job" 100 1=kill@20/1 2=kill@40/2 3=kill@60/3 0=kill@80/4; finished 4 50500 5 "one after the other"
heals "$job" 100 0=kill@50/1 1=kill@50/1 2=kill@50/1 3=kill@50/1; expect 0 "perhaps all at once"

heals --log-dir=logs --redirects=3 "$job" 100 1=kill@50/1; finished=$(cat logs/*/attempt_0/*/stdout.log | grep -c 'total 50500')
check "a new process goes on in the files of the old one" test "$finished" = 4
check "a line in the file tells so" has '^launch: pid [0-9]+ is gone; generation 2 begins here$' logs/*/attempt_0/1/stderr.log

# What can't be healed is started again as a whole, or ends.
heals --max-restarts=1 "$job" 100 2=kill@50/1 1=exit3@60/2; expect 3 "no restart is left"
told "why" 'rank 1 of 4 failed first: it exited with code 3'; told "the end" 'exit code 3; no restarts are left, after 0 restarts and 1 healing$'
check "nobody finished" test ! -s out
heals --log-dir=end "$job" 100 1=exit93@50/1; expect 93 "a rank that asks for the end"
check "the report is there" has '"exit_code": 93' end/*/failure.json
heals "$job" 100 deaf 1=kill@50/1; finished 4 50500 2 "a job without launch_meet()"
told "why it is not healed" "rank 1 was lost and the job can't be healed: not all ranks have called launch_meet"
told "the restart" 'starting all 4 ranks again'
heals sh -c '[ $RANK$TORCHELASTIC_RESTART_COUNT != 10 ] || kill -9 $$'; expect 0 "a program without liblaunch"
run --nproc-per-node=1 --max-restarts=1 --on-failure=heal "$job" 100 0=kill@50/1; finished 1 5050 2 "a single rank"
run --nproc-per-node=2 --max-restarts=3 --on-failure=stop "$job" 100 1=kill@50/1; expect 137 "--on-failure=stop"
for wrong in '--on-failure=heal' '--on-failure=heal --standby=exec' '--standby=exec --max-restarts=1' \
    '--on-failure=shrink --min-workers=3' '--on-failure=mend' '--standby=cold'; do
    run --nproc-per-node=2 $wrong "$job" 5; expect 2 "$wrong"
    check "$wrong: one line: $(cat err)" test "$(wc -l <err)" = 1; check "$wrong: nothing was started" test ! -s out
done

# Fewer ranks.
shrinks() { run --nproc-per-node=4 --on-failure=shrink "$@"; }
shrinks "$job" 100 1=kill@50/1 2=kill@60/2; expect 0 "shrinking twice"
check "two ranks end as 0 and 1 of 2: $(cat out)" test "$(grep -oE '^rank [01] of 2: step 100 ' out | sort -u | wc -l)" = 2
told "the first" 'rank 1 of 4 .*the job goes on with 3 ranks'
shrinks --min-workers=3 "$job" 100 1=kill@50/1 2=kill@60/2; expect 137 "never below --min-workers"
told "the reason" 'with fewer than 3 workers the job does not go on \(--min-workers\)'
shrinks --max-restarts=1 "$job" 100 1=kill@50/1 2=kill@60/2; expect 0 "first healing, then shrinking"
told "healing" 'rank 1 of 4 .*it is replaced'; told "shrinking" 'rank 2 of 4 .*the job goes on with 3 ranks'

# Standbys.
heals --standby=exec "$job" 3000 1=kill@1500/1; finished 4 45015000 2 "a standby takes the place"
told "it" 'healed after [0-9.]+ ms: rank 1 is pid [0-9]+ \(a standby\)'
heals --standby=exec --standby-count=3 "$job" 3000; finished 4 45015000 1 "standbys that nobody needs"
check "they are not worth a word: $(cat err)" test ! -s err
LAUNCH_LOG=debug heals --standby=exec "$job" 3000; check "and end with the job" not has '[-]> PURGE' err

start() { # launcher-arguments...: in the background, until every rank has a pid file
    rm -f pid.*
    "$LAUNCH" --nproc-per-node=4 --max-restarts=5 --on-failure=heal "$@" >out 2>err </dev/null & pid=$!
    until_true test -s pid.0 -a -s pid.1 -a -s pid.2 -a -s pid.3 || fail "all ranks run: $(cat err)"
}
children() { pgrep -P "$(pgrep -P $pid)" | wc -l; }
number() { [ "$(children)" = "$1" ]; }
healed() { [ "$(grep -c 'healed after' err)" -ge "$1" ]; }
is_new() { [ -n "$(cat "pid.$1")" ] && [ "$(cat "pid.$1")" != "$2" ]; }
start --standby=exec --standby-count=2 "$job" 0
until_true number 6 || fail "four ranks and two standbys: $(children)"
old1=$(cat pid.1) old2=$(cat pid.2) old0=$(cat pid.0); kill -9 $old1 $old2
until_true is_new 1 $old1 && until_true is_new 2 $old2 || fail "two at once are replaced: $(cat err)"
check "a survivor keeps its process" test "$(cat pid.0)" = $old0
until_true number 6 || fail "the standbys are there again: $(children)"
kill -TERM $pid; wait $pid; rc=$?; expect 143 "the end is asked for"; check "nothing is left" not pgrep -fx "$job 0"
start --standby=exec "$job" 0 deaf
check "no standby for a job that can't heal" number 4; kill -TERM $pid; wait $pid

start --shutdown-timeout=5 "$job" 0 1=pause@again/1; kill -9 "$(cat pid.3)"
until_true has 'rank 3 of 4 was killed' err || fail "the loss is told"
kill -HUP $pid; wait $pid; rc=$?; expect 129 "a request to end during healing"; check "nothing is left" not pgrep -fx "$job 0 .*"

# Who catches the stop has its time also when it has not come back to the others yet.
start --shutdown-timeout=20 "$job" 0 catch 0=hold@again/1; old=$(cat pid.1); kill -9 "$(cat pid.3)"
until_true has 'rank 3 of 4 was killed' err || fail "the loss is told: $(cat err)"
kill -TERM $pid; until_true not test -e /proc/$old || fail "another rank ends"
: >go; wait $pid; rc=$?; expect 143 "a request to end during healing is caught"
check "the one that was busy hears of it, too: $(cat err)" has '^rank 0: -2 ' err

# Rank 0 has done its work and left when rank 1 is lost, ranks 2 and 3 have not: whether rank 0 has ended already is no matter.
has_left() { "$LAUNCH" status end --json >said 2>&1; has '"rank": 0, "pid": '"$1"', .*"stage": "LEFT"' said; }
at_the_end() { rm -f over; start --run-id=end "$@" "$job" 100 0=${how:-leave}@done/1 1=wait@done/1 2=wait@done/1 3=wait@done/1; }
ends() { wait $pid; rc=$?; finished 4 50500 "$1" "$2"; check "$2: the job was not started again: $(cat err)" not has 'starting all|healed: ' err; }
at_the_end; until_true has_left '[1-9][0-9]*' || fail "rank 0 leaves: $(cat said)"
kill -9 "$(cat pid.1)"; until_true has 'rank 1 of 4 was killed.*it is replaced' err || fail "rank 1 is lost while rank 0 ends: $(cat err)"
: >over; ends 2 "a rank was about to end"
at_the_end; : >over; until_true has_left 0 || fail "rank 0 ends: $(cat said)"
kill -9 "$(cat pid.1)"; ends 2 "a rank had ended"
at_the_end --heal-timeout=2; until_true has_left '[1-9][0-9]*' || fail "rank 0 leaves: $(cat said)"
kill -9 "$(cat pid.1)"; ends '[3-9]' "a rank that does not end"; told "its end" 'rank 0 had done its work and has not ended within 2 s .*; it is killed'
how=leave3 at_the_end; until_true has_left '[1-9][0-9]*' || fail "rank 0 leaves: $(cat said)"
kill -9 "$(cat pid.1)"; until_true has 'rank 1 of 4 was killed.*it is replaced' err || fail "rank 1 is lost while rank 0 ends: $(cat err)"
: >over; ends 3 "a rank that fails at its very end"; told "that" 'rank 0 of 4 exited with code 3 .*it is replaced \(restart 2'
# It leaves when it hears of the loss, before it is called back: no second loss, nor one when it takes long to end.
: >over; heals --max-restarts=1 "$job" 100 1=kill@50/1 0=leave@again/1; finished 4 50500 2 "a rank leaves while another is replaced"
rm over; heals --heal-timeout=2 "$job" 100 1=kill@50/1 0=leave@again/1; finished 4 50500 '[3-9]' "one that has left so and does not end"
told "its end" 'rank 0 had done its work and has not ended within 2 s .*; it is killed'

# What a dead rank leaves behind goes, what the others started stays.
worker tree.sh <<W
#!/bin/sh
setsid sleep $TAG &
exec "$job" 0
W
start ./tree.sh; until_true running 4; kill -9 "$(cat pid.2)"; until_true healed 1 || fail "it is healed"
until_true running 4 || fail "four daemons, one of them new: $(tagged)"
kill -TERM $pid; wait $pid; check "and none at the end" running 0
finish
