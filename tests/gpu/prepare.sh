#!/bin/bash
# SPDX-License-Identifier: MIT
# Builds ahead, on a machine with or without a GPU, all that the scripts beside it run, so that none does while a GPU waits: build/,
# and nccl-tests in NCCL_TESTS, with and without MPI (for compute capability 9.0 where no GPU tells another).
#
#     NCCL_TESTS=DIR tests/gpu/prepare.sh [BUILD]
BUDGET=${BUDGET:-3600}
. "$(dirname "$0")/lib.sh"
. tests/gpu/bench_lib.sh
make all "$build"/tests/gpu/{heal,fault,nvml_count.so} "$build"/tests/bench/{stopwatch,floor,collective,heal,lines,killwatch,board_id,deathwatch} || exit 2
section nccl_tests 1 3600 build_nccl_tests
finish
