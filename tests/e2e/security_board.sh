#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 240
# A broken worker writes all over the board. The agent and the other workers' library stand it: the job ends with a clear failure,
# or goes on, nobody crashes, and no process is signalled because the board names it. SEEDS="1 2 3 ..." tries
# others, for TIME seconds each.
. "$SRC/tests/e2e/lib.sh"
command -v python3 >/dev/null || skip "needs python3"
[ -x "$BUILD/tests/fake/heal_job" ] || skip "heal_job was not built (no CUDA and NCCL headers)"
gpus 0
worker scribble.py <<'W'
#!/usr/bin/env python3
import mmap, os, random, signal, struct, sys, time
seed, canary, agent = map(int, sys.argv[1:])
rng = random.Random(seed)
board = mmap.mmap(int(os.environ["LAUNCH_BOARD_FD"]), 0)
front = len(board) - 4 * (1 << 20)  # head and slots; behind them the data of 4 ranks
word = {0: lambda: rng.getrandbits(32), 1: lambda: canary, 2: lambda: rng.choice([0, 1, 0xffffffff, 0x7fffffff, 1 << 31]),
        3: lambda: rng.randrange(9)}[seed % 4]
end = time.monotonic() + 5
while seed % 2 and not os.path.exists("pid.0") and time.monotonic() < end:
    time.sleep(0.01)  # the job runs
open("scribbling", "w").close()
end = time.monotonic() + float(os.environ["TIME"])
while time.monotonic() < end:
    at = rng.randrange(0, (front if rng.random() < 0.8 else len(board)) - 512, 4)
    n = rng.choice([1, 1, 2, 16, 128])
    board[at:at + 4 * n] = struct.pack("<%dI" % n, *[word() for _ in range(n)])
os.kill(agent, signal.SIGTERM)
W
# The job's own sums may overflow: data is not what is protected.
found() { grep -aE 'Sanitizer|runtime error|Assertion|stack smashing|corrupted' err | grep -v heal_job.c | grep -q .; }
# Rank 1 scribbles; a rank that ends by itself, or crashes, leaves its status behind.
worker rank.sh <<W
#!/bin/sh
[ "\$RANK" != 1 ] || python3 scribble.py "\$@" \$PPID >/dev/null 2>&1 &
"$BUILD/tests/fake/heal_job" 0
code=\$?; echo \$code >end.\$RANK; exit \$code
W
export TIME=${TIME:-0.3}
sleep $TAG & canary=$!
for seed in ${SEEDS:-1 2 3}; do
    for more in "" "--on-failure=heal --max-restarts=3 --standby=exec --heal-timeout=1"; do
        rm -f end.* pid.* scribbling
        # shellcheck disable=SC2086
        LIMIT=60 run -n 4 --timeout=30 --shutdown-timeout=0.5 --rendezvous-timeout=5 $more ./rank.sh $seed $canary
        what="seed $seed $more"
        check "$what: a clear end, not $rc" eval "case $rc in 124|125|0|1|9|13[0-9]|14[0-9]) [ $rc != 134 ] && [ $rc != 139 ] && [ $rc != 135 ] ;; *) false ;; esac"
        check "$what: somebody scribbled" test -e scribbling
        [ $rc = 143 ] || [ $rc = 0 ] || check "$what: it is told: $(cat err)" has '^launch: ' err
        check "$what: no sanitizer found anything: $(cat err)" not found
        check "$what: no rank crashed: $(grep -s . end.*)" not grep -qsxE '13[4569]|132' end.*
        check "$what: the process whose number stands in the board lives" kill -0 $canary
    done
done
# The one word that would end all of them with 0.
cat >lie.py <<'W'
import mmap, os, struct
board = mmap.mmap(int(os.environ["LAUNCH_BOARD_FD"]), 0)
board[76:80] = struct.pack("<I", 7)  # head's stop
W
worker rank.sh <<W
#!/bin/sh
[ "\$RANK" != 1 ] || { until [ -e pid.0 ]; do sleep 0.01; done; python3 lie.py; } &
exec "$BUILD/tests/fake/heal_job" 0
W
for more in "" "--on-failure=heal --max-restarts=1 --no-restart-on=125"; do
    rm -f pid.*
    # shellcheck disable=SC2086
    LIMIT=60 run -n 4 $more ./rank.sh; expect 125 "a stop that a worker has made up $more"
    check "it is told: $(cat err)" has 'rank [0-3] of 4 failed first: it ended with 0 because it was told to \(7\), but not by launch' err
done
finish
