#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# launch check on fake CUDA and NCCL: what it says of a server where NCCL works, where it hangs, errs or is wrong until one of its
# ways is taken away, and where nothing helps; its exit codes; and that it leaves nothing.
. "$SRC/tests/e2e/lib.sh"
[ -e "$BUILD/tests/fake/launch-bench-nccl" ] || skip "no NCCL"
cp "$BUILD/tests/fake/launch-bench-nccl" job # under a name of its own
export LD_LIBRARY_PATH=$BUILD/tests/fake LAUNCH_BENCH_JOB=$PWD/job TMPDIR=$PWD
machine() { gpus "$1"; export FAKE_GPUS=$1; } # N
# Where nothing passes, nothing can be too slow for a short one.
short=--timeout=800ms shortest=--timeout=200ms
sums() { # N "what": every rank told the right sum
    check "$2: $1 right sums: $(cat out)" test "$(grep -c "^rank [0-9]* of $1: sum = $(($1 * ($1 - 1) / 2))\$" out)" = "$1"
}
machine 2
run check; expect 0 "a server that is well"; sums 2 "well"
check "healthy: $(cat out)" has '^healthy: 2 ranks over NCCL 2\.28\.9.*, every sum is right' out
check "and nothing else" test "$(wc -l <out)" = 3
check "nothing on stderr" test ! -s err
run check --json; expect 0 "--json"
cat >shape.py <<'P'
import json, sys
got, want = json.load(open("out")), dict(word.split("=") for word in sys.argv[1:])
keys = {"version", "verdict", "backend", "nccl", "ranks", "right_sum", "shared_gpus", "timeout_ms", "without", "meaning", "fix", "runs"}
assert set(got) == keys, set(got) ^ keys
for run in got["runs"]:
    assert set(run) == {"environment", "outcome", "exit_code", "seconds", "ranks", "said"}, run
    assert [rank["rank"] for rank in run["ranks"]] == list(range(got["ranks"])), run
    for rank in run["ranks"]:
        assert set(rank) == {"rank", "sum", "phase", "pid", "gpu", "warning"}, rank
        assert run["outcome"] != "passes" or rank["sum"] == got["right_sum"], rank
assert all("passes" != run["outcome"] for run in got["runs"][:-1])
facts = {"verdict": got["verdict"], "without": str(got["without"]), "runs": str(len(got["runs"])), "backend": got["backend"],
         "first": got["runs"][0]["outcome"], "last": got["runs"][-1]["outcome"], "phase": got["runs"][0]["ranks"][0]["phase"] or "none"}
for name, value in want.items():
    assert facts[name] == value, (name, facts)
P
check "its shape" python3 shape.py verdict=healthy runs=1 backend=nccl last=passes phase=data

FAKE_NCCL_HANG=p2p run check $short; expect 3 "a hang without which P2P"; sums 2 "without P2P"
check "where it stands: $(cat out)" has "by NCCL's log, ranks 0, 1: connected; no data comes through" out
check "and what the ranks do: $(cat out)" has '^  ranks? [0-9, -]*: in collective' out
check "no NVLS did not help" has '^without NVLS \(NCCL_NVLS_ENABLE=0\): hangs' out
check "no P2P did" has '^without NVLS and P2P \(NCCL_NVLS_ENABLE=0 NCCL_P2P_DISABLE=1\): every sum is right' out
check "degraded, and why" has "^degraded: the GPUs do not reach each other's memory" out
check "and the way out" has '^  until then: NCCL_NVLS_ENABLE=0 NCCL_P2P_DISABLE=1 launch' out
mkdir -p machine/sys/bus/pci/devices/0000:11:00.0/iommu_group; echo DMA-FQ >machine/sys/bus/pci/devices/0000:11:00.0/iommu_group/type
NCCL_NVLS_ENABLE=0 FAKE_NCCL_WRONG=p2p run check; expect 3 "wrong sums without NVLS"
check "the wrong sum is named: $(cat out)" has '^rank 1 of 2: sum = .* is wrong, 1 is right' out
check "NVLS was off already" not has '^without NVLS \(' out
check "the IOMMU is seen" has '^  seen: the IOMMU translates what GPU 0000:11:00.0 sends' out
check "what was not tried" has '^  not tried: what NCCL_NVLS_ENABLE=0 \(environment\)' out
FAKE_NCCL_ERROR=nvls run check --json; expect 3 "an error with NVLS"
check "so says --json: $(cat out)" python3 shape.py verdict=degraded without=nvls runs=2 first=fails
FAKE_NCCL_ERROR=shm run check --json; expect 3 "an error with shared memory"
check "three were in vain: $(cat out)" python3 shape.py verdict=degraded without=shm runs=4
NCCL_NVLS_ENABLE=0 NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 FAKE_NCCL_INIT_HANG=1 run check $short; expect 1 "a rank that does not come"
check "it is named: $(cat out)" has '^  behind: rank 1; the others wait' out
check "and nothing is left to take away" test "$(grep -c hangs out)" = 1
FAKE_NCCL_HANG=always run check $shortest; expect 1 "what nothing helps"
check "all four were tried" test "$(grep -c ': hangs, no sign of life for 0.2 s' out)" = 4
check "broken" has '^broken: 2 ranks' out
machine 1
FAKE_NCCL_HANG=always run check $shortest; expect 1 "one GPU"
check "has no ways to take away" test "$(grep -c hangs out)" = 1
run check -n 3 --share-gpus; expect 0 "a shared GPU"; sums 3 "shared"
check "is said to be" has '^healthy: 3 ranks over NCCL .*, GPUs shared' out
machine 0
LAUNCH_BENCH_JOB= run check -n 3; expect 0 "no GPU"; sums 3 "no GPU"; check "the host: $(cat out)" has '^healthy: 3 ranks in host memory' out

# Nothing is started.
LAUNCH_BENCH_JOB=$PWD/nowhere run check; expect 2 "no job"; check "is told: $(cat err)" has "^launch: LAUNCH_BENCH_JOB: '$PWD/nowhere': No such file" err
run check --timeout; expect 2 "no time"; check "is told" has '^launch: check: --timeout: needs? a value' err
run check --timeout=soon; expect 2 "no such time"
run check ./job; expect 2 "a program"; check "is told" has "'./job': options of launch are taken here, and no program" err
run check --detach; expect 2 "--detach"
machine 1
run check -n 3; expect 2 "more ranks than GPUs"; check "is told" has '3 workers for 1 GPU: fewer, or --share-gpus' err
run check --help; expect 0 "--help"; check "tells the exit codes" has '0 healthy; 3 degraded' out

# A signal ends it and all it has started.
machine 2
FAKE_NCCL_HANG=always "$LAUNCH" check >out 2>err </dev/null & pid=$!
workers() { pgrep -f "^$PWD/job check\$"; }
two() { [ "$(workers | wc -l)" = 2 ]; }
until_true two || fail "two workers"
kill -TERM $pid; wait $pid; rc=$?; expect 143 "SIGTERM"
check "no worker is left" not workers
check "no log is left" not ls -d launch-nccl-* 2>/dev/null
finish
