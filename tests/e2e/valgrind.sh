#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 300
# Under valgrind: no errors, nothing lost, no descriptor left open, in runs, restarts, heals, a session of the control socket
# and commands. What an agent has at its end does not depend on how often it started its workers anew.
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
# left NAME: blocks and descriptors that its agent had at its end (others come and go: a child that could not execute yet, a helper)
left() { sed -nE 's/.*(in use at exit|FILE DESCRIPTORS): (.* in )?([0-9]+) (blocks|open).*/\3 \4/p' $(grep -l 'by .*: guard_run' "$1".*.log) | sort; }
# same ONE THREE: they end alike. Once more if they do not: what was under way at the end is no growth.
same() {
    check "$1 tells of its agent" test -n "$(left "$1")"
    [ "$(left "$1")" = "$(left "$2")" ] || { rm -f "$1".*.log "$2".*.log; "${1%1}" 1; "${1%1}" 3; }
    check "$1 and $2 end with the same: $(left "$1") / $(left "$2")" test "$(left "$1")" = "$(left "$2")"
}

under plain -n 2 sh -c 'echo "$RANK"; echo >&2'; expect 0 "a run"; clean plain
restart() {
    under "restart$1" -n 2 --max-restarts="$1" sh -c '[ "$TORCHELASTIC_RESTART_COUNT" = '"$1"' ] || exit 3'
    expect 0 "restarts: $1"; clean "restart$1"
}
restart 1; restart 3; same restart1 restart3
kills=([1]='1=kill@50/1' [3]='1=kill@50/1 2=kill@60/2 0=kill@70/3')
heal() {
    under "heal$1" -n 3 --max-restarts=5 --on-failure=heal "$BUILD/tests/fake/heal_job" 100 ${kills[$1]}
    expect 0 "heals: $1"; clean "heal$1"
}
heal 1; heal 3; same heal1 heal3

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
