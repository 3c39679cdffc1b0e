#!/bin/bash
# SPDX-License-Identifier: MIT
# The bench job beside nccl-tests on this machine's GPU, in turns: 1 rank, 4 ranks that share one GPU, and one rank per GPU if
# there are several. A table of both times (us, median of ROUNDS) and their ratio, out of place and in place; then every
# collective, type and operation, and a planted fault. Exit code 1: something was wrong, or times are apart by more than 3 %
# from 1 MiB up or 10 % below.
#
#     NCCL_TESTS=DIR tests/gpu/bench.sh [BUILD]      a copy of NVIDIA's nccl-tests; without it only ours is measured
#     ROUNDS=3 MAX=1073741824 MAX_SHARED=67108864    nccl-tests is built in DIR/build, and in DIR/build-mpi if mpicc is here
cd "$(dirname "$0")/../.." || exit 2
build=${1:-build} rounds=${ROUNDS:-3} max=${MAX:-1073741824} max_shared=${MAX_SHARED:-67108864} rc=0
[ -x "$build/launch" ] && [ -x "$build/launch-bench-nccl" ] || make all || exit 2
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT || exit 2
cuda=${CUDA_HOME:-/usr/local/cuda} gpus=$(ls -d /dev/nvidia[0-9]* 2>/dev/null | wc -l)
echo "$gpus GPUs"; nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null
fail() { echo "FAILED: $*"; tail -15 "$dir/err" 2>/dev/null | sed 's/^/    | /'; rc=1; }

