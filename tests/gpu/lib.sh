# SPDX-License-Identifier: MIT
# Sourced by the scripts beside it, which need real GPUs. Each takes BUILD as its first word (build), runs its sections in order of
# importance, and ends with a summary: a line for each goal, what was skipped, what failed. Exit code 1: a failure or a missed goal.
#
#   script          needs                                                              seconds, with all sections (16 cores, H200)
#   doctor.sh       1 GPU                                                              10
#   check.sh        1 GPU, which nobody else uses; more for a rank per GPU             25; several: 60
#   fault.sh        1 GPU                                                              30
#   heal.sh         1 GPU; several for one rank per GPU                                500; several: 600
#   bench.sh        1 GPU, which nobody else uses; NCCL_TESTS=DIR, a copy of nccl-tests 260
#   several.sh      2, 4 or 8 GPUs; NCCL_TESTS=DIR                                     180, and 300 of heals
#   torch.sh        1 or 2 GPUs, python3 with torch                                    280
#   bench_host.sh   none: the figures of `make bench`                                  420
#   prepare.sh      no GPU, nvcc for nccl-tests: builds all of it ahead, so that no time on a GPU is spent on that
#
#   BUDGET=540      seconds for all. A section that no longer fits is skipped, and named. One that takes too long is ended, the
#                   next begins; so does a failure end its own section only.
#   ONLY='a|b'      sections whose name matches. LIST=1 lists them, and runs none.
#   LOGS=DIR        build/gpu/SCRIPT: SECTION.log has what a section printed; other files are named in it.
#   GPUS=N          of the machine, if not those of /dev.
#   FAKE=1          no GPU: fake.sh has the libraries of tests/fake and stand-ins for the tools; to try a script, not to measure.
#
# NVLink multicast stays off in all of it (NCCL_NVLS_ENABLE=0), memory is taken by cudaMalloc() alone, and no setting of a card is
# touched.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
export NCCL_NVLS_ENABLE=0
build=${1:-build} budget=${BUDGET:-540}
script=$(basename "$0" .sh)
logs=${LOGS:-$build/gpu/$script}
mkdir -p "$logs" && logs=$(cd "$logs" && pwd) && dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
trap 'echo "== $SECONDS s: ended from outside"; finish' TERM INT
mark=$script-$$-$RANDOM
export GPU_RUN_MARK=$mark # of all that is started here

# ---- what the scripts run ----

# needs FILE...: of the build, up to date
needs() {
    local file
    make "${@/#/$build/}" >"$logs/make.log" 2>&1 && return
    for file; do [ -e "$build/$file" ] || { tail -20 "$logs/make.log"; exit 2; }; done
    echo "make failed, see $logs/make.log: what stands in $build is tried"
}
# The jobs, linked with the real libraries; fake.sh has others.
launch=$build/launch heal=$build/tests/gpu/heal fault=$build/tests/gpu/fault
rank_sum=$build/examples/rank_sum train=$build/examples/train
if [ -n "${FAKE:-}" ]; then
    . tests/gpu/fake.sh
