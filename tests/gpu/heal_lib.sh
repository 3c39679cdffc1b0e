# SPDX-License-Identifier: MIT
# Sourced by heal.sh and several.sh after lib.sh: heals of tests/gpu/heal.c, measured and looked at.

rounds=${ROUNDS:-10}
# Milliseconds before each loss, in which a standby gets ready. Real ones of nccl were not after 2.5 s.
declare -A pauses=([nccl]=5000 [cuda]=3000 [exec]=1000 [none]=300)
[ -z "${FAKE:-}" ] || pauses=([nccl]=300 [cuda]=300 [exec]=300 [none]=100)

# heals RANKS ROUNDS PAUSE WORDS -- launch's options: the rounds are in $dir/rounds then
heals() {
    local ranks=$1 n=$2 pause=$3 words=$4; shift 5
    rm -f "$dir/shared"
    limited $((60 + n * (3 + pause / 1000))) "$launch" --nproc-per-node="$ranks" --on-failure=heal --max-restarts=$((n * 2)) "$@" \
        ${HEAL_UNDER:-} "$heal" "$dir/shared" "$n" "$pause" $words >"$dir/out" 2>"$dir/err" </dev/null
    local got=$?
    cp "$dir/out" "$logs/$section.out"; cp "$dir/err" "$logs/$section.err"
    [ $got = 0 ] || { fail "$ranks ranks, $*: exit $got"; return 1; }
    grep -o 'round [0-9]* .*' "$dir/out" >"$dir/rounds"
    [ "$(wc -l <"$dir/rounds")" = "$n" ] || { fail "$ranks ranks, $*: $(wc -l <"$dir/rounds") rounds of $n"; return 1; }
}
# Least, median and greatest of lines of numbers, and how many they are; nothing of none.
spread() { sort -n | awk '{v[NR]=$1} END {if (NR) print v[1], v[int((NR+1)/2)], v[NR], NR}'; }
column() { awk -v c="$1" '{print $c}' "$dir/rounds" | spread | cut -d" " -f1-3; }
# measure GOAL_MS RANKS WORDS -- options; goal 0: none
measure() {
    local goal=$1 ranks=$2 words=$3 how=none c least median most line; shift 4
    [[ " $* " =~ --standby=([a-z]+) ]] && how=${BASH_REMATCH[1]}
    heals "$ranks" "$rounds" "${pauses[$how]}" "$words" -- "$@" || return
    echo "ms after the signal:                                            told first    last     met    comm  copied through"
    line=$(printf '%d ranks %-54s' "$ranks" "$* $words")
    for c in 3 4 5 6 7; do read -r _ median _ < <(column $c); line+=$(printf ' %7s' "$median"); done
    read -r least median most < <(column 8)
    printf '%s %7s  (%s..%s)\n' "$line" "$median" "$least" "$most"
    cp "$dir/rounds" "$logs/$section.rounds"
    if [ "$goal" = 0 ]; then
        goal ok "SIGKILL to first all-reduce, $ranks ranks, $* $words${label:-}" "$median ms ($least..$most)"
    else
        at_most "$goal" "$median" "ms ($least..$most)" "SIGKILL to first all-reduce, $ranks ranks, $* $words"
    fi
}
# losses N RANKS PAUSE -- options: so many in a row, and what they leave
losses() {
    local n=$1 ranks=$2 pause=$3 least median most lost; shift 4
    heals "$ranks" "$n" "$pause" '' -- "$@" || { goal missed "$n losses in a row, $ranks ranks, $*" "see its log"; return; }
    read -r least median most < <(column 8)
    # The most that was ever free in either half: it differs by who is asked, and by how many standbys are warm.
    lost=$(awk -v n="$n" '{half = NR > n / 2} $10 > most[half] {most[half] = $10} END {print most[0] - most[1]}' "$dir/rounds")
    echo "$n losses in a row, ms: $median ($least..$most); second and last: $(sed -n '2s/.*free/MiB free/p;$s/.*free/; MiB free/p' "$dir/rounds" | tr -d '\n')"
    cp "$dir/rounds" "$logs/$section.rounds"
    # A rank's context is hundreds of MiB: less than one may be missing.
    holds "$n losses in a row, $ranks ranks, $*: every sum right, memory as before" "median $median ms, $lost MiB of GPU memory lost" [ "$lost" -le 256 ]
}
# A rank that is stopped, and one that goes round on the CPU: found by the board, killed, healed; in every round another one, and
# nobody else.
hung() { # RANKS stop|spin -- options
    local ranks=$1 how=$2 n=${HUNG_ROUNDS:-3} median victims named i; shift 3
    heals "$ranks" "$n" "${pauses[none]}" "$how" -- "$@" --hang-timeout="${HANG_TIMEOUT:-4s}" || { goal missed "a rank that ${how}s, $ranks ranks, $*" "see its log"; return; }
    grep -E 'is stopped|hangs' "$dir/err" | head -3
    for ((i = 1; i <= n; i++)); do victims+="$((i % ranks)) "; done
    # All that were replaced; with a question mark, for another reason.
    named=$(sed -nE "/; it is replaced /{s/^launch: warning: rank ([0-9]+) of $ranks (is stopped|hangs) .*/\\1/p;t;s/^launch: warning: rank ([0-9]+) .*/\\1?/p}" "$dir/err" | tr '\n' ' ')
    holds "ranks that ${how} one after the other, $ranks ranks, $*: each is named, no other is replaced" "${named% }" [ "$named" = "$victims" ]
    read -r _ median _ < <(column 8)
    goal ok "a rank that ${how}s, $ranks ranks, $*: found and healed, $n times" "$median ms after it did, --hang-timeout=${HANG_TIMEOUT:-4s}"
}
# NCCL's own timings, s: medians over processes and rounds, in the order of its line: total, then its parts.
timings() { # RANKS -- options
    local ranks=$1 trace=$logs/$section.trace; shift 2
    rm -rf "$trace"; mkdir "$trace"
    NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT NCCL_DEBUG_FILE=$trace/%p heals "$ranks" 4 "${pauses[nccl]}" '' -- "$@" || return
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
# nvml_calls RANKS -- options: calls of NVML in each of NCCL's inits, and what they take, summed over the threads of a process
nvml_calls() {
    local ranks=$1 counts=$logs/$section.counts real; shift 2
    real=$(ldconfig -p | sed -n 's/.*libnvidia-ml\.so\.1 .*=> //p' | head -1)
    [ -z "${FAKE:-}" ] || real=$fakes/libnvidia-ml.so.1
    real=${NVML:-$real}
    [ -n "$real" ] || { echo "no libnvidia-ml.so.1 in ldconfig -p: NVML=FILE"; return; }
    rm -rf "$counts"; mkdir "$counts"
    HEAL_UNDER="env NVML_COUNT_REAL=$real NVML_COUNT_DIR=$counts LD_PRELOAD=$PWD/$build/tests/gpu/nvml_count.so" \
        heals "$ranks" 4 "${pauses[nccl]}" '' -- "$@" || return
    echo "with the shim: ms to the first all-reduce: $(column 8)"
    python3 - "$counts"/* <<'PYTHON'
import collections, re, statistics, sys
of = {"first init": collections.defaultdict(dict), "later inits": collections.defaultdict(dict)}
for path in sys.argv[1:]:
    for n, name, calls, ms in re.findall(r"init (\d+): (\w+) (\d+) ([\d.]+)", open(path).read()):
        of["first init" if n == "1" else "later inits"][path, n][name] = int(calls), float(ms)
for which, inits in of.items():
    totals = [sum(ms for _, ms in init.values()) for init in inits.values()]
    print(f"{which}, {len(inits)} of them: NVML takes a median of {statistics.median(totals):.1f} ms each" if totals else f"{which}: no call of NVML")
    names = {name for init in inits.values() for name in init}
    rows = [(statistics.median(init.get(name, (0, 0))[1] for init in inits.values()),
             statistics.median(init.get(name, (0, 0))[0] for init in inits.values()), name) for name in names]
    for ms, calls, name in sorted(rows, reverse=True)[:8]:
        print(f"    {ms:8.2f} ms {calls:6.0f} calls  {name}")
PYTHON
}
# train_survives RANKS options...: the same loss with and without kills
train_survives() {
    local ranks=$1 options; shift
    options=$*
    OPTIONS=$options TOLERANCE=1e-2 NPROC=$ranks limited 200 examples/train/survive.sh "$launch" "$train" "${KILLS:-10}" "${STEPS:-4000}" >"$dir/err" 2>&1 ||
        { fail "train, $ranks ranks, $options"; goal missed "examples/train with ${KILLS:-10} kills, $ranks ranks, $options: the same loss" "see its log"; return; }
    tail -n 3 "$dir/err"
    goal ok "examples/train with ${KILLS:-10} kills, $ranks ranks, $options: the same loss" "$(tail -n 1 "$dir/err")"
}
