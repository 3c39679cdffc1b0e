#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# An out-of-memory kill is named, with proof; no other SIGKILL is taken for one.
. "$SRC/tests/e2e/lib.sh"
sanitized && skip "needs the plain build"
worker k.sh <<'W'
#!/bin/sh
[ $RANK = 1 ] && kill -KILL $$; exec sleep 60
W
run --nproc-per-node=2 ./k.sh; expect 137 "a rank that kills itself"
check "SIGKILL is named" has 'rank 1 of 2 failed first: it was killed by SIGKILL' err
check "no out-of-memory kill is told" not has 'out-of-memory killer' err

# A memory cgroup of our own, v2 or v1, or there is nothing to test with.
memory_group
[ "$failures" = 0 ] && [ -z "$group" ] && skip "no rights on a memory cgroup: only the SIGKILL part was tested"
[ -e $group/memory.swap.max ] && echo 0 >$group/memory.swap.max
trap 'until_true rmdir $group' EXIT
worker inside.sh <<W
#!/bin/sh
echo \$\$ >$group/cgroup.procs; exec "$LAUNCH" "\$@"
W
worker eat.sh <<'W'
#!/bin/bash
# doubles a string in rank 1, in a child if told so
[ $RANK = 1 ] || exec sleep 60
eat() { local x=0123456789abcdef; while :; do x=$x$x; done; }
[ "$1" = child ] && { (eat) ; exit 9; }
eat
W
real=$LAUNCH; LAUNCH=./inside.sh
LIMIT=60 run --nproc-per-node=2 --shutdown-timeout=2 ./eat.sh; expect 137 "a rank that was killed for its memory"
check "it is named, with proof: $(cat err)" has "rank 1 of 2 failed first: it was killed by the kernel's out-of-memory killer, with SIGKILL \(oom_kill of .* went from [0-9]+ to [0-9]+\)" err
LIMIT=60 run --nproc-per-node=2 --shutdown-timeout=2 ./eat.sh child; expect 9 "a rank whose child was killed for its memory"
check "it is told too: $(cat err)" has "exited with code 9, after the kernel's out-of-memory killer had ended a process" err
if command -v python3 >/dev/null; then # one that joined: its death is known early, the proof comes with its end
    cat >eat.py <<P
import ctypes, os, time
lib, l = ctypes.CDLL("$BUILD/liblaunch.so"), ctypes.c_void_p()
assert lib.launch_join(ctypes.byref(l), 0) == 0
held = []
while os.environ["RANK"] == "1": held.append(bytearray(1 << 20))
time.sleep(60)
P
    LIMIT=60 run --nproc-per-node=2 --shutdown-timeout=2 python3 eat.py; expect 137 "a joined rank that was killed for its memory"
    check "it is named: $(cat err)" has "rank 1 of 2 failed first: it was killed by the kernel's out-of-memory killer" err
fi
run --nproc-per-node=2 --shutdown-timeout=2 ./k.sh; expect 137 "a kill after that"
check "the old kills are not counted" not has 'out-of-memory killer' err
LAUNCH=$real
finish
