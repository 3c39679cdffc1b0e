#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# launch ps, status, stop, restart, signal: running jobs are found by their names, asked, and steered.
. "$SRC/tests/e2e/lib.sh"
gpus 2; mkdir -p machine/dev/shm machine/tmp; unset XDG_RUNTIME_DIR
sockets() { find machine/dev/shm machine/tmp -type s | wc -l; }
there_are() { [ "$("$LAUNCH" ps --json | grep -c run_id)" = "$1" ]; }
# ask words...: output in ./said and ./told, exit code in $rc
ask() { timeout -k 5 30 "$LAUNCH" "$@" >said 2>told </dev/null; rc=$?; }
gone() { [ ! -e /proc/"$1" ] || has "^State:.Z" /proc/"$1"/status 2>/dev/null; } # a zombie may wait for whoever runs the tests
worker w.sh <<W
#!/bin/bash
trap 'echo usr1 >>usr1' USR1
echo "attempt \$TORCHELASTIC_RESTART_COUNT of \$RANK"
printf '\033]0;evil\007last \033[31mline\n' >&2
sleep $TAG & while ! wait; do :; done
W

# two jobs at once
"$LAUNCH" -n 2 --run-id=night --name=train ./w.sh >a.out 2>a.err </dev/null & a=$!
"$LAUNCH" -n 1 --run-id=nightly ./w.sh >b.out 2>b.err </dev/null & b=$!
until_true there_are 2 || fail "both jobs are listed"
until_true running 3 || fail "all workers run"
ask ps; expect 0 "ps"
check "the first: $(cat said)" has '^night +train +[a-z0-9]+ +RUN +2 +0,1 +0 +0 +[0-9]+s +./w.sh$' said
check "the second" has '^nightly +- .* 1 ' said
check "nothing is complained of" test ! -s told
ask ps --json; expect 0 "ps --json"
check "it is JSON" python3 -c 'import json,sys; j = json.load(open("said")); assert sorted(x["run_id"] for x in j) == ["night", "nightly"], j'

# names
ask status night; expect 0 "a whole name goes before a beginning"
check "it is the first job" has '^night \(train\): RUN for' said
ask status nightl; expect 0 "a beginning"; check "of the second" has '^nightly: RUN' said
ask status tr; expect 0 "a beginning of --name"; check "of the first" has '^night ' said
ask status nigh; expect 2 "two match"
check "both are named: $(cat told)" has '^launch: nigh may be any of (night \(train\), nightly|nightly, night \(train\)): write more of it$' told
ask status nite; expect 2 "none matches"
check "the nearest are named: $(cat told)" has 'no job nite is running; did you mean: .*night \(train\)' told
ask status ''; expect 2 "an empty name"; check "is none: $(cat told)" has 'which job' told
ask stop; expect 2 "no job given"; check "usage: $(cat told)" has 'which job\?.*usage: launch stop RUN \[--now\]' told
ask stop night --jason; expect 2 "unknown option"; check "one line" test "$(wc -l <told)" = 1
ask signal night NOSIG; expect 2 "no signal"; check "is told" has 'NOSIG: is no signal' told
ask restart night --rank 2; expect 2 "no such rank"; check "is told" has 'job night: there is no rank 2, the job has 2 workers' told

# status
until_true eval '"$LAUNCH" status night | grep -q "last ?\[31mline"' || fail "the last line is shown, and steers no terminal"
ask status night
check "a line for each rank: $(cat said)" test "$(grep -cE '^ +[01] +[0-9]+ +[01] +[0-9.]+M +[0-9]+% ' said)" = 2
check "no escape" not grep -q "$(printf '\033')" said
ask status night --json; expect 0 "status --json"
check "pids are those of workers" python3 - <<'P'
import json
j = json.load(open("said"))
assert [r["rank"] for r in j["rank"]] == [0, 1]
for r in j["rank"]:
    assert "./w.sh" in open(f"/proc/{r['pid']}/cmdline").read(), r
    assert r["rss_bytes"] > 100000 and r["end"] == "" and r["output_age_s"] >= 0, r
