#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 300
# The job behind `launch bench` and `launch check`: its records, its values and what it refuses, over host memory and over the
# fake NCCL.
. "$SRC/tests/e2e/lib.sh"
host=$BUILD/launch-bench nccl=$BUILD/tests/fake/launch-bench-nccl
short="-b 64 -e 2048 -f 32 -n 2 -w 1 -c 1 -r 1"
export LD_LIBRARY_PATH=$BUILD/tests/fake
machine() { gpus "$1"; export FAKE_GPUS=$1; } # N

# records EXPRESSION: over all of ./out, in Python: R results, W those with a wrong half, D devices, N notes, P pairs, H head, E end
cat >records.py <<'W'
import json, sys
kinds = {}
for line in open("out"):
    record = json.loads(line)
    assert len(record) == 1, line
    for kind, value in record.items():
        kinds.setdefault(kind, []).append(value)
halves = lambda r: (r["out_of_place"], r["in_place"])
R, D, N, P = (kinds.get(k, []) for k in ("result", "device", "note", "pair"))
W = [r for r in R if any(h["nwrong"] for h in halves(r))]
H, E = kinds.get("bench", [{}])[0], kinds.get("end", [{}])[0]
assert all(h["time"] > 0 and h["checked"] == (h["nwrong"] is not None) for r in R for h in halves(r))
sys.exit(not eval(sys.argv[1]))
W
records() { python3 -SE records.py "$1"; }
right() { # COUNT "what": the run ended well with so many results, all right
    expect 0 "$2"
    check "$2: $1 results, all right: $(cat out)" records "len(R) == $1 and not W and E == {'wrong': 0, 'timeout': False}"
}
refused() { # "what" PATTERN: one line, exit 2, nothing measured
    expect 2 "$1"; check "$1: $(cat err)" has "^launch-bench: $2\$" err; check "$1: no record" test ! -s out
}

machine 0
run -n 3 "$host" all_reduce $short -d all -o all; right 32 "host: 4 types, 4 operations, 2 sizes"
check "a head, three devices: $(cat out)" records "H['backend'] == 'host' and H['ranks'] == 3 and H['step_factor'] == 32 and \
[d['rank'] for d in D] == [0, 1, 2] and all(d['device'] == -1 for d in D) and H['library'] == 0"
run -n 3 "$host" all_gather $short -d int64; right 2 "host: all_gather"
check "shares of 16 bytes: $(cat out)" records "[(r['size'], r['count'], r['redop']) for r in R] == [(48, 2, 'none'), (2016, 84, 'none')]"
run -n 3 "$host" broadcast $short -r all; right 6 "host: broadcast from each"
check "each root: $(cat out)" records "[r['root'] for r in R] == [0, 0, 1, 1, 2, 2]"
run -n 2 "$host" all_reduce -b 0 -e 300000 -i 100000 -n 2 -w 1 -c 2; right 4 "host: from 0 bytes by steps, checked twice"
run "$host" all_reduce $short; right 2 "host: one rank"
run -n 2 "$host" all_reduce $short -c 0; expect 0 "unchecked"
check "says so: $(cat out)" records "all(h['nwrong'] is None and h['checked'] == 0 for r in R for h in halves(r))"
memory_group
if [ -n "$group" ]; then # of 96 MiB: half, for two ranks with three buffers each
    (echo $BASHPID >$group/cgroup.procs && exec "$LAUNCH" -n 2 "$host" all_reduce -b 64 -e 1073741824 -f 16777216 -n 1 -w 0 -c 1) >out 2>err
    rc=$?; expect 0 "a cgroup with little memory"
    check "sizes end where its memory does, and that is said: $(cat out)" records "N == ['Reducing maxBytes to 8388608 due to memory limitation']"
    until_true rmdir $group 2>/dev/null
fi
LAUNCH_BENCH_FAULT=1:70000 run -n 2 "$host" all_reduce -b 400000 -e 400000 -n 2 -w 1 -c 1; expect 0 "a wrong element"
check "is found, both times: $(cat out)" records "[h['nwrong'] for h in halves(R[0])] == [1, 1] and E['wrong'] == 2"
run -n 3 "$host" check; expect 0 "check"
check "all say the sum: $(cat out)" test "$(sort out | tr '\n' ,)" = "rank 0 of 3: sum = 3,rank 1 of 3: sum = 3,rank 2 of 3: sum = 3,"
LAUNCH_BENCH_FAULT=2:0 run -n 3 "$host" check; expect 1 "check with a wrong sum"
check "is told: $(cat err)" has 'rank 2 of 3 failed first' err; check "why: $(cat err)" has 'the sum of all ranks is 2, not 3' err
for collective in reduce reduce_scatter alltoall gather scatter sendrecv; do
    run -n 2 "$host" $collective; refused "$collective on the host" "$collective: not over host memory"
