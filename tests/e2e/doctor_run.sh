#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# launch doctor RUN: names the rank that holds up the others, by liblaunch's counters, by /proc or by NCCL's RAS.
. "$SRC/tests/e2e/lib.sh"
ID=doc$$
doctor() { timeout -k 5 30 "$LAUNCH" doctor "$@" >out 2>err; rc=$?; }
says() { doctor $ID; has "$1" out; }
start() { "$LAUNCH" --run-id=$ID "$@" >job.out 2>job.err </dev/null & pid=$!; }
pids() { "$LAUNCH" status $ID --json | sed -n 's/^ *{"rank": [0-9]*, "pid": \([0-9]*\),.*/\1/p'; }
end() { "$LAUNCH" stop $ID --now >stop.out 2>&1; wait $pid 2>/dev/null; }

# Rank 2 stays away from a barrier, then rank 1 is stopped inside of it.
start -n 4 "$BUILD/tests/fake/join_job" 2=stay
until_true says 'rank 2 \(pid [0-9]+\) holds up the others: it hangs before collective 1' || fail "the straggler is named: $(cat out err)"
expect 1 "a job that hangs"
check "ranks in the same place share a line: $(cat out)" has '^  ranks 0, 1, 3: in collective 1' out
check "NCCL could not be looked at, and why" has '^NCCL: could not look \(no rank has NCCL_RAS_ADDR' out
one=$(pids | sed -n 2p); kill -STOP "$one"
doctor $ID --json; kill -CONT "$one"; expect 1 "a stopped rank"
check "it is named: $(cat out)" python3 - <<'P'
import json
d = json.load(open("out"))
assert d["stuck"] and d["culprit"] == 1 and "stopped" in d["why"] and d["ranks"][1]["stopped"], d
assert [r["collectives_entered"] for r in d["ranks"]] == [1, 1, 0, 1], d
P
end

# One that moves.
worker busy.sh <<'W'
#!/bin/bash
while echo step; do read -r -t 0.1 <> <(:); done
W
start -n 2 ./busy.sh; until_true says 'ranks 0, 1 moved within' || fail "a job that moves: $(cat out err)"
expect 0 "a job that moves"; check "nobody is blamed" not has 'holds up' out; end

# What stands in the way is seen through NCCL only: rank 1 has launched one operation less. (The text of older
# releases: tests/agent/test_ras.c.) Then the answer is nonsense, then there is none.
worker ras.py <<'W'
#!/usr/bin/env python3
import socket, sys
with socket.create_server(("127.0.0.1", 0)) as s:
    print(s.getsockname()[1], flush=True)
    held = []
    while True:
        c = s.accept()[0]
        how, *pid = open("how").read().split()
        if how == "silent":
            held.append(c)
            continue
        f = c.makefile("w")
        asked = c.makefile("r")
        while (line := asked.readline()) and "STATUS" not in line:
            answer = "SERVER PROTOCOL 2" if line[0] == "C" else "OK"
            f.write(answer + "\n")
        if how == "json":
            ranks = ",\n".join('{"rank": %d, "pid": %s, "status": {"init_state": 0, "async_error": 0}, "collective_counts": {"AllReduce": %d}}'
                               % (i, p, 7 - i) for i, p in enumerate(pid))
            f.write('{\n"nccl_version": "2.28.9",\n"communicators": [{"hash": "0xae94", "ranks": [%s], "missing_ranks": []}]}\n' % ranks)
        else:
            f.write("\033[2JHTTP/1.1 400 Bad Request\n" * 50)
        f.close(); asked.close(); c.close()
W
echo silent >how; ./ras.py >port & ras=$!
until_true test -s port
NCCL_RAS_ADDR=127.0.0.1:$(cat port) start -n 2 sleep $TAG; until_true running 2
echo json $(pids) >how; doctor $ID; expect 1 "NCCL's counts"
check "the straggler is named: $(cat out)" has 'rank 1 \(pid [0-9]+\) holds up the others: it has, in NCCL, AllReduce .*launched 6, others 7' out
echo evil >how; doctor $ID; check "nonsense is shown, not believed: $(cat out)" has 'is not understood' out
check "without controls" not has $'\x1b' out; check "and not all of it" test "$(wc -l <out)" -lt 40
echo silent >how; doctor $ID; expect 1 "a server that says nothing"
check "is left alone: $(cat out)" has '^NCCL: could not look \(127.0.0.1:[0-9]*: no answer within' out
kill $ras; end

doctor $ID; expect 2 "a job that is over"; check "one line: $(cat err)" has "no job $ID is running" err
finish
