#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# --max-restarts: the whole group again, with a new port; never for what can't start; never unasked.
. "$SRC/tests/e2e/lib.sh"
# Every rank writes its line; rank 0 fails once all have.
worker p.sh <<W
#!/bin/bash
echo "\$TORCHELASTIC_RESTART_COUNT \$TORCHELASTIC_MAX_RESTARTS \$MASTER_PORT" >>att.\$RANK
[ \$RANK = 0 ] || exec sleep $TAG
until [ "\$(cat att.* | grep -c "^\$TORCHELASTIC_RESTART_COUNT ")" = 3 ]; do :; done
exit 4
W
run --nproc-per-node=3 ./p.sh; expect 4 "no restart unasked"; check "one start" test "$(wc -l <att.0)" = 1
rm att.*; run --nproc-per-node=3 --max-restarts=3 ./p.sh; expect 4 "the worker's own code at the end"
for r in 0 1 2; do
    check "rank $r: counts 0 to 3" test "$(cut -d' ' -f1,2 att.$r | tr '\n' ,)" = "0 3,1 3,2 3,3 3,"
done
check "a port each" test "$(cut -d' ' -f3 att.0 | sort -u | wc -l)" = 4
check "all ranks had the same" cmp -s att.0 att.2
worker heals.sh <<'W'
#!/bin/sh
[ $RANK = 1 ] && [ $TORCHELASTIC_RESTART_COUNT = 0 ] && exit 9; exit 0
W
run --nproc-per-node=3 --max-restarts=1 ./heals.sh; expect 0 "a job that succeeds at the second try"
check "the failure was told" has 'rank 1 of 3 failed first' err
run --nproc-per-node=2 --max-restarts=3 ./missing; expect 127 "what can't be started"
check "is told once" test "$(wc -l <err)" = 1
worker tree.sh <<W
#!/bin/bash
[ \$TORCHELASTIC_RESTART_COUNT = 1 ] && { pgrep -fx "sleep $TAG" | wc -l >left; exit 0; }
setsid sleep $TAG & [ \$RANK = 1 ] && { until [ "\$(pgrep -fx "sleep $TAG" | wc -l)" = 3 ]; do :; done; exit 1; }; exec sleep $TAG
W
run --nproc-per-node=2 --max-restarts=1 ./tree.sh; expect 0 "trees"
check "the old group was gone before the new one ran: $(cat left)" test "$(cat left)" = 0
finish
