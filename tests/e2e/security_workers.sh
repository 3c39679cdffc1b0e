#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# What a worker is given: descriptors and variables, exactly those that README lists; and inputs of any size are bounded.
. "$SRC/tests/e2e/lib.sh"
gpus 2; mkdir -p machine/tmp machine/dev/shm; export LAUNCH_LEASE_DIR=$PWD/locks; mkdir -m 1777 locks

# ---- descriptors ----
worker fds.sh <<'W'
exec >>had.$RANK
for f in /proc/$$/fd/*; do # -e: the shell had the directory itself open a moment ago
    case ${f##*/} in 0|1|2|$LAUNCH_BOARD_FD|$LAUNCH_BELL_FD) ;; *) [ ! -e "$f" ] || echo "extra ${f##*/}" ;; esac
done
[ -e "/proc/$$/fd/$LAUNCH_BOARD_FD" ] && [ -e "/proc/$$/fd/$LAUNCH_BELL_FD" ] && echo both
exit ${1:-0}
W
tried=0
given() { # OPTIONS...: no worker has more
    rm -f had.*; tried=$((tried + 1))
    timeout 30 "$LAUNCH" "$@" sh -c "$(cat fds.sh)" sh >out 2>err </dev/null 5>five 77<fds.sh 205<fds.sh
    check "$*: the two of liblaunch, $(ls had.* 2>&1): $(cat err)" has '^both$' had.0
    check "$*: nothing else: $(cat had.*)" not grep -h extra had.0 had.1
}
for more in "" "--stdin=all" "--tee=3 --log-dir=l" "--redirects=3 --log-dir=l --log-rotate-size=1M" "--gpus=2" "--hang-timeout=20" \
    "--cgroup=off" "--affinity=exclusive" "--log-dir=l" "--on-failure=heal --max-restarts=1 --standby=exec" "--gpus=1 --wait=5 --share-gpus"; do
    # shellcheck disable=SC2086
    given -n 2 --timeout=20 $more
done
printf 'nproc_per_node: 2\nlog_dir: l\n' >job.yaml; given --config=job.yaml
check "all were tried" test $tried = 12
rm -f had.*; run -n 1 --max-restarts=1 sh -c "$(cat fds.sh)" sh 3; expect 3 "a second attempt"
check "its workers have no more: $(cat had.*)" not grep -h extra had.0
check "two attempts" test "$(grep -c both had.0)" = 2

# ---- variables ----
command -v python3 >/dev/null || finish
cat >exec.py <<'W' # execve() takes what no shell does: an entry without '=', one without a name, one twice
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
entries = [b"LAUNCH_LEASE_DIR=locks", b"NEWLINE=a\nRANK=666\nLD_PRELOAD=x", b"A\nB=1", b"NOEQUALS", b"=NONAME", b"EMPTY=", b"EQUALS=a=b=c", b"BYTES=\xff\xfe\x80",
           b"TWICE=1", b"TWICE=2", b"RANK=99", b"RANK", b"LAUNCH_BOARD_FD=0", b"LAUNCH_SLOT=77", b"LAUNCH_SPARE=1", b"MASTER_PORT=1", b"PATH=/usr/bin:/bin",
           b"LD_PRELOAD=", b"ESCAPE=\x1b]0;x\x07"] + [b"BIG%d=" % i + b"x" * 100000 for i in range(10)]
argv = [a.encode() for a in sys.argv[1:]]
libc.execve(argv[0], (ctypes.c_char_p * (len(argv) + 1))(*argv, None), (ctypes.c_char_p * (len(entries) + 1))(*entries, None))
sys.exit("execve: %d" % ctypes.get_errno())
W
timeout 30 python3 exec.py "$LAUNCH" -n 2 -r 1 --log-dir=e cat /proc/self/environ >out 2>err; rc=$?; expect 0 "strange variables"
cat >look.py <<'W'
import glob, sys
for rank in "01":
    entries = open(glob.glob("e/*/attempt_0/%s/stdout.log" % rank)[0], "rb").read().split(b"\0")
    assert entries.pop() == b""
    for same in [b"NEWLINE=a\nRANK=666\nLD_PRELOAD=x", b"A\nB=1", b"NOEQUALS", b"=NONAME", b"EMPTY=", b"EQUALS=a=b=c", b"BYTES=\xff\xfe\x80", b"TWICE=1", b"TWICE=2",
                 b"LD_PRELOAD=", b"ESCAPE=\x1b]0;x\x07", b"PATH=/usr/bin:/bin"] + [b"BIG%d=" % i + b"x" * 100000 for i in range(10)]:
        assert entries.count(same) == 1, (rank, same[:40])
    for ours, value in [(b"RANK", rank.encode()), (b"LAUNCH_SLOT", rank.encode())]:
        assert [e for e in entries if e.startswith(ours + b"=")] == [ours + b"=" + value], (rank, ours)
    assert not [e for e in entries if e.startswith(b"LAUNCH_SPARE=") or e in (b"MASTER_PORT=1", b"LAUNCH_BOARD_FD=0")], rank
W
check "they reach the workers as they are, and ours stand once" python3 look.py
# a launch inside a worker: nothing of the outer job is taken for its own
run -n 2 --run-id=outer sh -c '[ $RANK = 1 ] || "$0" -n 2 -r 1 --log-dir=nested --run-id=inner env' "$LAUNCH"; expect 0 "nested"
check "the inner job's own" eval 'grep -qx TORCHELASTIC_RUN_ID=inner nested/*/attempt_0/1/stdout.log && grep -qx RANK=1 nested/*/attempt_0/1/stdout.log && grep -qx LAUNCH_SLOT=1 nested/*/attempt_0/1/stdout.log'
check "nothing of the outer one" not grep -q outer nested/*/attempt_0/1/stdout.log

# ---- sizes ----
big() { python3 -c "import sys; sys.stdout.write($1)"; }
for id in a/b ../x . .. "a b" $'a\nb' $'a\033[2Jb' "$(big "'x' * 10000")" ""; do
    run --run-id="$id" true; expect 2 "run id ${id:0:20}"; check "one line: $(wc -c <err)" eval '[ "$(wc -l <err)" = 1 ] && [ "$(wc -c <err)" -lt 1100 ]'
done
run -n 2 python3 -c 'import os; os.write(1, b"x" * 10_000_000 + b"\n")'; expect 0 "a line of 10 MB"; check "all of both: $(wc -c <out)" test "$(wc -c <out)" = 20000002
LIMIT=60 run -n 2 --log-dir=g -r 2 sh -c 'head -c 100000000 /dev/zero'; expect 0 "200 MB"; check "all of the 200 MB: $(wc -c <out)" test "$(wc -c <out)" -ge 200000000; rm -f out
run -n 2 sh -c 'truncate -s 1G "$TORCHELASTIC_ERROR_FILE"; exit 4'; expect 4 "an error file of 1 GB"; check "it has a report: $(cat err)" has 'exited with code 4' err
big "''.join('k%d: 1\n' % i for i in range(1000000))" >huge.yaml; run --config=huge.yaml; expect 2 "a million keys"; check "one line: $(cat err)" test "$(wc -l <err)" = 1
run -n 2 true $(seq 100000); expect 0 "a hundred thousand arguments"
finish
