#!/bin/sh
# SPDX-License-Identifier: MIT
# Stands for a training run: tells where it is, and what it was given.
echo "rank $RANK of $WORLD_SIZE, steps $2, GPUs $CUDA_VISIBLE_DEVICES"