done
run -n 2 "$host" all_reduce -d half; refused "half on the host" 'half: not over host memory'
run -n 2 "$host" all_reduce -o avg; refused "avg on the host" 'avg: not over host memory'
run -n 2 "$host" all_reduce --pairs; refused "pairs on the host" '--pairs: not over host memory'
run -n 2 "$host" broadcast -r 2; refused "a root that is not there" 'root 2: there are 2 ranks, 0 to 1'
run -n 2 "$host" all_reduce -b 1K; refused "a size with a suffix" "not an option with its value: '-b'"
run "$host"; refused "no collective" ".*is missing.*"

machine 4
quick="-b 1056 -e 1056 -n 1 -w 0 -c 1 -r 1"
run -n 3 "$nccl" all_reduce $quick -d all -o all; right 72 "all_reduce: 12 types, 6 operations"
for collective in reduce_scatter reduce; do
    run -n 3 "$nccl" $collective $quick -d half -o all; right 6 "$collective: 6 operations"
done
for collective in reduce_scatter reduce all_gather broadcast alltoall gather scatter sendrecv; do
    run -n 3 "$nccl" $collective $quick -d all; right 12 "$collective: 12 types"
done
run -n 2 "$nccl" sendrecv $quick -o all; right 6 "sendrecv is told an operation, as nccl-tests tells it"
check "in nccl-tests' order: $(cat out)" records "[r['redop'] for r in R] == ['sum', 'prod', 'max', 'min', 'avg', 'mulsum']"
check "in place is not defined for sendrecv: $(cat out)" records "all(r['in_place']['nwrong'] is None for r in R)"
for collective in alltoall gather scatter; do
    FAKE_NCCL_VERSION=22700 run -n 3 "$nccl" $collective $short; right 2 "$collective by sends"
done
run -n gpu "$nccl" reduce_scatter -b 300000 -e 300000 -n 2 -w 1 -c 2; right 1 "more than a period, checked twice"
check "the GPUs: $(cat out)" records "[(d['device'], d['bus']) for d in D] == [(i, '0000:1%d:00.0' % i) for i in range(4)] and \
D[1]['uuid'] == 'GPU-000000a1-0000-0000-0000-000000000001' and H['library'] == H['headers'] == 22809"
LAUNCH_BENCH_FAULT=2:70000 run -n 3 "$nccl" all_gather -b 400000 -e 400000 -n 2 -w 1 -c 1 -d float; expect 0 "a wrong element"
check "is found: $(cat out)" records "[h['nwrong'] for h in halves(R[0])] == [1, 1] and E['wrong'] == 2"
FAKE_SM=80 run -n 2 "$nccl" all_gather $quick -d all; right 10 "before compute capability 9.0"
check "a note: $(cat out)" records "any('f8e4m3 and f8e5m2 are left out' in n for n in N)"
FAKE_SM=80 run -n 2 "$nccl" all_gather $quick -d f8e5m2; expect 1 "such a type by its name"
check "is refused, not left out: $(cat err)" has 'f8e5m2 needs compute capability 9.0' err; check "no end: $(cat out)" records "not E"
export FAKE_GPU_MIB=4
run -n 4 "$nccl" broadcast -b 8 -e 300008 -i 300000 -n 1 -w 0 -c 0; expect 0 "four GPUs: room for all"
check "no note: $(cat out)" records "len(R) == 2 and not N"
machine 1
run -n 4 --share-gpus "$nccl" broadcast -b 8 -e 300008 -i 300000 -n 1 -w 0 -c 0; expect 0 "four ranks on one GPU"
check "its memory is divided, and that is said: $(cat out)" records "len(R) == 1 and N == ['Reducing maxBytes to 262144 due to memory limitation']"
unset FAKE_GPU_MIB
machine 3
run -n gpu "$nccl" sendrecv $short --pairs; expect 0 "pairs"
check "all ordered pairs of both sizes: $(cat out)" records "len(P) == 12 and all(p['nwrong'] == 0 and p['both_bw'] > 0 for p in P) and \
{(p['from'], p['to']) for p in P} == {(i, j) for i in range(3) for j in range(3) if i != j}"
LAUNCH_BENCH_FAULT=1:3 run -n gpu "$nccl" sendrecv $short --pairs; expect 0 "a wrong element in a pair"
check "only where it came in: $(cat out)" records "{p['to'] for p in P if p['nwrong']} == {1} and E['wrong'] == 4"
run -n 1 "$nccl" sendrecv --pairs; refused "pairs of one" '--pairs wants two ranks, there is 1'
run -n gpu "$nccl" check; expect 0 "check over NCCL"
check "all say the sum: $(cat out)" test "$(grep -c '^rank [0-2] of 3: sum = 3$' out)" = 3
FAKE_CUDA_HANG=1 run -n gpu "$nccl" all_reduce $short -T 1; expect 124 "a collective that never ends"
check "the last record says so: $(cat out)" records "E == {'wrong': 0, 'timeout': True}"
check "and what it was: $(cat err)" has 'rank 0: all_reduce of 64 bytes has not ended after 1 s' err
FAKE_NCCL_ASYNC_ERROR=1@1 run -n gpu "$nccl" all_reduce $short; expect 1 "an asynchronous error"
check "NCCL's reason: $(cat err)" has 'FAKE_NCCL_ASYNC_ERROR of rank 1' err; check "no end: $(cat out)" records "not E"
finish
