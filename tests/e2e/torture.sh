#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# A short run of tests/torture: random jobs, to which random things are done at random instants. `make torture` is longer.
. "$SRC/tests/e2e/lib.sh"
command -v python3 >/dev/null || skip "no python3"
python3 -c 'import os, sys; sys.exit(not hasattr(os, "pidfd_open"))' || skip "no os.pidfd_open (Python 3.9)"
# Kills at instants that no seed fixes, as the machine is another one each time; and each kind of worker once, with one seed.
torture() { check "nothing is left ($*): $(python3 "$SRC/tests/torture/torture.py" "$@" "$LAUNCH" >log 2>&1; cat log)" has ': 0 with something left' log; }
torture -n 30 -s 3
torture -n 4 -s 4 --kinds late,leaver,fail,heal
finish
