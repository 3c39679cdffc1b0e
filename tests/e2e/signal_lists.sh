#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 180
# Which signals end the job and which pass; signals at any moment of the start.
. "$SRC/tests/e2e/lib.sh"
start() { env --default-signal=INT,HUP,QUIT,TERM,USR1 "$LAUNCH" "$@" >out 2>err </dev/null & pid=$!; }
stop() { kill -"$1" $pid; wait $pid; rc=$?; }
worker w.sh <<'W'
#!/bin/bash
for s in HUP USR1 RTMIN+1; do trap "echo $s >>got.$RANK; exit 0" $s; done
echo $TORCHELASTIC_SIGNALS_TO_HANDLE >up.$RANK; while :; do read -r -t 0.05 <> <(:); done
W
up() { until_true test -s up.0 -a -s up.1 || fail start; }
fresh() { rm -f up.* got.*; start "$@" ./w.sh; up; }
fresh -n 2 --forward-signals=HUP; stop HUP; expect 0 "a signal that is passed on"; check "by both" test -s got.0 -a -s got.1
fresh -n 2 --forward-signals=RTMIN+1; stop RTMIN+1; expect 0 "a real-time signal"; check "by both" test -s got.0 -a -s got.1
fresh -n 2 --signals-to-handle=USR1,TERM; check "the workers are told" has '^SIGUSR1,SIGTERM$' up.0
stop USR1; expect 138 "a signal that ends the job"; check "the workers got it" test -s got.0 -a -s got.1
fresh -n 2 --forward-signals=none; kill -USR1 $pid; kill -TERM $pid; wait $pid; rc=$?
expect 143 "a signal of no list changes nothing"; check "none got it" not test -e got.0 -o -e got.1

# From a loop of signals that begins with the process: it ends at once, whatever it was doing, and leaves nothing.
for sig in TERM:143 INT:130; do
    for i in {1..40}; do
        start -n 4 --shutdown-timeout=20 sleep $TAG
        while kill -${sig%:*} $pid 2>/dev/null; do :; done
        wait $pid; rc=$?; expect ${sig#*:} "${sig%:*} in a loop from the start, $i"
    done
    check "${sig%:*}: nothing is left" running 0
done
# Ctrl-C of a terminal, once, a little later each time: never lost.
check "one Ctrl-C at any moment" python3 - "$TAG" <<'P'
import os, pty, select, sys, time
bad = 0
for i in range(150):
    pid, fd = pty.fork()
    if pid == 0:
        os.execvp('sh', ['sh', '-c', 'echo; exec "$LAUNCH" -n 2 sleep ' + sys.argv[1]])
    os.read(fd, 1) # from here on it is in the foreground
    until = time.monotonic() + i * 0.0001
    while time.monotonic() < until: pass
    os.write(fd, b'\x03')
    end = time.monotonic() + 10
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done or time.monotonic() > end: break
        select.select([fd], [], [], 0.01)
        if select.select([fd], [], [], 0)[0]:
            try: os.read(fd, 4096)
            except OSError: pass
    if not done:
        os.kill(pid, 9); os.waitpid(pid, 0); bad += 1; print(f'lost after {i * 0.1:.1f} ms')
    elif os.waitstatus_to_exitcode(status) not in (130, -2):
        bad += 1; print('status', status)
    os.close(fd)
sys.exit(bad != 0)
P
check "nothing is left" running 0
# The narrowest moment, made certain: it is pending when the launcher begins, before there is an agent to hear of it.
check "one Ctrl-C from before the agent was born" timeout 20 python3 - "$TAG" <<'P'
import os, pty, signal, sys
pid, fd = pty.fork()
if pid == 0:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    os.write(1, b'r')
    while signal.SIGINT not in signal.sigpending(): pass
    os.execv(os.environ['LAUNCH'], ['launch', '-n', '2', '--shutdown-timeout=300ms', 'sleep', sys.argv[1]])
os.read(fd, 1)
os.write(fd, b'\x03')
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) in (130, -2)
P
finish
