#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# The failure report: the culprit and not a victim, how, when, what may be tried; short; no colours in a file.
. "$SRC/tests/e2e/lib.sh"
ulimit -c 0
lines() { [ "$(grep -c '^launch:' err)" -le 25 ]; }
worker segv.sh <<W
#!/bin/bash
[ \$RANK = 1 ] && kill -SEGV \$\$; exec sleep $TAG
W
run -n 3 ./segv.sh; expect 139 "a crash"
check "who and how" has 'rank 1 of 3 failed first: it was killed by SIGSEGV \(invalid memory access\)' err
check "when" has '\(pid [0-9]+, [0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}, after [0-9.]+ s\)' err
check "what may be tried" has 'try: .*ulimit -c' err
check "the others are told apart" has 'the other 2 ranks still running were ended' err
check "no colours in a file" not has $'\x1b' err
run -n 2 sh -c 'echo "x: error while loading shared libraries: libq.so: no" >&2; exit 127'
expect 127 "a missing library"; check "its hint" has 'try: .*ldd' err
LAUNCH_MAX_RESTARTS=3 run -n 1 sh -c 'echo >>starts; exit 127'; expect 127 "127 is not restarted"
check "one start" test "$(wc -l <starts)" = 1
check "and why" has 'exit code 127; .*--no-restart-on' err
run -n 2 sh -c '[ $RANK = 1 ] && kill -KILL $$; exec sleep 60'; expect 137 "SIGKILL"
check "without proof nobody is blamed" not has '[oO][oO][mM]|[oO]ut.of.memory' err

# Rank 0 is a victim: it sees the end of rank 1 and goes at once, while rank 1 takes its time to die (it has begun to
# before it closes the pipe, and ends only once rank 0 is gone).
worker victim.py <<'W'
#!/usr/bin/env python3
import os, signal, sys
if os.environ['RANK'] == '0':
    open('pid0', 'w').write(str(os.getpid())); os.rename('pid0', 'pid')
    with open('fifo') as f: f.read()
    sys.exit('recv: Connection reset by peer')
signal.signal(signal.SIGTERM, signal.SIG_IGN)
while not os.path.exists('pid'): pass
pid = int(open('pid').read())
open('fifo', 'w').close()
try:
    while open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()[0] not in 'ZX': pass
except OSError: pass
os.kill(os.getpid(), signal.SIGFPE)
W
mkfifo fifo; LIMIT=60 run -n 2 ./victim.py; expect 136 "the culprit's code"
check "the culprit is named" has 'rank 1 of 2 failed first: it was killed by SIGFPE' err
check "the victim too" has 'rank 0 exited with code 1, [0-9]+ ms earlier, probably because of it' err
check "nobody else was ended" not has 'still running' err
run -n 2 sh -c 'echo Broken pipe >&2; exit 3'; expect 3 "without a better one the first is named"

worker noisy.sh <<'W'
#!/bin/bash
for i in {1..500}; do echo "line $i" >&2; done; printf 'evil \033[2J\n' >&2; exit 9
W
run -n 2 sh -c '[ $RANK = 0 ] && exec ./noisy.sh; exec sleep 60'; expect 9 "a noisy one"
grep '^launch:' err >report; check "at most 25 lines" test "$(wc -l <report)" -le 25
check "its last lines" has '\| line 500' report; check "no controls" not has $'\x1b' report

# Whoever started us and wants the reason in a file gets it in PyTorch's form.
TORCHELASTIC_ERROR_FILE=$PWD/error.json run -n 2 sh -c 'exit 5'; expect 5 "with a file of the parent's"
check "message and code: $(cat error.json)" python3 - <<'P'
import json
m = json.load(open('error.json'))['message']
assert m['errorCode'] == 5 and 'exited with code 5' in m['message'] and m['extraInfo']['timestamp'].isdigit()
P
TORCHELASTIC_ERROR_FILE=$PWD/error.json run -n 2 sh -c 'kill -KILL $$'; expect 137 "a killed worker, with a file of the parent's"
check "its code is Python's for a signal: $(cat error.json)" has '"errorCode": -9[^0-9]' error.json
TORCHELASTIC_ERROR_FILE=$PWD/error.json run -n 2 sh -c 'kill -TERM $PPID; exec sleep 60'; expect 143 "asked to end, with a file of the parent's"
check "the signal is in it: $(cat error.json)" has 'asked to end by SIGTERM.*"errorCode": -15[^0-9]' error.json
TORCHELASTIC_ERROR_FILE=/no/such/dir/e run -n 2 sh -c 'exit 5'; expect 5 "a file that can't be written"
check "is told" has 'warning: TORCHELASTIC_ERROR_FILE=/no/such/dir/e: No such file' err
rm -f error.json; TORCHELASTIC_ERROR_FILE=$PWD/error.json run -n 2 true; check "none without a failure" test ! -e error.json
# Asked to end while the others still take their time: what had failed before is told all the same.
worker slow.sh <<'W'
#!/bin/bash
[ $RANK = 0 ] && { until [ -e ready ]; do read -r -t 0.05 <> <(:); done; exit 3; }
trap ': >asked' TERM; : >ready; while :; do read -r -t 0.1 <> <(:); done
W
"$LAUNCH" -n 2 ./slow.sh >out 2>err & P=$!
until_true test -e asked; kill -TERM $P; sleep 0.3; kill -TERM $P; wait $P; rc=$?; expect 143 "asked to end after a failure"
check "the failure is told: $(cat err)" has 'rank 0 of 2 failed first: it exited with code 3' err
check "and why there is no other attempt" has 'exit code 143; the job was asked to end' err

colours() { # VARIABLES...: what a terminal gets
    python3 - "$@" <<'P'
import os, pty, sys
for v in sys.argv[1:]: os.environ.__setitem__(*v.split('=', 1))
with open('tty', 'wb') as f:
    pty.spawn([os.environ['LAUNCH'], '-n', '2', 'sh', '-c', 'exit 5'],
              lambda fd: (lambda b: (f.write(b), b'')[1] or b' ')(os.read(fd, 4096)), lambda fd: b'')
P
}
colours TERM=xterm NO_COLOR= >/dev/null; check "colours on a terminal" has $'\x1b\\[1;31mlaunch: ' tty
colours TERM=xterm NO_COLOR=1 >/dev/null; check "unless not wanted" not has $'\x1b' tty
# What the driver wrote to the kernel's log while the worker ran.
gpus 1
: >machine/dev/kmsg
run --nproc-per-node=2 sh -c 'echo "4,1,99,-;NVRM: Xid (PCI:0000:10:00): 79, pid=1, name=x, GPU has fallen off the bus." >>machine/dev/kmsg; exit 5'
expect 5 "a worker whose GPU was lost"
check "the Xid is named: $(cat err)" has 'exited with code 5, after Xid 79 \(the GPU has fallen off the bus\) of GPU 0000:10:00' err
unset LAUNCH_SYSROOT
finish
