#!/bin/bash
# SPDX-License-Identifier: MIT
# As PID 1 of a container: obeys SIGTERM, reaps what it adopts.
. "$SRC/tests/e2e/lib.sh"
unshare -Urpf --mount-proc true 2>/dev/null || skip "no user and PID namespaces here"
worker p.sh <<'W'
#!/bin/bash
if [ $RANK = 0 ]; then
    for i in $(seq 20); do (true &); done
    until [ "$(cat /proc/[0-9]*/status 2>/dev/null | grep -c '^State:.Z')" = 0 ]; do :; done; echo clean >z
fi
exec sleep infinity
W
timeout -k 2 40 unshare -Urpf --mount-proc "$LAUNCH" --nproc-per-node=2 --shutdown-timeout=2 ./p.sh >out 2>err </dev/null & pid=$!
until_true test -s z || fail "adopted zombies are reaped"
init=$(pgrep -P "$(pgrep -P $pid | head -1)" | head -1)
kill -TERM "$init"; wait $pid; rc=$?
expect 143 "SIGTERM as PID 1"
finish
