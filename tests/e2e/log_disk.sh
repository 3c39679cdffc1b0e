#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 300
# Disks that do not do what they should, readers that do not read: log lines may be lost, the job never.
. "$SRC/tests/e2e/lib.sh"
NS="unshare -m"; [ "$(id -u)" = 0 ] || NS="unshare -Urm"
cat >much.py <<'W'
import os
for i in range(20000): print('x' * 100, flush=(i % 50 == 0))
open('done.' + os.environ['RANK'], 'w').write('1')
W
# Fails in the first attempt, once all have come here: the first failure ends the others.
worker together.sh <<'W'
#!/bin/sh
a=$TORCHELASTIC_RESTART_COUNT; : >here.$a.$RANK
until [ -e here.$a.0 ] && [ -e here.$a.1 ]; do sleep .02; done
[ $a = 1 ]
W
if $NS true 2>/dev/null; then
    mkdir small
    worker on_small_disk <<W
#!/bin/sh
exec $NS sh -c 'mount -t tmpfs -o size=64k none small && exec "\$@"' sh "$LAUNCH" "\$@"
W
    (LAUNCH=./on_small_disk LIMIT=60 run --nproc-per-node=2 --log-dir=small --tee=3 --max-restarts=1 sh -c \
        'python3 much.py; ./together.sh'; echo $rc >rc); rc=$(cat rc)
    expect 0 "a full disk"
    check "the workers came to their end" test -s done.0 -a -s done.1
    check "it is told, with the path: $(cat err)" has 'small/.*/stdout.log: No space left on device' err
    check "a few times only" test "$(grep -c 'No space' err)" -le 8
    check "what is missing is counted" has 'warning: .*small/.*: [0-9]{6,} bytes are missing in the log files' err
    check "the console has all" test "$(grep -c '^\[default[01]\]:x\{100\}$' out)" = 80000
fi

rm -f here.*
worker vanish.sh <<'W'
#!/bin/sh
echo before; if [ $RANK = 0 ]; then rm -r logs; : >removed; fi
while [ ! -e removed ]; do sleep .02; done
echo after; echo $RANK >>ended
W
run --nproc-per-node=2 --log-dir=logs --tee=1 --max-restarts=1 sh -c './vanish.sh; ./together.sh'
expect 0 "a directory that vanishes"
check "all ran: $(cat ended)" test "$(wc -l <ended)" = 4
check "it is told: $(cat err)" has 'logs/.*/stdout.log: No such file or directory' err
check "the console has all" test "$(grep -c after out)" = 4

# Rotation: each byte once, at most so many files.
cat >count.py <<'W'
for i in range(20000): print("line", i)
W
python3 count.py >want
run --log-dir=rotated -r 1 --log-rotate-size=10K --log-rotate-keep=1000 python3 count.py; expect 0 rotation
cd rotated/*/attempt_0/0 || exit 1
check "no file is larger than asked" test "$(stat -c %s stdout.log* | sort -n | tail -1)" -le 10240
(ls stdout.log.* | sort -t. -k3 -nr | xargs cat; cat stdout.log) | cmp -s - "$OLDPWD/want" || fail "each byte is there once"
cd "$OLDPWD" || exit 1
run --log-dir=few -r 1 --log-rotate-size=10K --log-rotate-keep=2 python3 count.py; expect 0 "few files"
check "only those that are to be kept" test "$(cd few/*/attempt_0/0; echo *)" = 'stdout.log stdout.log.1 stdout.log.2'
check "the newest" test "$(tail -1 few/*/attempt_0/0/stdout.log)" = 'line 19999'

# A reader that left.
worker long.sh <<'W'
#!/bin/sh
for i in $(seq 1 3000); do echo "line $i of rank $RANK ........................................"; done
echo tail; : >ended.$RANK
exec sleep $TAG
W
export TAG
timeout 20 "$LAUNCH" --nproc-per-node=2 --log-dir=piped --tee=3 ./long.sh 2>err </dev/null | head -1 >out; rc=${PIPESTATUS[0]}
check "a reader that leaves ends the job as a whole, got $rc" test "$rc" = 141
check "nothing is left" running 0

# A reader that does not read: what the agent holds is bounded, and a death is still seen.
mkfifo slow; exec 9<>slow
worker flood.sh <<'W'
#!/bin/sh
[ $RANK = 0 ] && { until [ -e die ]; do sleep .05; done; kill -9 $$; }
exec yes "a line of some length that is written for ever"
W
"$LAUNCH" --nproc-per-node=3 --log-dir=/dev/null --tee=3 ./flood.sh >slow 2>err </dev/null & pid=$!
agent() { pgrep -P "$pid" | head -1; }
until_true test -n "$(agent)"
flooded() { [ "$(pgrep -fxc 'yes a line of some length.*')" = 2 ]; }
until_true flooded || fail "both floods run"
resident() { awk '/VmRSS/ {print $2}' "/proc/$(agent)/status"; }
first=$(resident)
for ((i = 0; i < 50; i++)); do pause; done
last=$(resident)
check "memory is flat with a blocked reader: $first kB, then $last kB" test "$last" -le $((first + 4096))
: >die
until_true not kill -0 $pid 2>/dev/null || fail "a death is handled although nobody reads"
wait $pid; rc=$?
check "with the right exit code, got $rc" test $rc = 137
check "nothing is left" not pgrep -fx 'yes a line of some length.*'
finish