P
ask status night --rank 1; check "one rank alone" test "$(grep -cE '^ +[01] +[0-9]' said)" = 1

# a signal
ask signal night USR1; expect 0 "signal"
until_true eval '[ "$(cat usr1 2>/dev/null | wc -l)" = 2 ]' || fail "both workers get it: $(wc -l <usr1)"
ask signal night 10 --rank 0; expect 0 "by number, to one rank"
until_true eval '[ "$(cat usr1 | wc -l)" = 3 ]' || fail "one worker gets it"

# again, which costs none of the restarts
ask restart night; expect 0 "restart"
until_true has 'attempt 1 of 1' a.out || fail "all ranks run again"
until_true running 3 || fail "the old ones are gone"
check "it is told who asked: $(cat a.err)" has '^launch: asked to start all ranks again \(launch restart, pid [0-9]+\)$' a.err
ask restart night --rank 0; expect 0 "restart of a rank"
until_true has 'attempt 2 of 0' a.out || fail "it runs again"
check "no failure was told" not has 'failed first' a.err
until_true running 3 || fail "three workers"
until_true eval '"$LAUNCH" ps | grep -qE "^night .* RUN .* 2 +0 +[0-9]+s"' || fail "ps shows two restarts, and no healing"

# the end
ask stop nightly; expect 0 "stop"
check "its launcher is gone when stop returns" eval 'until_true gone '$b
wait $b; rc=$?; expect 143 "as by SIGTERM"
worker deaf.sh <<W
#!/bin/bash
trap '' TERM; echo up; sleep $TAG & while :; do wait; done
W
"$LAUNCH" -n 2 --run-id=deaf ./deaf.sh >c.out 2>c.err </dev/null & c=$!
until_true eval '[ "$(grep -c up c.out)" = 2 ]'
ask stop deaf --now; expect 0 "stop --now"
wait $c; rc=$?; expect 143 "a deaf job ends now"
kill -STOP "$(pgrep -P $a)"; ask ps; expect 0 "ps beside a job that is stopped"
check "it is said: $(cat told)" has 'warning: job night: it does not answer' told
kill -CONT "$(pgrep -P $a)"
ask stop night; expect 0 "the last one"; wait $a
ask ps; check "nothing runs" test "$(wc -l <said)" = 1
check "no socket is left" test "$(sockets)" = 0
check "nor a directory: $(ls machine/dev/shm machine/tmp)" test -z "$(ls machine/dev/shm machine/tmp | grep "launch-[0-9]")"

# nothing is left of what is killed, at the latest when somebody looks
for victim in guard agent both; do
    "$LAUNCH" -n 2 --run-id=$victim sleep $TAG >out 2>err </dev/null & pid=$!
    until_true there_are 1 || fail "$victim: the job is listed"
    agent=$(pgrep -P $pid)
    case $victim in guard) kill -9 $pid ;; agent) kill -9 $agent ;; both) kill -9 $pid $agent ;; esac
    wait $pid 2>/dev/null; until_true gone $agent
    if [ $victim = both ]; then
        find machine/dev/shm -type s -exec touch -h -d '1 minute ago' {} +
        ask ps; expect 0 "ps sweeps"; check "lists nothing dead" test "$(wc -l <said)" = 1
    fi
    until_true eval '[ "$(sockets)" = 0 ]' || fail "$victim: a socket is left"
    until_true running 0 || { reap; [ $victim = both ] || fail "$victim: workers are left"; }
done

# a place that can't be used costs the job nothing
chmod 755 machine/dev/shm; mkdir -m 777 machine/dev/shm/launch-$(id -u)
LAUNCH_LOG=debug run -n 2 true; expect 0 "a job without a socket"
check "the debug log says why" has 'no control socket: .*/launch-[0-9]+ may be entered by others' err
ask ps; check "ps says it, too: $(cat told)" has 'warning: .*may be entered by others \(mode 777\): chmod 700' told
finish
