#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# Started by careless parents, read by nobody, wrapped in shells: the promises hold all the same.
. "$SRC/tests/e2e/lib.sh"

# A parent that ignores SIGCHLD, which exec hands on.
timeout 20 python3 -c 'import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])' \
    "$LAUNCH" --nproc-per-node=2 sh -c 'exit 4' 2>err
check "SIGCHLD ignored by the parent: exit 4" test $? = 4

# A stderr and stdout that are open and never read.
mkfifo never; sleep $TAG <never & reader=$!
"$LAUNCH" --nproc-per-node=2 --shutdown-timeout=1 yes </dev/null >never 2>&1 & pid=$!
writes() { local agent; agent=$(pgrep -P $pid | head -1); [ -n "$agent" ] && pgrep -P "$agent" -x yes >/dev/null; }
until_true writes || fail "yes runs"
kill -TERM $pid; (wait_for() { until_true not kill -0 $pid 2>/dev/null; }; wait_for) || { fail "a stderr nobody reads holds up the end"; kill -9 $pid; }
wait $pid; rc=$?; expect 143 "SIGTERM with a stuck reader"; kill $reader

# A program behind a shell, which dies of SIGTERM at once: the program still has its time to save.
cat >save.py <<'P'
import os, signal, sys, time
def save(*_):
    time.sleep(.5); open("saved." + os.environ["RANK"], "w").write("all of it"); sys.exit(0)
signal.signal(signal.SIGTERM, save); open("up." + os.environ["RANK"], "w").write("x")
while True: time.sleep(60)
P
worker wrap.sh <<'W'
#!/bin/bash
python3 save.py; true
W
"$LAUNCH" --nproc-per-node=2 --shutdown-timeout=20 ./wrap.sh 2>err </dev/null & pid=$!
until_true test -s up.0 -a -s up.1; kill -TERM $pid; wait $pid; rc=$?
expect 143 "a wrapped program"; check "both have saved" test -s saved.0 -a -s saved.1

# Leftovers that fork faster than they are killed one by one.
cat >pool.c <<'C'
#include <signal.h>
#include <unistd.h>
int main(void)
{
    signal(SIGTERM, SIG_IGN);
    if (fork() > 0) return 3;
    setsid();
    signal(SIGCHLD, SIG_IGN);
    for (int i = 0;; i++) {
        if (fork() == 0) { pause(); _exit(0); }
        if (i >= 30) pause();
    }
}
C
if command -v cc >/dev/null && cc -o pool pool.c; then
    run --nproc-per-node=1 --shutdown-timeout=200ms --max-restarts=1 ./pool; expect 3 "a pool that ignores SIGTERM"
    check "it was restarted once, and both failures told" test "$(grep -c 'failed first' err)" = 2
    check "nothing of it is left" not pgrep -f "^./pool"
fi

# Children that were there before us are not ours.
sh -c "sleep $TAG & exec \"$LAUNCH\" --nproc-per-node=2 true"
check "a process that exec handed us lives on" running 1; reap

# One worker and a reader that leaves.
"$LAUNCH" --max-restarts=2 yes 2>err | head -1 >out; rc=${PIPESTATUS[0]}
check "one worker whose reader leaves: 141, got $rc" test "$rc" = 141
check "one line says why, and nothing is restarted: $(cat err)" test "$(wc -l <err)" = 1
# The board is no file: a container's /dev/shm may be full.
NS="unshare -m"; [ "$(id -u)" = 0 ] || NS="unshare -Urm"
if $NS true 2>/dev/null; then
    cat >full.sh <<'W'
mount -t tmpfs -o size=8k none /dev/shm && head -c 8192 /dev/zero >/dev/shm/full && exec "$@"
W
    timeout 30 $NS sh full.sh "$LAUNCH" --nproc-per-node=2 "$BUILD/examples/rank_sum" >out 2>err </dev/null; rc=$?
    expect 0 "a full /dev/shm"; check "all ranks met: $(cat out)" test "$(grep -c 'of 2: sum = 1' out)" = 2
fi
finish
