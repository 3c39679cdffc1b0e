#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# Which failures are restarted, how often, after how long; the deadline of a whole job.
. "$SRC/tests/e2e/lib.sh"
worker fails.sh <<'W'
#!/bin/bash
date +%s%N >>starts; exit ${1:-4}
W
starts() { [ "$(wc -l <starts)" = "$1" ] || { echo "$(wc -l <starts) starts"; false; }; }
t() { rm -f starts; run "$@"; }
t -n 1 --max-restarts=5 ./fails.sh; expect 4 "five restarts"; check "six starts" starts 6
check "a growing pause" python3 - <<'P'
t = [int(x) / 1e9 for x in open('starts')]
gaps = [b - a for a, b in zip(t, t[1:])]
assert all(g >= want for g, want in zip(gaps, (0, .1, .2, .4, .8))), gaps
P
t -n 1 --max-restarts=5 ./fails.sh 93; expect 93 "a job may ask not to be restarted"; check "one start" starts 1
t -n 1 --max-restarts=2 --restart-on=93 ./fails.sh 93; expect 93 "unless told"; check "three starts" starts 3
t -n 1 --max-restarts=5 --restart-on=1,7-9,SIGSEGV ./fails.sh 4; expect 4 "not listed"; check "one start" starts 1
t -n 1 --max-restarts=1 --restart-on=1,3-5 ./fails.sh 4; expect 4 "listed"; check "two starts" starts 2
t -n 1 --max-restarts=5 --restart-limits=startup:1 ./fails.sh; expect 4 "start-up crashes"; check "two starts" starts 2
check "and why" has 'no restarts are left for start-up crashes' err
t -n 1 --max-restarts=5 --restart-limits=same:2 ./fails.sh; expect 4 "same again"; check "three starts" starts 3

# With a window restarts are forgotten: rank 0 fails once in a window until the third time.
worker window.sh <<'W'
#!/bin/bash
echo >>starts; [ $TORCHELASTIC_RESTART_COUNT = 3 ] && exit 0
from=$(date +%s%N); until [ $(($(date +%s%N) - from)) -gt 400000000 ]; do read -r -t 0.05 <> <(:); done
exit $((4 + TORCHELASTIC_RESTART_COUNT))
W
t -n 1 --max-restarts=1 --restart-window=300ms ./window.sh; expect 0 "old restarts do not count"; check "four starts" starts 4
t -n 1 --max-restarts=1 --restart-window=1h ./window.sh; expect 5 "young ones do"; check "two starts" starts 2

t -n 2 --timeout=300ms sleep $TAG; expect 124 "the job's deadline"; check "none left" running 0
check "is told" has 'sleep: it had not ended after 0.3 s \(--timeout\)' err
t -n 1 --timeout=500ms --max-restarts=1000 ./fails.sh; expect 124 "restarts included"
check "is told" has "the job's time is over" err
t -n 2 --timeout=60s true; expect 0 "in time"
t -n 2 --timeout=300ms --shutdown-timeout=300ms sh -c "trap '' TERM; exec sleep $TAG"; expect 124 "a deaf job"; check "none left" running 0
run -n 1 --restart-on=1 --min-workers=2 true; expect 0 "settings without effect are no error"
check "each is told with what is missing: $(cat err)" cmp -s err <(printf 'launch: warning: --%s has no effect without --%s\n' min-workers on-failure=shrink restart-on max-restarts=N)
for bad in restart-limits=x:1 restart-on=0 no-restart-on=999 restart-window=-1 timeout=x signals-to-handle=FOO \
    forward-signals=KILL signals-to-handle=none restart-refill=2; do
    t -n 2 "--$bad" ./fails.sh; expect 2 "$bad"; check "$bad: one line" test "$(wc -l <err)" = 1; check "$bad: named" has "^launch: --${bad%=*}: must be" err
    check "$bad: nothing started" test ! -e starts
done
PET_SIGNALS_TO_HANDLE=FOO t -n 2 ./fails.sh; expect 2 "PET_SIGNALS_TO_HANDLE"
t -n 2 --signals-to-handle=TERM --forward-signals=TERM ./fails.sh; expect 2 "one signal in both lists"
finish
