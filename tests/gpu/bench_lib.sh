# SPDX-License-Identifier: MIT
# Sourced by bench.sh, several.sh and prepare.sh after lib.sh: launch bench beside nccl-tests, NVIDIA's programs, of which NCCL_TESTS
# is a copy. They are built in its build/ and, with MPI, a process for each GPU as ours, in build-mpi/, unless they are there.

collectives=(all_reduce all_gather reduce_scatter broadcast reduce alltoall gather scatter sendrecv)
turns=${ROUNDS:-3}
# The check is made in the first turn only.
words="-n ${ITERS:-20} -w ${WARMUP:-5}"

[ -z "${NCCL_TESTS:-}" ] || NCCL_TESTS=$(cd "$NCCL_TESTS" && pwd) || { echo "NCCL_TESTS: no such directory"; exit 2; }

mpi_home() { for d in /usr/lib/*/openmpi /usr/lib64/openmpi /opt/openmpi; do [ -e "$d/include/mpi.h" ] && { echo "$d"; return; }; done; }
# Where nccl.h and libnccl.so are; a wheel has no libnccl.so.
nccl_home() {
    local home wheel=$NCCL_TESTS/nccl
    for home in ${NCCL_HOME:-} "${CUDA_HOME:-/usr/local/cuda}" /usr; do
        [ -e "$home/include/nccl.h" ] && { echo "$home"; return; }
    done
    home=$(python3 -c 'import nvidia; print(*nvidia.__path__)' 2>/dev/null | tr ' ' '\n' | while read -r p; do [ -e "$p/nccl/include/nccl.h" ] && echo "$p/nccl"; done | head -1)
    [ -n "$home" ] || return 1
    mkdir -p "$wheel/lib" && ln -sfn "$home/include" "$wheel/include" && ln -sf "$home"/lib/libnccl.so.2 "$wheel/lib/libnccl.so" && echo "$wheel"
}
build_nccl_tests() {
    local cuda=${CUDA_HOME:-/usr/local/cuda} mpi sm arch make
    [ -n "${NCCL_TESTS:-}" ] || { echo "no NCCL_TESTS=DIR: only ours is measured"; return; }
    mpi=$(mpi_home)
    [ -x "$NCCL_TESTS/build/sendrecv_perf" ] && { [ -z "$mpi" ] || [ -x "$NCCL_TESTS/build-mpi/sendrecv_perf" ]; } && return
    sm=$(smi compute_cap | head -1 | tr -d .) arch="-gencode=arch=compute_${sm:=90},code=sm_$sm"
    make=(make -s -k -j "$(nproc)" -C "$NCCL_TESTS/src" CUDA_HOME="$cuda" NCCL_HOME="$(nccl_home)" NVCC_GENCODE="$arch")
    [ -x "$NCCL_TESTS/build/sendrecv_perf" ] || "${make[@]}" BUILDDIR="$NCCL_TESTS/build" MPI=0 >"$logs/nccl-tests.make.log" 2>&1 || fail "nccl-tests does not build"
    if [ -n "$mpi" ] && command -v mpirun >/dev/null; then
        [ -x "$NCCL_TESTS/build-mpi/sendrecv_perf" ] || "${make[@]}" BUILDDIR="$NCCL_TESTS/build-mpi" MPI=1 MPI_HOME="$mpi" >"$logs/nccl-tests-mpi.make.log" 2>&1 ||
            fail "nccl-tests with MPI does not build"
    fi
    strip "$NCCL_TESTS"/build*/*_perf # small enough to be carried
    ls "$NCCL_TESTS"/build*/*_perf | tr '\n' ' '
}

# with_mpi COLLECTIVE: there is nccl-tests with MPI, and it runs here
with_mpi() { [ -x "$NCCL_TESTS/build-mpi/$1_perf" ] && command -v mpirun >/dev/null && ! ldd "$NCCL_TESTS/build-mpi/$1_perf" 2>&1 | grep -q 'libmpi.*not found'; }

# ours FILE OPTIONS COLLECTIVE WORDS: "size type op out in wrong" lines, FILE.csv is all of it
ours() {
    local file=$1 options=$2; shift 2
    limited 200 "$launch" bench "$1" $options "${@:2}" -T 60 --format=csv >"$dir/csv" 2>"$dir/err" </dev/null || { fail "ours: $options $*: exit $?"; return 1; }
    cat "$dir/csv" >>"$file.csv"
    awk -F, 'NR > 1 {key = $1 " " $3 " " $4} NR > 1 && $6 == "out" {t = $7; w = $10} NR > 1 && $6 == "in" {print key, t, $7, w + $10}' "$dir/csv" >>"$file"
}
# theirs FILE HOW COLLECTIVE WORDS: the same; HOW is 1, Nshared (processes on one GPU) or N: of so many GPUs, a process each if MPI is here
theirs() {
    local file=$1 how=$2 name=$3 mpi libs command; shift 3
    mpi="mpirun --allow-run-as-root --oversubscribe --bind-to none -np ${how%shared}"
    # Each process its own host for NCCL, and all on the first GPU.
    printf '#!/bin/bash\nexport NCCL_HOSTID=bench-$OMPI_COMM_WORLD_RANK NCCL_TESTS_DEVICE=0 NCCL_MAX_CTAS=1\nexec "$@"\n' >"$dir/own_host"
    chmod +x "$dir/own_host"
    case $how in
    *shared)
        with_mpi "$name" || { echo "no MPI: nccl-tests' $how ranks are left out"; return 1; }
        command="$mpi $dir/own_host $NCCL_TESTS/build-mpi/${name}_perf -g 1" ;;
    *) command="$NCCL_TESTS/build/${name}_perf -g $how" ;;
    esac
    [ "$how" -gt 1 ] 2>/dev/null && [ -z "${ONE_PROCESS:-}" ] && with_mpi "$name" &&
        command="$mpi $NCCL_TESTS/build-mpi/${name}_perf -g 1"
    echo "${command/$NCCL_TESTS\//}" >"$file.command"
    # The stand-in has no processes to count.
    [ -z "${FAKE:-}" ] || command="$NCCL_TESTS/build/${name}_perf -g ${how%shared}"
    # The NCCL that ours has.
    libs=$(ldd "$build/launch-bench-nccl" 2>/dev/null | sed -n 's|.*=> \(/.*\)/lib\(nccl\|cudart\)\.so.*|\1|p' | sort -u | paste -sd:)
    LD_LIBRARY_PATH=$libs:${LD_LIBRARY_PATH:-} NCCL_SOCKET_IFNAME=${NCCL_SOCKET_IFNAME:-lo} limited 200 $command "$@" >"$dir/perf" 2>"$dir/err" </dev/null ||
        { tail -n 20 "$dir/perf" >>"$dir/err"; fail "theirs: $command $*: exit $?"; return 1; }
    cat "$dir/perf" >>"$file.txt"
    awk '$1 ~ /^[0-9]+$/ && NF >= 13 {w = ($9 == "N/A" ? 0 : $9) + ($13 == "N/A" ? 0 : $13); print $1, $3, $4, $6, $10, w}' "$dir/perf" >>"$file"
}
# table OURS THEIRS FROM BELOW ABOVE: both times, us, medians; ours may take BELOW as long, from FROM bytes on ABOVE, and that on the
# whole (geometric mean) as well as at each size, where their own longest turn is allowed, too: small messages' times vary.
table() {
    python3 - "$@" <<'P'
import os, statistics, sys
def read(path):
    rows = {}
    for line in open(path) if os.path.exists(path) else ():
        size, _, _, out, inside, wrong = line.split()
        rows.setdefault(int(size), []).append((float(out), float(inside), float(wrong)))
    return rows
ours, theirs = read(sys.argv[1]), read(sys.argv[2])
start, below, above = int(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5])
if os.environ.get("FAKE"):
    below = above = float("inf")
late, wrong, worst, ratios = [], 0, {False: 0, True: 0}, {False: [], True: []}
print("%12s %10s %10s %7s %10s %10s %7s %7s" % ("size", "out ours", "theirs", "ratio", "in ours", "theirs", "ratio", "wrong"))
for size in sorted(ours):
    cells = []
    for half in 0, 1:
        a = statistics.median(r[half] for r in ours[size])
        b = statistics.median(r[half] for r in theirs[size]) if size in theirs else 0
        ratio = a / b if b else 0
        cells += [a, b, ratio]
        # Where nothing is done (one rank, in place) there is no ratio of hundredths of a microsecond.
        if size and b > 1:
            worst[size >= start] = max(worst[size >= start], ratio)
            ratios[size >= start].append(ratio)
            if ratio > (above if size >= start else below) and a > max(r[half] for r in theirs[size]):
                late.append(size)
    bad = sum(r[2] for r in ours[size])
    wrong += bad
    print("%12d %10.2f %10.2f %7.3f %10.2f %10.2f %7.3f %7d" % (size, *cells, bad))
mean = {large: statistics.geometric_mean(of) if of else 0 for large, of in ratios.items()}
lost = set(theirs) - set(ours) | (set(ours) - set(theirs) if theirs else set())
told = f"ours by nccl-tests' time: mean {mean[False]:.3f}, most {worst[False]:.3f} below {start >> 20} MiB; {mean[True]:.3f}, {worst[True]:.3f} from it on; wrong {wrong:.0f}" if theirs else f"no nccl-tests, wrong {wrong:.0f}"
print("figure:", told + (f"; late at {sorted(set(late))}" if late else "") + (f"; sizes of one side only: {sorted(lost)}" if lost else "") + ("; no sizes" if not ours else ""))
sys.exit(bool(late or mean[False] > below or mean[True] > above or wrong or lost or not ours))
P
}
# compare COLLECTIVE OPTIONS HOW MAX FACTOR FROM BELOW ABOVE
compare() {
    local name=$1 options=$2 how=$3 sweep=(-b 8 -e "$4" -f "$5") i a b c told file=$logs/$section check verdict=ok
    shift 5
    rm -f "$file".{ours,theirs}*
    for ((i = 0; i < turns; i++)); do
        check=$((i == 0)); a=$EPOCHREALTIME
        [ -z "${NCCL_TESTS:-}" ] || theirs "$file.theirs" "$how" "$name" "${sweep[@]}" $words -c $check || true
        b=$EPOCHREALTIME
        ours "$file.ours" "$options" "$name" "${sweep[@]}" $words -c $check || { goal missed "$name, $how" "launch bench failed"; return; }
        c=$EPOCHREALTIME
        [ $i -gt 0 ] || cat "$file.theirs.command" 2>/dev/null
        echo "turn $i: theirs $(seconds "$a" "$b") s, ours $(seconds "$b" "$c") s"
    done
    table "$file.ours" "$file.theirs" "$@" >"$file.table" || verdict=missed
    grep -v '^figure' "$file.table"
    told=$(sed -n 's/^figure: //p' "$file.table")
    goal "$verdict" "launch bench beside nccl-tests: $name, $how" "$told"
}
