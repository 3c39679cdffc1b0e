#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# Log files and prefixes as torchrun's users know them: layout, maps, tee, filters, templates, attempts.
. "$SRC/tests/e2e/lib.sh"
cat >bytes.py <<'W'
import sys
w = lambda b: (sys.stdout.buffer.write(b), sys.stdout.buffer.flush())
w(bytes(range(256)) * 4 + b"\n"); w(b"\xe2\x96"); w(b"\x88\n"); w(b"\0" * 100 + b"\n")
w((bytes(range(1, 256)) * 4113)[:1 << 20] + b"\n"); w(b"\x1b[31mred\x1b[0m LAST-MARK\n")
W
python3 bytes.py >want
run --nproc-per-node=2 --log-dir=logs --tee=3 python3 bytes.py; expect 0 "tee"
check "both ranks' last lines are shown" test "$(grep -ac '^\[default[01]\]:.*LAST-MARK$' out)" = 2
for r in 0 1; do
    check "rank $r: its file has every byte" cmp -s want logs/*/attempt_0/$r/stdout.log
    sed -n "s/^\[default$r\]://p" out | cmp -s - want || fail "rank $r: the console has every byte behind prefixes"
done

write_halves
run --nproc-per-node=2 --log-dir=logs --tee=3 ./halves.py; expect 0 halves
for r in 0 1; do
    for i in 1 2 3 4 5; do check "rank $r line $i in one piece, with one prefix" has "^\[default$r\]:r${r}a${i}r${r}b$i\$" out; done
    check "rank $r: the unfinished last line is shown" has "^\[default$r\]:r${r}end" out
done
check "no line mixes ranks" not has 'r0.*r1|r1.*r0' out

# Maps with several digits; a relative directory counts from the caller's, whatever the job does.
worker who.sh <<'W'
#!/bin/sh
cd /; echo "out $RANK"; echo "err $RANK" >&2
W
run --nproc-per-node=12 --log-dir=a/b/c --run-id=night -r 0:3,1:2 -t 10:1,11:3 --local-ranks-filter=0,1,10,11 ./who.sh
expect 0 maps
run_dir=$(echo a/b/c/*)
check "the run's directory has torchrun's name: $run_dir" has '^a/b/c/night_[a-z0-9]{8}$' <<<"$run_dir"
check "directory and files are the owner's" test "$(stat -c %a "$run_dir" "$run_dir/attempt_0/0/stdout.log" | xargs)" = '700 600'
check "what was asked for is there: $(cd "$run_dir/attempt_0"; ls */*)" test "$(cd "$run_dir/attempt_0"; echo */*)" = \
    '0/stderr.log 0/stdout.log 1/stderr.log 10/stdout.log 11/stderr.log 11/stdout.log'
check "rank 0 is not shown, rank 1 half, the others behind prefixes: $(cat out)" \
    test "$(sort out | xargs)" = '[default10]:out 10 [default11]:out 11 out 1'
check "the same for stderr: $(cat err)" test "$(sort err | xargs)" = '[default11]:err 11 err 10'
check "files hold what was written" test "$(cat "$run_dir"/attempt_0/0/*.log | sort | xargs)" = 'err 0 out 0'

run --log-dir=one --tee=0:1 ./who.sh; expect 0 "one worker"
check "one worker's lines have prefixes too" test "$(cat out)" = '[default0]:out 0'
check "and its file" test "$(cat one/*/attempt_0/0/stdout.log)" = 'out 0'
PET_LOG_DIR=pet PET_TEE=1 PET_LOCAL_RANKS_FILTER=1 TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE='$$${rank}/${role_name} ' \
    run --nproc-per-node=2 --role=trainer ./who.sh
expect 0 "torchrun's variables"
check "template and filter are obeyed: $(cat out)" test "$(cat out)" = '$1/trainer out 1'
check "but the file is there" test "$(cat pet/*/attempt_0/0/stdout.log)" = 'out 0'

worker lines.sh <<'W'
#!/bin/sh
echo "fine $RANK"; echo "a ERROR, b $RANK"; printf "loss $RANK"; echo "E $RANK" >&2
W
run -n 2 --redirects=1 --log-dir=f2 --duplicate-stdout-filters=a true; expect 0 "filters without --tee"
check "is told: $(cat err)" has "warning: --duplicate-stdout-filters finds nothing: no rank has --tee=1$" err
run --nproc-per-node=2 --log-dir=f --tee=0:3,1:1 --duplicate-stdout-filters='ERROR,, b,loss' --duplicate-stderr-filters=E ./lines.sh
expect 0 filters; check "nobody is warned: $(cat err)" not has filters err
check "matching lines: $(cat f/*/attempt_0/filtered_stdout.log)" test "$(sort f/*/attempt_0/filtered_stdout.log | tr '\n' '|')" = \
    '[default0]:a ERROR, b 0|[default0]:loss 0|[default1]:a ERROR, b 1|[default1]:loss 1|'
check "of streams with --tee only" test "$(cat f/*/attempt_0/filtered_stderr.log)" = '[default0]:E 0'

# Every attempt has fresh files and a fresh place for its error.
worker again.sh <<'W'
#!/bin/sh
[ ! -s "$TORCHELASTIC_ERROR_FILE" ] || echo "not fresh"
echo "attempt $TORCHELASTIC_RESTART_COUNT"; echo "{\"message\": \"$TORCHELASTIC_RESTART_COUNT\"}" >$TORCHELASTIC_ERROR_FILE
a=$TORCHELASTIC_RESTART_COUNT; : >here.$a.$RANK
until [ -e here.$a.0 ] && [ -e here.$a.1 ]; do sleep .02; done # the first failure ends the others
[ $a = 2 ]
W
run --nproc-per-node=2 --log-dir=again -r 3 --max-restarts=2 ./again.sh; expect 0 attempts
for a in 0 1 2; do for r in 0 1; do
    check "attempt $a of rank $r" test "$(cat again/*/attempt_$a/$r/stdout.log)" = "attempt $a"
    check "its error file" test "$(cat again/*/attempt_$a/$r/error.json)" = "{\"message\": \"$a\"}"
done; done
rm here.*
run --nproc-per-node=2 --max-restarts=2 ./again.sh; expect 0 "error files in memory"
check "they are fresh too" not has 'not fresh' out

export TMPDIR=$PWD/tmp; mkdir tmp
run --nproc-per-node=2 ./who.sh; expect 0 plain
run --nproc-per-node=2 --log-dir=/dev/null -t 1 -r 2 ./who.sh; expect 0 /dev/null
check "tee has prefixes, redirects show nothing: $(cat out err)" test "$(sort out | xargs)/$(cat err)" = '[default0]:out 0 [default1]:out 1/'
check "nothing was left anywhere: $(ls tmp)" test -z "$(ls tmp)"
run --nproc-per-node=2 -r 3 ./who.sh; expect 0 "redirects without a directory"
check "it says where, once: $(cat err)" test "$(cat err)" = "launch: log files are in $(echo tmp/launch_*/* | sed "s|^|$PWD/|")"
check "they are there" test "$(cat tmp/launch_*/*/attempt_0/1/stdout.log)" = 'out 1'
finish