elif ldd "$build/launch-bench-nccl" 2>/dev/null | grep -qE 'lib(nccl|cudart).*not found'; then
    # Where NCCL is a wheel of Python's.
    for path in $(python3 -c 'import nvidia; print(*nvidia.__path__)' 2>/dev/null); do
        LD_LIBRARY_PATH=$(printf '%s:' "$path"/*/lib)${LD_LIBRARY_PATH:-}
    done
    export LD_LIBRARY_PATH
fi
gpus=${GPUS:-$(ls -d "${LAUNCH_SYSROOT:-}"/dev/nvidia[0-9]* 2>/dev/null | wc -l)}
smi() { nvidia-smi --query-gpu="$1" --format=csv,noheader 2>/dev/null; }
need_gpus() { [ "$gpus" -ge "$1" ] || { echo "$script.sh needs $1 GPUs, here are $gpus"; exit 2; }; }
# try CODE "what" words...: launch with them; what it says, its exit code and the seconds, which are in $took, too
try() {
    local code=$1 what=$2 begin=$EPOCHREALTIME got; shift 2
    limited "${LIMIT:-100}" "$launch" "$@" >"$dir/out" 2>"$dir/err" </dev/null; got=$?
    took=$(seconds "$begin" "$EPOCHREALTIME")
    echo "-- $what: launch $*: exit code $got, $took s"
    sed 's/^/    /' "$dir/out"; tail -n 25 "$dir/err" | sed 's/^/    | /'
    [ "$got" = "$code" ] || { fail "$what: exit code $code expected, not $got"; return 1; }
}
must() { grep -qE -- "$1" "$dir/out" || { fail "no line like $1"; return 1; }; }
# Without P2P, and without shared memory either: NCCL_P2P_DISABLE=1 is named wherever it shows.
without_p2p() {
    local bad=0
    export NCCL_P2P_DISABLE=1
    try 0 "check without P2P" check && must 'not tried: what NCCL_P2P_DISABLE=1 \(environment\)' || bad=1
    try 0 "transports without P2P" topo --transports && must 'SHM, not P2P: NCCL_P2P_DISABLE=1 \(environment\)' || bad=1
    NCCL_SHM_DISABLE=1 try 0 "transports without P2P and SHM" topo --transports &&
        must 'NET, not P2P: NCCL_P2P_DISABLE=1 \(environment\) and NCCL_SHM_DISABLE=1' || bad=1
    holds "without P2P: check and topo --transports name the setting" "" [ $bad = 0 ]
}
# limited SECONDS command...: in the section's process group, so that its end is the command's
limited() { timeout --foreground -k 5 "$@"; }
seconds() { awk -v a="$1" -v b="$2" 'BEGIN {printf "%.2f", b - a}'; } # between two of $EPOCHREALTIME

# ---- goals and failures ----

# goal ok|missed "what" "figure"
goal() {
    printf '%-6s  %-72s %s\n' "$1" "$2" "$3" >>"$dir/goals"
    [ "$1" = ok ] || { echo "MISSED: $2: $3"; echo "$section: $2" >>"$dir/failures"; }
}
# at_most LIMIT FIGURE UNIT "what": with FAKE=1 no time is missed
at_most() { goal "$(awk -v f="$2" -v l="$1" -v fake="${FAKE:-}" 'BEGIN {print f <= l || fake ? "ok" : "missed"}')" "$4" "$2 $3 (at most $1)"; }
# holds "what" "figure" command...: a goal that is met if the command succeeds
holds() { local what=$1 figure=$2; shift 2; if "$@"; then goal ok "$what" "$figure"; else goal missed "$what" "$figure"; fi; }
# fail "what": shows the end of $dir/err
fail() {
    echo "FAILED: $*"
    tail -n 25 "$dir/err" 2>/dev/null | sed 's/^/    | /'
    echo "$section: $*" >>"$dir/failures"
}

# ---- sections ----

# What carries our mark and still runs. The script itself does not: its environment was made before.
left() { (unset GPU_RUN_MARK; grep -lszx "GPU_RUN_MARK=$mark" /proc/[0-9]*/environ | cut -d/ -f3); }
sweep() {
    local pid command
    [ -z "$(left)" ] || sleep 0.5 # who is about to end may
    for pid in $(left); do
        command=$({ tr '\0' ' ' <"/proc/$pid/cmdline"; } 2>/dev/null)
        kill -9 "$pid" 2>/dev/null && echo "left by $section: $pid $command"
    done
}
# section NAME NEEDS LIMIT command...: runs it if NEEDS seconds are left of the budget, for at most LIMIT
section() {
    section=$1; local needs=$2 limit=$3 left=$((budget - SECONDS)) tee dog; shift 3
    [[ $section =~ ${ONLY:-.} ]] || return 0
    [ -z "${LIST:-}" ] || { printf '%-32s %3d s, at most %d\n' "$section" "$needs" "$limit"; return 0; }
    if [ "$left" -lt "$needs" ]; then
        echo "== $SECONDS s: $section: skipped, it needs about $needs s and $left s are left"
        echo "$section" >>"$dir/skipped"
        return 0
    fi
    [ "$limit" -le "$left" ] || limit=$left
    echo "== $SECONDS s: $section (at most $limit s)"
    rm -f "$dir/over" "$dir/err"
    # Each a process group of its own: what is in it ends with it.
    set -m
    { "$@"; : >"$dir/over"; } </dev/null 2>&1 | (trap '' TERM INT; exec tee "$logs/$section.log") & tee=$!
    group=$(jobs -p %%)
    (sleep "$limit"; kill -TERM -- -"$group"; sleep 3; kill -KILL -- -"$group") >/dev/null 2>&1 & dog=$!
    set +m
    { wait $tee; kill -KILL -- -$dog; wait $dog; } 2>/dev/null
    group=
    [ -e "$dir/over" ] || fail "not over after $limit s"
    sweep
}
# finish: the summary, and the end
finish() {
    trap '' TERM INT
    [ -z "${group:-}" ] || { kill -TERM -- -"$group"; sleep 2; kill -KILL -- -"$group"; } 2>/dev/null
    sweep >/dev/null
    [ -z "${LIST:-}" ] || exit 0
    {
        echo "== $SECONDS s: summary of $script.sh, $gpus GPUs"
        [ ! -s "$dir/goals" ] || cat "$dir/goals"
        [ ! -s "$dir/skipped" ] || echo "skipped: $(paste -sd ' ' "$dir/skipped")"
        [ ! -s "$dir/failures" ] || sed 's/^/failed: /' "$dir/failures"
    } | tee "$logs/summary.log"
    [ ! -s "$dir/failures" ]; exit
}
section=start
echo "$script.sh: $gpus GPUs, $(nproc) CPUs, budget $budget s, logs in $logs"
[ -n "${LIST:-}" ] || smi name,driver_version,memory.used
