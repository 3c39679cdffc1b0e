#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# A short run of tests/torture/leases.py: jobs of random sizes race for GPUs, and some are killed. `make torture` is longer.
. "$SRC/tests/e2e/lib.sh"
command -v flock >/dev/null || skip "no flock(1)"
unset LAUNCH_SYSROOT CUDA_VISIBLE_DEVICES
check "no GPU is held twice, nobody starves: $(python3 "$SRC/tests/torture/leases.py" -n 15 "$LAUNCH" >log 2>&1; cat log)" has ': 0 wrong' log
# The check itself: a launcher that gives everybody the same GPUs is found out.
worker broken <<'W'
#!/bin/bash
while [[ $1 == --* ]]; do shift; done
CUDA_VISIBLE_DEVICES=0,1 NAP=0.2 exec "$@"
W
python3 "$SRC/tests/torture/leases.py" -n 1 ./broken >log 2>&1; check "a GPU held twice is seen: $(cat log)" has "somebody else's, too" log
finish
