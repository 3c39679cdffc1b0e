#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 60
# Known failures are named: in the report of a job that failed, and by launch doctor --log.
. "$SRC/tests/e2e/lib.sh"

worker shm.sh <<'W'
#!/bin/sh
[ $RANK = 1 ] || exec sleep 60
cat >&2 <<T

[2026-06-23 15:45:07] gpu7:812:812 [1] misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-Jq to 9637892 bytes
RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:1269, unhandled system error (run with NCCL_DEBUG=INFO for details)
T
exit 1
W
run --nproc-per-node=2 --log-dir=runs --run-id=night --tee=3 ./shm.sh; expect 1 "a job without shared memory"
check "the cause is named, with where it was discussed: $(cat err)" has '^launch:   known: /dev/shm is full.*\(NVIDIA/nccl#525' err
check "the fix" has '^launch:   try: docker run --shm-size' err
check "in failure.json too" python3 - <<'P'
import glob, json
known = json.load(open(glob.glob("runs/night_*/failure.json")[0]))["known"]
assert known["name"] == "shm-full" and "/dev/shm" in known["cause"] and "--shm-size" in known["fix"], known
P
run -n 2 sh -c '[ $RANK = 1 ] || exec sleep 60; echo "a.cc:1 NCCL WARN odd thing" >&2; echo ncclInternalError >&2; exit 1'
check "of a vague error NCCL's last warning is told: $(cat err)" has "NCCL's last warning: odd thing" err
run -n 2 sh -c '[ $RANK = 1 ] || exec sleep 60; echo boom >&2; exit 1'; check "nothing is known of others" not has known err

doctor() { timeout -k 5 30 "$LAUNCH" doctor "$@" >out 2>err; rc=$?; }
doctor --log runs; expect 1 "a log directory with a known failure"
check "the place: $(cat out)" has '^runs/night_[^/]*/attempt_0/1/stderr.log:2: shm-full$' out
check "consequences come last" test "$(grep -o 'shm-full\|nccl-error' out | tr '\n' ' ')" = "shm-full nccl-error "
doctor --log <(cat runs/*/attempt_0/1/stderr.log) --json; expect 1 "a pipe"
check "JSON: $(cat out)" python3 -c 'import json
d = json.load(open("out")); assert [k["line"] for k in d["known"]] == [2, 3] and d["known"][1]["vague"] and d["files"] == 1'
doctor --log - <runs/*/attempt_0/1/stderr.log; expect 1 "stdin"; check "stdin is called so" has '^stdin:2: ' out
printf 'all is well\n' >good.log; doctor --log good.log; expect 0 "a good log"
printf '\033[2Jbind: Address already in use\r\n' >evil.log; doctor --log=evil.log; check "no controls" not has $'\x1b' out
doctor --help; expect 0 "--help"; check "it tells the exit codes: $(cat out)" has '^Exit code: 0; 1 something is broken' out
mkdir empty
for bad in nowhere.log /dev/zero empty; do
    doctor --log $bad; expect 2 "no log: $bad"; check "one line: $(cat err)" test "$(wc -l <err)" = 1
done
finish
