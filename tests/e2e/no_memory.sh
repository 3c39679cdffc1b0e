#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 180
# Every allocation for the command line and the job file fails in turn: that is told, or the job is what was asked for.
. "$SRC/tests/e2e/lib.sh"
sanitized && skip "sanitizers have allocators of their own"
gpus 0
worker show <<'W'
#!/bin/sh
printf '<%s>' "$@" "$SHORT" "$LONG" "$ROLE_NAME" "$MASTER_ADDR"
W
long=$(printf '%05000d' 0)
cat >job.yaml <<W
nproc_per_node: 1
restart_on: [1, 3-5, SIGSEGV]
role: &name trainer
program: ./show
args: [*name, 'of \${local_rank}$long', '\$\${local_rank}']
env: {SHORT: "\${HOME}/x", LONG: "\$\$$long"}
W

worker without_memory <<'W'
#!/bin/sh
export NOMEMORY_AT LD_PRELOAD=$BUILD/tests/fake/libnomemory.so
exec "$REAL" "$@"
W
export REAL=$LAUNCH

# walk MOST OPTION...: allocation 1, 2, ..., at most MOST, fails until none is left to fail. stdout of a run that ends
# with 0 must be as without a failure.
walk() {
    local most=$1 untouched=0; shift
    run --config job.yaml --master-addr ::1 "$@" -- more words; expect 0 "$*"; cp out good
    for ((tried = 1; tried <= most && untouched < 10; tried++)); do
        LAUNCH=./without_memory NOMEMORY_AT=$tried run --config job.yaml --master-addr ::1 "$@" -- more words
        if [ $rc != 0 ]; then
            told || { fail "$* with allocation $tried: exit $rc, $(head -c 300 err)"; break; }
            untouched=0
        else
            cmp -s good out || { fail "$* with allocation $tried: $(head -c 300 out)"; break; }
            untouched=$((untouched + 1))
        fi
    done
}
told() { [ $rc = 125 ] && [ "$(wc -l <err)" = 1 ] && has 'memory' err; }
walk 1000 --print-config
check "there was something to fail: $tried" test "$tried" -gt 100
told() { [ $rc != 124 ]; } # libuv gives up by abort(); that is a failure, too
walk 300
# Without any memory from there on.
told() { [ $rc != 124 ] && { [ $rc != 125 ] || [ -s err ]; }; }
NOMEMORY_ON=1 walk 300
# liblaunch in one of two ranks: that rank says so, and the other one is not left waiting.
[ -x "$BUILD/tests/fake/heal_job" ] || finish
worker some <<'W'
#!/bin/sh
[ "$RANK" != 0 ] || export NOMEMORY_AT=$AT LD_PRELOAD=$BUILD/tests/fake/libnomemory.so
exec "$BUILD/tests/fake/heal_job" 20
W
for AT in 1 2 3 4 5 6; do
    export AT; run -n 2 ./some
    [ $rc = 0 ] || { expect 1 "allocation $AT of liblaunch"; check "allocation $AT: it is told: $(cat err)" has '\| .*out of memory' err; told=$AT; }
done
check "there was something to fail: $told" test "$told" -ge 3
finish
