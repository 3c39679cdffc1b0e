#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# The C library fails under the launcher (tests/fake/faults.c): what it can do without is no matter, the rest is told.
. "$SRC/tests/e2e/lib.sh"
sanitized && skip "sanitizers come before what is preloaded"
[ -x "$BUILD/tests/fake/heal_job" ] || skip "heal_job was not built (no CUDA and NCCL headers)"
gpus 0
worker lame <<'W'
#!/bin/bash
export FAULTS_SEED=$SEED LD_PRELOAD=$BUILD/tests/fake/libfaults.so
exec "$REAL" "$@"
W
export REAL=$LAUNCH LAUNCH_CGROUP=off SEED=1
LAUNCH=./lame
# faulty KINDS WHERE RATE arguments of launch...
faulty() { FAULTS=$1 FAULTS_WHERE=$2 FAULTS_RATE=$3 run -n 2 "${@:4}"; }
says='i=0; while [ $i -lt 300 ]; do echo "$RANK says $i"; i=$((i + 1)); done'
log_of() { find logs -path "*/$1/stdout.log" -exec cat {} +; }

sums=$BUILD/tests/fake/heal_job # checks each of them
for SEED in 1 2; do
    faulty 'interrupt slow' workers 2000 --timeout=20s "$sums" 20; expect 0 "calls of liblaunch that are interrupted (seed $SEED): $(cat err)"
    faulty clock workers 5000 --timeout=20s "$sums" 20; expect 0 "a clock of liblaunch's that jumps (seed $SEED): $(cat err)"
    rm -rf logs; faulty 'interrupt slow' launch 2000 --log-dir=logs --tee=3 --hang-timeout=20s sh -c "$says"
    expect 0 "calls that are interrupted (seed $SEED): $(cat err)"
    check "nothing is lost (seed $SEED)" test "$(grep -c 'says' out)" = 600
    faulty clock launch 5000 --timeout=60s --hang-timeout=20s sh -c "$says"; expect 0 "a clock that jumps by up to a day (seed $SEED)"
    rm -rf logs; faulty short launch 5000 --log-dir=logs --tee=3 sh -c "$says"; expect 0 "short writes (seed $SEED)"
    for rank in 0 1; do
        check "the log of rank $rank is whole (seed $SEED)" cmp -s <(RANK=$rank sh -c "$says") <(log_of $rank)
    done
done
rm -rf logs; faulty disk agent 10000 --log-dir=logs --tee=3 sh -c "$says"; expect 0 "a disk that takes nothing"
check "it is told: $(head -3 err)" has 'No space left|quota|Input/output' err
check "the terminal gets all of it" test "$(grep -c 'says' out)" = 600
faulty fork guard 10000 true; expect 125 "no agent can be forked"; check "it is told: $(cat err)" has 'fork' err
faulty clone agent 10000 true; expect 125 "no worker can be forked"; check "it is told: $(cat err)" has 'fork: too many processes' err
faulty descriptors agent 10000 true; check "no descriptor is left: exit $rc, $(head -3 err)" test "$rc" = 125 -o "$rc" = 134
for kind in memory descriptors; do
    faulty $kind workers 10000 --timeout=20s "$sums" 20; expect 1 "liblaunch has no $kind"
    check "it says so: $(cat err)" has '\| (launch_join: out of memory|.*Too many open files)' err
done
faulty memory guard 10000 true; expect 125 "no memory"; check "it is told: $(cat err)" has 'memory' err
finish
