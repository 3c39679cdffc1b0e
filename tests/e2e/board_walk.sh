#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 240
# A board with one wrong word, whichever it is and whatever stands there: neither the agent nor liblaunch crashes, waits for ever, or
# believes it (what must hold is in tests/fuzz/board_*.c).
. "$SRC/tests/e2e/lib.sh"
command -v python3 >/dev/null || skip "needs python3"
for side in agent worker; do
    python3 "$SRC/tests/fuzz/board_walk.py" $side 2>err | "$BUILD/tests/fuzz/board_$side" - >out 2>&1 ||
        fail "board_$side: $(head -5 out; tail -1 out; tail -1 err)"
    check "board_$side: the whole board: $(cat out)" has '^[0-9]{4,} inputs' out
done
finish
