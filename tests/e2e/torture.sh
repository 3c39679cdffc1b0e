#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 240
# A short run of tests/torture: random jobs, to which random things are done at random instants. `make torture` is longer.
. "$SRC/tests/e2e/lib.sh"
command -v python3 >/dev/null || skip "no python3"
python3 -c 'import os, sys; sys.exit(not hasattr(os, "pidfd_open"))' || skip "no os.pidfd_open (Python 3.9)"
# The seeds fix what is done; the instants are another machine's each time.
sanitized && calm="--failing 0" # they come before what is preloaded
torture() { check "nothing is left ($*): $(python3 "$SRC/tests/torture/torture.py" "$@" ${calm-} "$LAUNCH" >log 2>&1; cat log)" has ': 0 with something left' log; }
torture -n 20 -s 3
torture -n 4 -s 4 --kinds late,leaver,fail,heal
finish
