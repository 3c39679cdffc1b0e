#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# The launcher's exit code is the first failing worker's own, whichever rank it was.
. "$SRC/tests/e2e/lib.sh"
ulimit -c 0
for code in $(seq 0 255); do
    "$LAUNCH" sh -c "exit $code" 2>/dev/null
    rc=$?; [ $rc = $code ] || fail "one worker, exit $code: got $rc"
done
for who in "0 0" "1 0" "3 0" "0 1" "3 1"; do
    worker p.sh <<W
#!/bin/sh
[ \$RANK = \$1 ] || { [ \$2 = 1 ] && exit 0; exec sleep $TAG; }
exit 3
W
    run --nproc-per-node=4 ./p.sh $who
    expect 3 "rank and mode '$who'"
done
run --nproc-per-node=4 true; expect 0 "all fine"
run --nproc-per-node=4 --exit-code=torchrun sh -c 'exit 7'; expect 1 "--exit-code=torchrun"
for sig in SEGV:139 ABRT:134 KILL:137 TERM:143 BUS:135 INT:130 FPE:136 USR1:138; do
    run --nproc-per-node=2 sh -c "[ \$RANK = 1 ] && kill -${sig%:*} \$\$; exec sleep $TAG"
    expect "${sig#*:}" "a rank that dies of ${sig%:*}"
    check "${sig%:*} is named" has "SIG${sig%:*}" err
    check "rank 1 is named" has "rank 1 of 2" err
done
check "nothing is left" running 0
finish
