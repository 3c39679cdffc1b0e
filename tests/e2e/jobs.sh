#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 180
# jobs: in a file: several jobs under one roof, each with its own end; all can start or none does; whatever is killed, nothing is left.
. "$SRC/tests/e2e/lib.sh"
gpus 8; mkdir -p machine/dev/shm machine/tmp; unset XDG_RUNTIME_DIR
gone() { [ ! -e /proc/"$1" ] || has "^State:.Z" /proc/"$1"/status 2>/dev/null; }
leased() { "$LAUNCH" gpus >gpus.out; [ "$(grep -c ' leased ' gpus.out)" = "$1" ]; }
two() { cat >two.yaml; }

# results, prefixes, restarts
two <<'E'
program: sh
env: {WHOSE: all}
jobs:
  train: {gpus: 4, nproc_per_node: gpu, args: [-c, 'echo "$RANK of $WORLD_SIZE $WHOSE"; echo err >&2'], env: {WHOSE: own}}
  eval: {gpus: 2, max_restarts: 1, args: [-c, '[ $TORCHELASTIC_RESTART_COUNT = 1 ] && echo "again $WHOSE"']}
  worse: {args: [-c, 'while [ -d up ]; do sleep 0.02; done; exit 9']}
  bad: {args: [-c, 'exit 7']}
E
mkdir up; (until_true has 'exit code 7;' err; rmdir up) &
run --config two.yaml; expect 7 "the code is that of the first job that failed"; wait $!
check "each line has its job's name: $(cat out)" test "$(grep -c '^\[train\]:[0-3] of 4 own$' out)" = 4 -a "$(grep -c '^\[eval\]:again all$' out)" = 1 -a "$(wc -l <out)" = 5
check "stderr likewise" test "$(grep -c '^\[train\]:err$' err)" = 4
check "reports likewise: $(cat err)" has '^\[eval\]:launch: .*failed first' err
for line in 'train: exit code 0' 'eval: exit code 0' 'bad: exit code 7' 'worse: exit code 9'; do check "$line" has "^launch: job $line after [0-9.]+ s$" err; done
two <<'E'
jobs:
  parts: {program: sh, nproc_per_node: 2, args: [-c, 'cat; for i in 1 2 3; do printf "%s%s" a "$RANK"; printf "b\n"; done']}
  big: {program: sh, args: [-c, 'i=0; while [ $i -lt 2000 ]; do echo "line $i of the large one"; i=$((i+1)); done']}
E
run --config two.yaml; expect 0 "two that end well"
check "lines are whole" test "$(grep -cE '^\[big\]:line [0-9]+ of the large one$' out)" = 2000 -a "$(grep -cE '^\[parts\]:a[01]b$' out)" = 6 -a "$(wc -l <out)" = 2006

# what is wrong is told before anything starts
two <<'E'
program: sh
args: [-c, ': >started']
jobs:
  a: {gpus: 5}
  b: {gpus: 4}
  c: {}
E
run --config two.yaml; expect 75 "GPUs for one of two"; check "who can't: $(cat err)" has '^launch: job b can.t be started, so none of the 3 was$' err
check "the table names the other" has '^\[b\]:launch:   0    leased  run a-[0-9a-f]{8} ' err
check "nothing has run" test ! -e started
sed 's/gpus: 4/program: no-such-program/' two.yaml >b.yaml; run --config b.yaml; expect 127 "a program that is not there"; check "nothing has run: $(cat err)" test ! -e started
run --config two.yaml ./x; expect 2 "a program on the command line"; check "is told: $(cat err)" has "^launch: two.yaml: has 'jobs', each with a program of its own: leave out './x'$" err
run --config two.yaml --name=x; expect 2 "one name for all"; check "is told: $(cat err)" has '^launch: --name=x: two jobs of two.yaml would have it, and each needs its own$' err
run --config two.yaml --gpus=2; expect 0 "the command line goes before all jobs"; check "they ran: $(cat err)" test -e started
check "no lease is left" leased 0
# named GPUs go before counted ones
sed 's/gpus: 5/gpus: 2/; s/gpus: 4/gpus: 0-1/' two.yaml >b.yaml; run --config b.yaml; expect 0 "a list behind a count: $(cat err)"
# who waits, waits for itself
sed "s/gpus: 5/gpus: 5, args: [-c, 'while [ -d up ]; do sleep 0.02; done']/; s/gpus: 4/gpus: 4, wait: 30s/" two.yaml >b.yaml
mkdir up; (until_true has 'waiting for 4 GPUs' err; rmdir up) &
run --config b.yaml; expect 0 "one waits while the others run: $(cat err)"; wait $!
check "it was told" has '^\[b\]:launch: waiting for 4 GPUs' err

# shown and taken again
run --config two.yaml --print-config; mv out shown.yaml; run --config shown.yaml --print-config
check "what was shown says the same" cmp <(sed 's/  # .*//' shown.yaml) <(sed 's/  # .*//' out)

