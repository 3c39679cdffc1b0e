#!/bin/bash
# SPDX-License-Identifier: MIT
# survive.sh LAUNCH TRAIN [KILLS [STEPS]]: trains twice, once undisturbed and once while random ranks are killed with SIGKILL,
# and compares the loss. Exit code 0: the same bits; with TOLERANCE=1e-2, the same but for that part of it. NPROC=4; OPTIONS: more
# of launch's, as --share-gpus.
launch=$1 train=$2 kills=${3:-20} steps=${4:-20000}
calm_options=$(grep -o -- '--share-gpus' <<<"${OPTIONS:-}")
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT && mkfifo "$dir/progress" || exit 1

calm=$("$launch" --nproc-per-node="${NPROC:-4}" $calm_options "$train" "$steps" | tail -1)
echo "undisturbed:   $calm"

"$launch" --nproc-per-node="${NPROC:-4}" --on-failure=heal --max-restarts=1000 --standby=exec ${OPTIONS:-} "$train" "$steps" \
    >"$dir/progress" 2>"$dir/log" &
job=$! done=0 agent=
# Rank 0 tells of every 100 steps; then one of the agent's children is killed, until enough ranks were.
while read -r line; do
    last=$line
    [ $done -lt "$kills" ] || continue
    agent=${agent:-$(pgrep -P $job)}
    mapfile -t pids < <(pgrep -P "$agent")
    [ ${#pids[@]} = 0 ] || kill -9 "${pids[RANDOM % ${#pids[@]}]}"
    done=$(grep -c 'was killed by SIGKILL.*is replaced' "$dir/log")
done <"$dir/progress"
wait $job || { cat "$dir/log"; exit 1; }
echo "after $done kills: $last"
[ $done -ge "$kills" ] || exit 1
[ "$last" = "$calm" ] || awk -v a="$calm" -v b="$last" -v t="${TOLERANCE:-0}" \
    'function loss(text) { sub(/.*loss /, "", text); return text + 0 }
     function off(x) { return x < 0 ? -x : x }
     BEGIN { exit !(off(loss(a) - loss(b)) <= t * loss(a)) }'
