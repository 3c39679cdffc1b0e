#!/bin/sh
# SPDX-License-Identifier: MIT
# Stands for an evaluation whose first attempt fails: its job is started again, and the other goes on.
[ "$TORCHELASTIC_RESTART_COUNT" != 0 ] || exit 1
echo "rank $RANK of $WORLD_SIZE, attempt $TORCHELASTIC_RESTART_COUNT, GPUs $CUDA_VISIBLE_DEVICES"