# steering, signals, and kill -9 of anybody
two <<E
program: sh
jobs:
  one: {gpus: 2, nproc_per_node: 2, args: [-c, 'sleep $TAG & wait']}
  two: {gpus: 1, nproc_per_node: 1, args: [-c, 'sleep $TAG & wait']}
E
both() { "$LAUNCH" --config two.yaml >out 2>err </dev/null & roof=$!; until_true running 3 || fail "both run: $(cat err)"; }
both
until_true eval '[ "$("$LAUNCH" ps | grep -cE "^(one|two)-[0-9a-f]{8} +(one|two) .* RUN ")" = 2 ]' || fail "ps has both"
"$LAUNCH" gpus >gpus.out; pid=$(sed -n 's/.*run one-.*pid \([0-9]*\),.*/\1/p' gpus.out | head -1)
check "the page of a lease names the job's own launcher" test "$(ps -o ppid= -p "$pid" | tr -d ' ')" = $roof
"$LAUNCH" stop one 2>/dev/null; until_true running 1 || fail "stop ends one"
check "the other goes on, and so does the roof" kill -0 $roof
kill $roof; wait $roof; rc=$?; expect 143 "SIGTERM ends all"; until_true running 0 || fail "SIGTERM: workers are left"
check "its result: $(cat err)" has '^launch: job two: exit code 143 after' err
for victim in roof guard agent; do
    both; guards=$(pgrep -P $roof | tr '\n' ' ')
    case $victim in roof) kill -9 $roof ;; guard) kill -9 ${guards%% *} ;; agent) kill -9 "$(pgrep -P "${guards%% *}")" ;; esac
    if [ $victim != roof ]; then
        until_true eval '[ "$(tagged)" -lt 3 ]' || fail "$victim: its job ends"
        until_true running 1 || fail "$victim: the other job goes on"
        kill $roof; wait $roof; rc=$?; expect 137 "kill -9 of the $victim is a failure of its job"
    else
        wait $roof 2>/dev/null
    fi
    until_true running 0 || fail "kill -9 of the $victim: workers are left"
    for p in $guards; do until_true gone "$p" || fail "$victim: a guard is left"; done
    until_true leased 0 || fail "$victim: a lease is left: $(cat gpus.out)"
done

# a reader that leaves
two <<'E'
program: sh
args: [-c, 'while echo y; do :; done']
jobs: {a: {}, b: {nproc_per_node: 2}}
E
timeout 30 "$LAUNCH" --config two.yaml 2>err | head -1 >out; rc=${PIPESTATUS[0]}; expect 141 "head"

# in the background
two <<E
program: sleep
args: ["$TAG"]
log_dir: logs
jobs:
  one: {gpus: 2, nproc_per_node: gpu}
  two: {gpus: 1}
E
run --config two.yaml --detach; expect 0 "--detach: $(cat err)"
check "run ids, and nothing else: $(cat out err)" test "$(grep -cE '^(one|two)-[0-9a-f]{8}$' out)" = 2 -a "$(cat out err | wc -l)" = 2
until_true running 3 || fail "they run without the roof"
"$LAUNCH" gpus >gpus.out
check "three are leased: $(cat gpus.out)" test "$(grep -c ' leased ' gpus.out)" = 3
for pid in $(sed -n 's/.*leased.* pid \([0-9]*\),.*/\1/p' gpus.out); do check "launch gpus names a process that lives" kill -0 "$pid"; done
"$LAUNCH" stop one 2>/dev/null; "$LAUNCH" stop two 2>/dev/null; until_true running 0 || fail "stop"
# --detach with --wait: it waits in the terminal, and then the background process holds
"$LAUNCH" --gpus=8 --run-id=first --log-dir=logs sleep $TAG >/dev/null 2>&1 & first=$!
until_true leased 8
"$LAUNCH" --gpus=3 --wait --detach --run-id=second --log-dir=logs sleep $TAG >out 2>err & second=$!
until_true has 'number 1 in line' err; kill $first; wait $first
wait $second; rc=$?; expect 0 "--detach with --wait"; check "its run id: $(cat out)" has '^second$' out
"$LAUNCH" gpus >gpus.out; pid=$(sed -n 's/.*run second.* pid \([0-9]*\),.*/\1/p' gpus.out | head -1)
check "launch gpus names a process that lives: $(cat gpus.out)" kill -0 "$pid"
check "which is not the one that waited" test "$pid" != "$second"
"$LAUNCH" stop second 2>/dev/null; until_true running 0

# the example
cp -r "$SRC/examples/two_jobs" example; cd example || exit 1
run --config server.yaml; expect 0 "examples/two_jobs: $(cat err)"
check "train has six GPUs, eval two others, after a restart: $(cat out)" test "$(grep -c '^\[train\]:\[default[0-5]\]:rank [0-5] of 6, steps 3, GPUs 0,1,2,3,4,5$' out)" = 6 -a "$(grep -c '^\[eval\]:\[default[01]\]:rank [01] of 2, attempt 1, GPUs 6,7$' out)" = 2
check "each has a log directory" test "$(ls -d runs/train-* runs/eval-* | wc -l)" = 2
finish
