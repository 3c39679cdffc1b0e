#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# Workers' output: whole lines, bytes unchanged, nothing lost, nothing mixed.
. "$SRC/tests/e2e/lib.sh"
cat >bytes.py <<'W'
import sys
w = lambda b: (sys.stdout.buffer.write(b), sys.stdout.buffer.flush())
w(bytes(range(256)) * 4 + b"\n"); w(b"\xe2\x96"); w(b"\x88\n"); w(b"\0" * 100 + b"\n")
w((bytes(range(11, 256)) * 4300)[:1 << 20] + b"\n"); w(b"\x1b[31mred\x1b[0m LAST-MARK\n")
W
python3 bytes.py >want
run --nproc-per-node=2 sh -c 'if [ $RANK = 0 ]; then exec python3 bytes.py; fi'
expect 0 bytes; check "one rank's bytes are unchanged" cmp -s want out
run --nproc-per-node=2 python3 bytes.py
check "both ranks' last lines are there" test "$(grep -ac LAST-MARK out)" = 2
check "no byte is lost or added" test "$(stat -c %s out)" = $((2 * $(stat -c %s want)))

cat >lines.py <<'W'
import os
r = os.environ["RANK"]
with os.fdopen(1, "wb", 777) as f:
    for i in range(5000): f.write(b"rank %s line %d %s end\n" % (r.encode(), i, b"x" * (i * 37 % 300)))
W
run --nproc-per-node=8 python3 lines.py; expect 0 lines
check "40000 lines" test "$(wc -l <out)" = 40000
check "no line is torn" test -z "$(grep -avE '^rank [0-7] line [0-9]+ x* end$' out)"
for r in 0 1 2 3 4 5 6 7; do
    grep -a "^rank $r " out | awk '{print $4}' | cmp -s - <(seq 0 4999) || fail "rank $r: lines lost or out of order"
done

write_halves
run --nproc-per-node=2 ./halves.py; expect 0 halves
for r in 0 1; do
    for i in 1 2 3 4 5; do check "rank $r line $i in one piece" has "r${r}a${i}r${r}b$i" out; done
    check "rank $r: the unfinished last line is shown" has "r${r}end" out
done
check "no line mixes ranks" not has 'r0.*r1|r1.*r0' out

run --nproc-per-node=3 sh -c 'echo to-out; echo to-err >&2'
check "stdout stays stdout" test "$(sort -u out)" = to-out
check "stderr stays stderr" test "$(sort -u err)" = to-err

"$LAUNCH" --nproc-per-node=2 sh -c 'yes abc' 2>err | head -1 >out; rc=${PIPESTATUS[0]}
check "a reader that leaves ends the job with SIGPIPE's code, got $rc" test "$rc" = 141
check "and that is told" has 'stdout' err
check "nothing is left" not pgrep -fx 'yes abc'

"$LAUNCH" --nproc-per-node=2 sh -c 'printf "at 50%%"; exit 3' >out 2>&1 </dev/null; rc=$?
expect 3 "lines without an end"; check "the report begins a line: $(cat out)" has '^launch: sh: rank' out
"$LAUNCH" --nproc-per-node=2 sh -c 'printf "at 50%%"; exit 3' >out 2>err </dev/null
check "a stdout apart from it gets nothing: $(cat out)" test "$(tail -c1 out)" = %

worker keep.sh <<W
#!/bin/sh
sleep $TAG & echo main-done-\$RANK
W
run --nproc-per-node=2 ./keep.sh; expect 0 "a child that holds the pipe"
check "the last output is there" test "$(grep -c main-done out)" = 2
check "what was left behind is named" has 'behind.*sleep' err
check "and ended" running 0
finish
