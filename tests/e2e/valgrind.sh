#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 300
# Under valgrind: no errors, nothing lost, no descriptor left open, in runs, restarts, heals, a session of the control socket
# and commands. That nothing grows with restarts and heals, tests/torture/{heal,soak}.py look at.
. "$SRC/tests/e2e/lib.sh"
command -v valgrind >/dev/null || skip "no valgrind"
sanitized && skip "sanitizers look by themselves"
python3 -c 'import os, signal, socket; os.pidfd_open, signal.pidfd_send_signal, socket.send_fds' 2>/dev/null || skip "Python is older than 3.9"
gpus 0; mkdir -p machine/dev/shm machine/tmp; unset XDG_RUNTIME_DIR

# For as long as this shell lives, whose end of the pipe is its standard input.
mkfifo life
python3 "$SRC/tests/fake/pidfd_broker.py" broker <life & exec 9>life
until_true test -S broker || fail "the broker of pidfds serves"
under() {
    local name=$1; shift
    PIDFD_BROKER=$PWD/broker LD_PRELOAD=$BUILD/tests/fake/libpidfd.so \
        timeout -k 5 200 valgrind --log-file="$name.%p.log" --leak-check=full --errors-for-leak-kinds=definite \
        --show-leak-kinds=definite --track-fds=yes --suppressions="$SRC/tests/e2e/valgrind.supp" \
        "$LAUNCH" "$@" >"$name.out" 2>"$name.err" </dev/null 9>&-
    rc=$?
}
wrong='Invalid|uninit|Mismatch|overlap|unaddressable|definitely lost in|ERROR SUMMARY: [1-9]'
opened() { grep -A1 'Open file descriptor' "$1" | grep -q ' at '; } # what was not inherited
# clean NAME: no process of it did wrong, and those that are not the agent of a job have closed what they had opened
clean() {
    local log
    check "$1: no error: $(grep -hE -A12 "$wrong" "$1".*.log)" not has "$wrong" "$1".*.log
    check "$1: valgrind was there" has 'ERROR SUMMARY: 0 errors' "$1".*.log
    for log in "$1".*.log; do
        has 'by .*: guard_run' "$log" || check "$1: all descriptors are closed: $(cat "$log")" not opened "$log"
    done
}

under plain -n 2 sh -c 'echo "$RANK"; echo >&2'; expect 0 "a run"; clean plain
under restart -n 2 --max-restarts=3 sh -c '[ "$TORCHELASTIC_RESTART_COUNT" = 3 ] || exit 3'
expect 0 "restarts"; clean restart
under heal -n 3 --max-restarts=5 --on-failure=heal "$BUILD/tests/fake/heal_job" 100 1=kill@50/1 2=kill@60/2 0=kill@70/3
expect 0 "heals"; clean heal

# A job that is asked, and steered.
under job -n 2 --run-id=asked --log-dir=logs sh -c 'echo here; exec sleep '"$TAG" & job=$!
until_true running 2 || fail "the workers run"
for words in ps 'status asked' 'logs asked' 'restart asked --rank=1' 'stop asked'; do
    name=${words// /_}; under "$name" $words; expect 0 "$words"; clean "$name"
done
wait $job; clean job

for words in topo --help '-n 2 no-such-program'; do name=of_${words// /_}; under "$name" $words; clean "$name"; done
exec 9>&-
finish
