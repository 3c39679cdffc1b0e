#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 300
# Training ends with the same bits after many kills; one job heals again and again and does not grow.
. "$SRC/tests/e2e/lib.sh"
gpus 0
steps=20000 kills=20 growth=512
sanitized && steps=6000 kills=8 growth=100000 # what is freed is kept for a while
"$SRC/examples/train/survive.sh" "$LAUNCH" "$BUILD/examples/train" $kills $steps >out 2>&1; rc=$?
expect 0 "training with $kills kills: $(cat out)"
check "both end with the same bits" test "$(grep -oE "step $steps: .*" out | sort -u | wc -l)" = 1
command -v python3 >/dev/null || skip "no python3"
python3 "$SRC/tests/torture/heal.py" -n 40 --growth $growth "$LAUNCH" "$BUILD/tests/fake/heal_job" >out 2>&1; rc=$?
expect 0 "40 heals of one job: $(cat out)"
finish
