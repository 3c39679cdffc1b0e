#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# The examples' NCCL side under the launcher, on fake CUDA and NCCL libraries and described machines.
. "$SRC/tests/e2e/lib.sh"
fake=$BUILD/tests/fake sums=$BUILD/tests/fake/rank_sum
export LD_LIBRARY_PATH=$fake NCCL_DEBUG=WARN
machine() { gpus "$1"; export FAKE_GPUS=$1; } # N
summed() { # N "what": the right sum from every rank
    check "$2: $1 right sums: $(cat out)" test "$(grep -c "of $1: sum = $(($1 * ($1 - 1) / 2))\$" out)" = "$1"
}
machine 4
run --nproc-per-node=gpu "$sums"; expect 0 "a rank per GPU"; summed 4 "a rank per GPU"
run --nproc-per-node=3 "$sums"; expect 0 "fewer ranks than GPUs"; summed 3 "fewer ranks than GPUs"
run --nproc-per-node=gpu --gpu-visibility=rank "$sums"; expect 0 "each sees its own"; summed 4 "each sees its own"
CUDA_VISIBLE_DEVICES=3,1 run --nproc-per-node=gpu "$sums"; expect 0 "two of the four"; summed 2 "two of the four"
run --nproc-per-node=gpu "$fake/allreduce" 1M 3; expect 0 "allreduce"
check "on the device, nothing wrong: $(cat out)" has '^4 ranks, 1048576 bytes, device: .* wrong 0$' out
# Examples that were linked with the real libraries take these instead: DT_RUNPATH, not DT_RPATH.
if has libnccl <(readelf -d "$BUILD/examples/rank_sum") && [ -e "$fake/$(readelf -d "$BUILD/examples/rank_sum" | grep -o 'libcudart[^]]*')" ]; then
    run --nproc-per-node=gpu "$BUILD/examples/rank_sum"; expect 0 "the installed build"; summed 4 "the installed build"
    run --nproc-per-node=gpu "$BUILD/examples/rank_sum.so"; expect 0 "and its .so"; summed 4 "and its .so"
fi
machine 0
run --nproc-per-node=3 "$sums"; expect 0 "no GPU: the host"; summed 3 "no GPU: the host"
machine 1
run --nproc-per-node=8 "$sums"; expect 1 "eight ranks on one GPU"
check "names the option: $(cat err)" has '8 workers for 1 GPU: start fewer, or with --share-gpus' err
check "no sum" test ! -s out
run --nproc-per-node=8 --share-gpus "$sums"; expect 0 "--share-gpus"; summed 8 "--share-gpus"
FAKE_NCCL_VERSION=23003 run --nproc-per-node=8 --share-gpus "$sums"; expect 0 "an NCCL that can share"; summed 8 "an NCCL that can share"
machine 2
run --nproc-per-node=5 --share-gpus "$sums"; expect 0 "five on two"; summed 5 "five on two"
NCCL_HOSTID=one run --nproc-per-node=4 --share-gpus "$sums"; expect 1 "a user's own NCCL_HOSTID stays"
check "NCCL's reason is told: $(cat err)" has 'Duplicate GPU detected' err
check "with the option: $(cat err)" has 'share-gpus' err

machine 4
FAKE_NCCL_INIT_HANG=2 run --nproc-per-node=4 --rendezvous-timeout=1s "$sums"; expect 1 "an initialisation that hangs"
check "the deadline: $(cat err)" has 'communicator not set up after 1000 ms' err
FAKE_NCCL_INIT_ERROR=1 run --nproc-per-node=4 --rendezvous-timeout=60s "$sums"; expect 1 "an initialisation that fails"
check "NCCL's reason and the rank: $(cat err)" has 'FAKE_NCCL_INIT_ERROR of rank 1' err
check "rank 1 is blamed: $(cat err)" has 'rank 1 of 4 failed first' err
FAKE_NCCL_ASYNC_ERROR=3@1 run --nproc-per-node=4 "$sums"; expect 1 "an asynchronous error"
check "NCCL's reason: $(cat err)" has 'FAKE_NCCL_ASYNC_ERROR of rank 3' err; check "no sum" not has 'rank 3 of' out
check "rank 3 is blamed: $(cat err)" has 'rank 3 of 4 failed first' err
FAKE_CUDA_FAIL=cudaMalloc run --nproc-per-node=2 "$sums"; expect 1 "device memory that is full"; check "is told: $(cat err)" has 'cudaMalloc' err
FAKE_GPUS=2 run --nproc-per-node=4 "$sums"; expect 1 "a GPU that CUDA does not show"; check "is told: $(cat err)" has 'cudaSetDevice' err
# Stuck in a collective that by itself would never end.
FAKE_CUDA_HANG=1 timeout 40 "$LAUNCH" --nproc-per-node=4 "$sums" >out 2>err </dev/null & pid=$!
workers() { pgrep -f "^$sums\$"; }
all_four() { [ "$(workers | wc -l)" = 4 ]; }
until_true all_four || fail "four workers"
kill -9 "$(workers | head -1)"; wait $pid; rc=$?
expect 137 "a killed rank ends the others"; check "none is left" test -z "$(workers)"
run --nproc-per-node=4 "$sums"; expect 0 "afterwards all is well"
finish
