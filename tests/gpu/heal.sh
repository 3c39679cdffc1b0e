#!/bin/bash
# SPDX-License-Identifier: MIT
# Healing on this machine's GPUs: milliseconds from SIGKILL of a rank in the midst of an all-reduce to the first right all-reduce of
# all ranks, by step (medians of ROUNDS, least and greatest of the last column); 30 losses in a row and what they leave; a rank
# that is stopped; examples/train with and without kills. Exit code 1: something was wrong or a goal was missed.
#
#     tests/gpu/heal.sh [BUILD]          ROUNDS=10 LOSSES=30 KILLS=10 STEPS=4000 GPUS= (of the machine)
#
# Where NCCL's part goes: its own "Init timings", of survivors and of standbys apart, in a run of their own, for writing them takes
# time, too.
cd "$(dirname "$0")/../.." || exit 2
build=${1:-build} rounds=${ROUNDS:-10} rc=0
[ -x "$build/launch" ] && [ -x "$build/tests/gpu/heal" ] || make all "$build/tests/gpu/heal" || exit 2
gpus=${GPUS:-$(ls -d /dev/nvidia[0-9]* 2>/dev/null | wc -l)}
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT || exit 2
echo "$gpus GPUs"; nvidia-smi --query-gpu=name,driver_version,memory.used --format=csv,noheader 2>/dev/null
fail() { echo "FAILED: $*"; tail -25 "$dir/err" | sed 's/^/    | /'; rc=1; }

