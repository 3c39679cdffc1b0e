#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# AMD GPUs: the NCCL backend's sources with HIP's names, on fake HIP and RCCL libraries and described machines.
. "$SRC/tests/e2e/lib.sh"
fake=$BUILD/tests/fake/rccl sums=$BUILD/tests/fake/rccl/rank_sum
[ -e "$sums" ] || skip "no fakes"
export LD_LIBRARY_PATH=$fake FAKE_GPUS=4
gpus 4 AMD
summed() { # N "what": the right sum from every rank
    check "$2: $1 right sums: $(cat out)" test "$(grep -c "of $1: sum = $(($1 * ($1 - 1) / 2))\$" out)" = "$1"
}
run --nproc-per-node=gpu "$sums"; expect 0 "a rank per GPU"; summed 4 "a rank per GPU"
run --nproc-per-node=gpu --gpu-visibility=rank "$sums"; expect 0 "each sees its own"; summed 4 "each sees its own"
HIP_VISIBLE_DEVICES=3,1 run --nproc-per-node=gpu "$sums"; expect 0 "two of the four"; summed 2 "two of the four"
run --nproc-per-node=8 "$sums"; expect 1 "more ranks than GPUs"
check "names the option: $(cat err)" has '8 workers for 4 GPUs: start fewer, or with --share-gpus' err
run --nproc-per-node=8 --share-gpus "$sums"; expect 0 "--share-gpus"; summed 8 "--share-gpus"
check "no name of CUDA's or NCCL's library is in it" not has 'libnccl|libcudart' <(readelf -d "$sums")

FAKE_CUDA_FAIL=cudaSetDevice run --nproc-per-node=2 "$sums"; expect 1 "a call that fails"
check "is told by HIP's name: $(cat err)" has 'it said: hipSetDevice: unknown error' err
FAKE_NCCL_INIT_ERROR=1 run --nproc-per-node=4 "$sums"; expect 1 "an initialisation that fails"
check "the reason and the rank: $(cat err)" has 'rank 1 of 4 failed first' err
check "in RCCL's words: $(cat err)" has 'FAKE_NCCL_INIT_ERROR of rank 1' err
FAKE_NCCL_INIT_HANG=2 run --nproc-per-node=4 --rendezvous-timeout=1s "$sums"; expect 1 "an initialisation that hangs"
check "the deadline: $(cat err)" has 'communicator not set up after 1000 ms' err

export FAKE_LEAKS=1
for version in 22809 22105; do # with ncclCommRevoke() and without, as RCCL before that
    for wait in wait sync; do
        FAKE_NCCL_VERSION=$version HEAL_WAIT=$wait LIMIT=60 run --nproc-per-node=4 --max-restarts=1 --on-failure=heal "$fake/heal_job" 60 2=kill@30/1
        expect 0 "$version, $wait: a lost rank is replaced"
        check "$version, $wait: 4 ranks with the right total: $(cat out err)" test "$(grep -c 'of 4: step 60 total 18300 generation 2 ' out)" = 4
        check "$version, $wait: nothing is left: $(cat err)" not has '^(\[[^]]*\]: ?)?fake:' err
    done
done
unset FAKE_LEAKS

export LAUNCH_BENCH_JOB=$fake/launch-bench-rccl
run check; expect 0 "launch check"; check "all is right: $(cat out err)" has '^healthy: 4 ranks over RCCL' out
for collective in all_reduce alltoall; do # the second is made of sends
    run bench $collective -g 4 -b 1K -e 4K -f 2 -n 2 -d all; expect 0 "launch bench $collective"
    check "$collective: right values: $(cat out err)" has '^# Out of bounds values : 0 OK' out
done
check "no 8-bit floats, whose format differs: $(cat out)" not has ' f8e' out
run bench -g 2 -b 1K -e 1K -d f8e4m3; expect 2 "8-bit floats"; check "are refused: $(cat err)" has 'f8e4m3: not over RCCL' err
run bench -g 2 -b 1K -e 1K -J x.json; expect 0 "as JSON"; check "AMD's short UUIDs: $(cat x.json)" has '"GPU-000000005eed0001"' x.json
check "its backend" has '"backend": "rccl"' x.json
run check --json; expect 0 "launch check --json"; check "its backend, too: $(cat out)" has '"backend": "rccl"' out
FAKE_NCCL_HANG=always run check --timeout=200ms; expect 1 "a check that hangs"
check "is told of RCCL alone: $(cat out)" eval "has '^broken: .* over RCCL.*no way that RCCL has works' out && not has '(^|[^A-Z_])NCCL([^_]|$)' out"
FAKE_NCCL_HANG=always run topo --transports --timeout=200ms; expect 1 "transports that hang"
check "likewise: $(cat out err)" eval "has '^launch: --transports: RCCL hangs' err && not has '(^|[^A-Z_])NCCL([^_]|$)' out err"
run doctor --json
check "launch doctor, likewise: $(cat out)" eval "has 'RCCL.s variables and files' out && not has '(^|[^A-Z_])NCCL([^_A-Z]|$)' out"
unset LAUNCH_BENCH_JOB
# A launch that has no such job: its binary alone.
mkdir alone; cp "$LAUNCH" alone/launch; LAUNCH=$PWD/alone/launch
for command in check 'check --json' bench 'topo --transports'; do
    run $command; expect 2 "$command without RCCL"; check "$command: one line: $(cat out err)" test "$(cat out err | wc -l)" = 1
    check "$command: it says what is missing: $(cat err)" has "^launch: launch-bench-rccl, which measures RCCL \(launch was built without it\?\), is neither in $PWD/alone nor in" err
done
gpus 1; run check; expect 2 "without NCCL"; check "likewise: $(cat err)" has '^launch: launch-bench-nccl, which measures NCCL' err
finish
