#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# A short run of tests/torture: random processes of random jobs are killed at random instants. `make torture` is longer.
. "$SRC/tests/e2e/lib.sh"
command -v python3 >/dev/null || skip "no python3"
python3 -c 'import os, sys; sys.exit(not hasattr(os, "pidfd_open"))' || skip "no os.pidfd_open (Python 3.9)"
check "nothing is left: $(python3 "$SRC/tests/torture/torture.py" -n 25 "$LAUNCH" >log 2>&1; cat log)" has ': 0 with something left' log
finish