mpi_home() { for d in /usr/lib/*/openmpi /usr/lib64/openmpi /opt/openmpi; do [ -e "$d/include/mpi.h" ] && { echo "$d"; return; }; done; }
if [ -n "${NCCL_TESTS:-}" ]; then
    home="CUDA_HOME=$cuda ${NCCL_HOME:+NCCL_HOME=$NCCL_HOME}"
    sm=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d .)
    arch="NVCC_GENCODE=-gencode=arch=compute_$sm,code=sm_$sm"
    make -s -C "$NCCL_TESTS/src" BUILDDIR="$NCCL_TESTS/build" MPI=0 $home "$arch" -j8 >"$dir/err" 2>&1 || fail "nccl-tests does not build"
    if command -v mpirun >/dev/null && [ -n "$(mpi_home)" ]; then
        make -s -C "$NCCL_TESTS/src" BUILDDIR="$NCCL_TESTS/build-mpi" MPI=1 MPI_HOME="$(mpi_home)" $home "$arch" -j8 >"$dir/err" 2>&1 ||
            fail "nccl-tests with MPI does not build"
    else
        echo "no MPI: nccl-tests' 4 ranks are left out"
    fi
fi

# ours FILE RANKS OPTIONS COLLECTIVE WORDS: "size out in wrong" lines
ours() {
    local file=$1 ranks=$2 options=$3; shift 3
    timeout -k 5 300 "$build/launch" -n "$ranks" $options "$build/launch-bench-nccl" "$@" >"$dir/out" 2>"$dir/err" </dev/null ||
        { fail "ours: $ranks $options $*: exit $?"; return 1; }
    python3 - "$dir/out" >>"$file" <<'P'
import json, sys
for line in open(sys.argv[1]):
    r = json.loads(line).get("result")
    if r:
        halves = r["out_of_place"], r["in_place"]
        print(r["size"], halves[0]["time"], halves[1]["time"], sum(h["nwrong"] or 0 for h in halves))
P
}
# theirs FILE RANKS COLLECTIVE WORDS: the same; RANKS is 1, Nshared (processes on one GPU) or NgpusN
theirs() {
    local file=$1 ranks=$2 name=$3 how; shift 3
    case $ranks in
    1) how="$NCCL_TESTS/build/${name}_perf -g 1" ;;
    *gpus) how="$NCCL_TESTS/build/${name}_perf -g ${ranks%gpus}" ;;
    *shared)
        [ -x "$NCCL_TESTS/build-mpi/${name}_perf" ] || return 1
        # Each process its own host for NCCL, and all on the first GPU.
        cat >"$dir/own_host" <<'W'
#!/bin/bash
export NCCL_HOSTID=bench-$OMPI_COMM_WORLD_RANK NCCL_TESTS_DEVICE=0
exec "$@"
W
        chmod +x "$dir/own_host"
        how="mpirun --allow-run-as-root --oversubscribe -np ${ranks%shared} $dir/own_host $NCCL_TESTS/build-mpi/${name}_perf -g 1" ;;
    esac
    NCCL_SOCKET_IFNAME=${NCCL_SOCKET_IFNAME:-lo} timeout -k 5 300 $how "$@" >"$dir/out" 2>"$dir/err" </dev/null ||
        { cat "$dir/out" >>"$dir/err"; fail "theirs: $ranks $name $*: exit $?"; return 1; }
    awk '$1 ~ /^[0-9]+$/ && NF >= 13 {w = ($9 == "N/A" ? 0 : $9) + ($13 == "N/A" ? 0 : $13); print $1, $6, $10, w}' "$dir/out" >>"$file"
}
table() { # OURS THEIRS
    python3 - "$1" "$2" <<'P'
import os, statistics, sys
def read(path):
    rows = {}
    for line in open(path) if os.path.exists(path) else ():
        size, out, inside, wrong = (float(x) for x in line.split())
        rows.setdefault(int(size), []).append((out, inside, wrong))
    return rows
ours, theirs = read(sys.argv[1]), read(sys.argv[2])
bad = 0
print("%12s %10s %10s %7s %10s %10s %7s %7s" % ("size", "out ours", "theirs", "ratio", "in ours", "theirs", "ratio", "wrong"))
for size in sorted(ours):
    cells = []
    for half in 0, 1:
        a = statistics.median(r[half] for r in ours[size])
        b = statistics.median(r[half] for r in theirs[size]) if size in theirs else 0
        cells += [a, b, a / b if b else 0]
        limit = 1.03 if size >= 1 << 20 else 1.10
        # Where nothing is done (one rank, in place) there is no ratio of hundredths of a microsecond.
        bad += bool(b) and not 1 / limit <= a / b <= limit and abs(a - b) > 0.1
    wrong = sum(r[2] for r in ours[size])
    bad += wrong > 0
    print("%12d %10.2f %10.2f %7.3f %10.2f %10.2f %7.3f %7d" % (size, *cells, wrong))
sys.exit(bad > 0)
P
}
compare() { # TITLE RANKS OPTIONS THEIR_RANKS COLLECTIVE MAX
    local i words
    echo; echo "$1: $5"
    words="-b 8 -e $6 -f 2 -n 20 -w 1 -c 1"
    rm -f "$dir/ours" "$dir/theirs"
    for ((i = 0; i < rounds; i++)); do
        [ -z "${NCCL_TESTS:-}" ] || theirs "$dir/theirs" "$4" "$5" $words || true
        ours "$dir/ours" "$2" "$3" "$5" $words -d float -o sum -r 0 -T 120 || return
    done
    touch "$dir/theirs"
    table "$dir/ours" "$dir/theirs" || { echo "MISSED or wrong"; rc=1; }
}
compare "1 rank" 1 "" 1 all_reduce "$max"
compare "4 ranks on one GPU" 4 --share-gpus 4shared all_reduce "$max_shared"
if [ "$gpus" -gt 1 ]; then
    for collective in all_reduce all_gather reduce_scatter broadcast reduce alltoall gather scatter sendrecv; do
        compare "$gpus GPUs" gpu "" "${gpus}gpus" $collective "$max"
    done
fi

echo; echo "every collective, type and operation, 4 ranks on one GPU:"
share=--share-gpus; [ "$gpus" -lt 4 ] || share=
for collective in all_reduce all_gather reduce_scatter broadcast reduce alltoall gather scatter sendrecv; do
    rm -f "$dir/all"
    ours "$dir/all" 4 "$share" $collective -b 4096 -e 1048576 -f 256 -n 2 -w 1 -c 1 -d all -o all -r 1 -T 120 || continue
    awk -v c=$collective '{n++; w += $4} END {printf "  %-16s %4d results, wrong %d\n", c, n, w; exit w > 0}' "$dir/all" || rc=1
done
rm -f "$dir/all"
LAUNCH_BENCH_FAULT=2:777 ours "$dir/all" 4 "$share" all_reduce -b 67108864 -e 67108864 -n 2 -w 1 -c 1 -d float -o sum -r 0 &&
    { [ "$(awk '{print $4}' "$dir/all")" = 2 ] && echo "a planted fault is found" || fail "a planted fault: $(cat "$dir/all")"; }
begin=$EPOCHREALTIME; rm -f "$dir/all"
ours "$dir/all" 1 "" all_reduce -b "$max" -e "$max" -f 2 -n 1 -w 0 -c 4 -d float -o sum -r 0 &&
    echo "8 checks of $max bytes, start and end of the job: $(awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN {printf "%.2f s", b - a}')"
exit $rc
