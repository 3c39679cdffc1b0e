#!/bin/bash
# SPDX-License-Identifier: MIT
# survive.sh LAUNCH TRAIN [KILLS [STEPS]]: trains twice, once undisturbed and once while random ranks are killed with SIGKILL,
# and compares the loss. Exit code 0: the same bits.
launch=$1 train=$2 kills=${3:-20} steps=${4:-20000}
dir=$(mktemp -d) && trap 'rm -rf "$dir"' EXIT && mkfifo "$dir/progress" || exit 1

calm=$("$launch" --nproc-per-node=4 "$train" "$steps" | tail -1)
echo "undisturbed:   $calm"

"$launch" --nproc-per-node=4 --on-failure=heal --max-restarts=1000 --standby=exec "$train" "$steps" \
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
[ "$last" = "$calm" ] && [ $done -ge "$kills" ]