job() { # RANKS ROUNDS PAUSE WORDS -- launch's options
    local ranks=$1 n=$2 pause=$3 words=$4; shift 5
    rm -f "$dir/shared"
    timeout -k 5 $((60 + n * 6)) "$build/launch" --nproc-per-node="$ranks" --on-failure=heal --max-restarts=100 "$@" \
        "$build/tests/gpu/heal" "$dir/shared" "$n" "$pause" $words >"$dir/out" 2>"$dir/err" </dev/null ||
        { fail "$ranks ranks, $*: exit $?"; return 1; }
    grep -o 'round [0-9]* .*' "$dir/out" >"$dir/rounds"
    [ "$(wc -l <"$dir/rounds")" = "$n" ] || fail "$ranks ranks, $*: $(wc -l <"$dir/rounds") rounds of $n"
}
column() { awk -v c="$1" '{print $c}' "$dir/rounds" | sort -n | awk '{v[NR]=$1} END {printf "%s %s %s\n", v[1], v[int((NR+1)/2)], v[NR]}'; }
measure() { # GOAL_MS RANKS WORDS -- options; goal 0: none
    local goal=$1 ranks=$2 words=$3 c least median most line; shift 4
    job "$ranks" "$rounds" 5000 "$words" -- "$@" || return
    line=$(printf '%d ranks %-44s' "$ranks" "$* $words")
    for c in 3 4 5 6; do read -r _ median _ < <(column $c); line+=$(printf ' %7s' "$median"); done
    read -r least median most < <(column 7)
    printf '%s %7s  (%s..%s)%s\n' "$line" "$median" "$least" "$most" "$([ "$goal" = 0 ] || echo " goal $goal")"
    if [ "$goal" != 0 ] && awk "BEGIN {exit !($median > $goal)}"; then echo "MISSED: $median > $goal"; rc=1; fi
}
# Seconds, medians over processes and rounds, in the order of NCCL's line: total, then its parts.
timings() { # RANKS -- options
    local ranks=$1 trace=$dir/trace; shift 2
    rm -rf "$trace"; mkdir "$trace"
    NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT NCCL_DEBUG_FILE=$trace/%p job "$ranks" 4 5000 '' -- "$@" || return
    python3 - "$trace"/* <<'PYTHON'
import re, statistics, sys
line = re.compile(r"Init timings.* nranks (\d+) total ([\d.]+) \((.*)\)")
of = {"at the start": [], "survivors": [], "standbys": []}
for path in sys.argv[1:]:
    who = "at the start"
    for found in line.finditer(open(path, errors="replace").read()):
        if found[1] == "1":  # it got warm
            who = "standbys"
            continue
        of[who].append({"total": found[2], **dict(re.findall(r"(\w+) ([\d.]+)", found[3]))})
        who = "survivors"
for who, rows in of.items():
    names = list(rows[0]) if rows else []
    print("NCCL's own, s,", who, f"({len(rows)}):",
          *(f"{name} {statistics.median(float(row.get(name, 0)) for row in rows):.2f}" for name in names))
PYTHON
}
echo "ms after the signal:                                  told first    last     met    comm through"
# Unbound, so that a standby can take any place.
share="--share-gpus --affinity=none"
measure 250 4 '' -- $share --standby=nccl
measure 250 4 sync -- $share --standby=nccl
measure 0 4 '' -- $share --standby=cuda
measure 0 4 '' -- $share --standby=exec
measure 1300 4 '' -- $share
measure 600 8 '' -- $share --standby=nccl
measure 1300 8 '' -- $share
if [ "$gpus" -gt 1 ]; then
    n=$((gpus < 4 ? gpus : 4))
    measure 300 $n '' -- --standby=nccl --standby-count=$n
    measure 300 $n sync -- --standby=nccl --standby-count=$n
    measure 1300 $n '' --
fi

timings 4 -- $share --standby=nccl
[ "$gpus" -gt 1 ] && timings $n -- --standby=nccl --standby-count=$n

# What the environment changes in it. NCCL reads what it knows of NVLink from a file, where it is given one, in the place of
# hundreds of calls of NVML, which all ranks make at the same time.
if [ "$gpus" -gt 1 ]; then
    NCCL_TOPO_DUMP_FILE=$dir/topo.xml "$build/launch" --nproc-per-node="$n" "$build/examples/rank_sum" >/dev/null 2>"$dir/err"
    for variable in NCCL_TOPO_FILE="$dir/topo.xml" CUDA_MODULE_LOADING=EAGER NCCL_MAX_CTAS=4 NCCL_CUMEM_HOST_ENABLE=0 NCCL_RUNTIME_CONNECT=0 NCCL_SHM_DISABLE=1; do
        echo "with ${variable/$dir\//}:"
        export "$variable"; measure 0 $n '' -- --standby=nccl --standby-count=$n; unset "${variable%%=*}"
    done
fi

if job 4 "${LOSSES:-30}" 1200 '' -- $share --standby=nccl; then
    echo "${LOSSES:-30} losses in a row, every sum right; second and last: $(sed -n '2s/.*free/MiB free/p;$s/.*free/; MiB free/p' "$dir/rounds" | tr -d '\n')"
    # A rank's context is hundreds of MiB: less than one may be missing.
    sed -n '2p;$p' "$dir/rounds" | awk '{v[NR]=$9} END {exit !(v[1] - v[2] > 256)}' && fail "GPU memory grows"
fi
job 4 3 2500 stop -- $share --standby=nccl --hang-timeout=4s &&
    echo "a stopped rank, --hang-timeout=4s: ms until told, met, comm, through: $(awk '{print $4, $5, $6, $7}' "$dir/rounds" | paste -sd '|')"
for options in "$share --standby=nccl" $([ "$gpus" -gt 1 ] && echo --standby=nccl); do
    OPTIONS=$options TOLERANCE=1e-2 NPROC=$([ "$options" = --standby=nccl ] && echo "$((gpus < 4 ? gpus : 4))" || echo 4) \
        examples/train/survive.sh "$build/launch" "$build/examples/train" "${KILLS:-10}" "${STEPS:-4000}" >"$dir/err" 2>&1 || fail "train"
    sed "s/^/train, $options: /" "$dir/err" | tail -3
done
nvidia-smi --query-gpu=memory.used --format=csv,noheader 2>/dev/null | sed 's/^/afterwards in use: /'
exit $rc
