#!/bin/bash
# SPDX-License-Identifier: MIT
# launch bench: what it shows of a job's records, files, exit codes, signals; with a job that only writes records, and, where it
# was built, with the real one on host memory.
. "$SRC/tests/e2e/lib.sh"
gpus 0 # no GPU
export LAUNCH_BENCH_JOB=$PWD/job

# records FILE: what rank 0 of a good run writes. Lines before "---" are its beginning.
cat >good <<'R'
{"bench": {"version": 1, "backend": "host", "collective": "all_reduce", "ranks": 2, "library": 0, "headers": 0, "min_bytes": 8, "max_bytes": 16, "step_bytes": 0, "step_factor": 2, "iterations": 20, "warmup": 1, "check": 1, "runtime": 0, "driver": 0}}
{"device": {"rank": 0, "pid": 123, "host": "box", "device": -1, "bus": "", "name": "host memory", "uuid": ""}}
{"device": {"rank": 1, "pid": 124, "host": "box", "device": -1, "bus": "", "name": "host memory", "uuid": ""}}
{"at": {"size": 8, "type": "float", "redop": "sum", "root": -1}}
{"result": {"size": 8, "count": 2, "type": "float", "redop": "sum", "root": -1, "out_of_place": {"time": 2.5, "alg_bw": 0.0032, "bus_bw": 0.0032, "nwrong": 0, "checked": 1}, "in_place": {"time": 1.5, "alg_bw": 0.0053, "bus_bw": 0.0053, "nwrong": 0, "checked": 1}}}
{"at": {"size": 16, "type": "float", "redop": "sum", "root": -1}}
{"result": {"size": 16, "count": 4, "type": "float", "redop": "sum", "root": -1, "out_of_place": {"time": 4, "alg_bw": 30, "bus_bw": 30, "nwrong": 0, "checked": 1}, "in_place": {"time": 4, "alg_bw": 10, "bus_bw": 10, "nwrong": 0, "checked": 1}}}
{"end": {"wrong": 0, "timeout": false}}
R
sed 's/"nwrong": 0, "checked": 1}}}/"nwrong": 3, "checked": 1}}}/; s/"wrong": 0/"wrong": 2/' good >wrong
head -5 good >half
sed 's/"time": 4,/"time": -4,/' good >broken
sed '7d; s/"timeout": false/"timeout": true/' good >late
{ head -3 good; for pair in '0, "to": 1' '1, "to": 0'; do
    echo '{"pair": {"from": '"$pair"', "size": 64, "time": 1, "alg_bw": 4, "both_bw": 6, "nwrong": 0}}'; done; tail -1 good; } >pairs
worker job <<'J'
#!/bin/sh
[ "$RANK" = 0 ] || exit 0
echo "$*" >arguments
echo 'NCCL INFO of the job'
cat "${RECORDS:-good}"
[ -n "${HUSH:-}" ] || echo 'said by the job' >&2
[ -z "$STAY" ] || exec sleep "$STAY"
exit "${CODE:-0}"
J

# ---- what is shown ----
run bench -g 2 -b 8 -e 16 -f 2; expect 0 "a run"
check "the job is asked for it: $(cat arguments)" has '^all_reduce -b 8 -e 16 -f 2 -n 20 -w 1 -c 1 -T 0 -d float -o sum -r 0$' arguments
check "the first line says what it ran on" has '^# launch bench .*: host memory of 2 processes' out
check "the job's own lines are there" has '^NCCL INFO of the job$' out
check "its stderr is ours" has '^said by the job$' err
sed 1d out | grep -v NCCL >shown
# Those who parse nccl-tests: the last word of a line, columns counted from the end, rows between two lines, a pattern.
check "what parsers of nccl-tests find" python3 - shown <<'P'
import re, sys
text = open(sys.argv[1], encoding="utf-8").read()
lines = text.splitlines()
assert re.search(r"#\s*Avg bus bandwidth\s*:\s*(\d*\.\d+)\s", text).group(1) == "10.0021", "average"
assert [l.split()[-1] for l in lines if l.startswith("# Avg bus bandwidth")] == ["10.0021"]
assert re.search(r"# Out of bounds values : (\d+) OK", text).group(1) == "0"
head = next(i for i, l in enumerate(lines) if "out-of-place" in l)
bounds = next(i for i, l in enumerate(lines) if "Out of bounds values" in l)
rows = [re.sub(" +", " ", l.strip(" ")).split(" ") for l in lines[head + 3:bounds]]
assert [len(r) for r in rows] == [13, 13], rows
assert [float(r[-6]) for r in rows] == [0.0, 30.0] and [float(r[-2]) for r in rows] == [0.01, 10.0], rows
labels = lines[head + 1].lstrip("# ").split()
assert labels[:5] == ["size", "count", "type", "redop", "root"] and labels.count("busbw") == 2, labels
row = re.compile(r"^\s*(\d+)\s+(\d+)\s+(\w+)\s+(\w+)\s+(-?\d+)((?:\s+[\d.e+]+){3})\s+(\d+|N/A)((?:\s+[\d.e+]+){3})\s+(\d+|N/A)\s*$", re.M)
assert [m.group(1) for m in row.finditer(text)] == ["8", "16"]
device = re.compile(r"#\s+Rank\s+(\d+) Group\s+\d+ Pid\s+(\d+) on\s+(\S+) device\s+(-?\d+) \[([^]]+)\] (.*)")
assert device.findall(text)[1] == ("1", "124", "box", "-1", "host", "host memory")
P

run bench -g 2 --format=csv; expect 0 "CSV"
check "a line for each half" diff - out <<'C'
size,count,type,redop,root,place,time_us,algbw,busbw,wrong,checked
8,2,float,sum,-1,out,2.500000,0.003200,0.003200,0,1
8,2,float,sum,-1,in,1.500000,0.005300,0.005300,0,1
16,4,float,sum,-1,out,4.000000,30.000000,30.000000,0,1
16,4,float,sum,-1,in,4.000000,10.000000,10.000000,0,1
C
check "the job's own lines go elsewhere" has '^NCCL INFO of the job$' err

SECRET_TOKEN=x NCCL_ALGO=Ring run bench -g 2 -J kept.json; expect 0 "-J"
run bench -g 2 -J kept.json --format=json; expect 0 "-J again"
check "it is told which file: $(cat err)" has 'kept.json is there already: the results are in kept.json.0$' err
check "both are what nccl-tests writes" python3 - kept.json kept.json.0 out <<'P'
import json, sys
runs = [json.load(open(name, encoding="utf-8")) for name in sys.argv[1:]]
for run in runs:
    assert run["version"] == 3 and run["config"]["ranks"] == 2 and run["config"]["step_factor"] == 2
    assert [r["size"] for r in run["results"]] == [8, 16] and run["results"][0]["root"] == "-1"
    assert run["results"][1]["out_of_place"]["bus_bw"] == 30 and run["results"][1]["in_place"]["nwrong"] == 0
    assert run["out_of_bounds"] == {"count": 0, "okay": "true"} and run["errors"] == []
    assert run["average_bus_bandwidth"]["okay"] == "unchecked" and run["config"]["devices"][1]["pid"] == 124
    assert not any("SECRET" in v for v in run["env"])
assert "NCCL_ALGO=Ring" in runs[0]["env"], runs[0]["env"]
P

gpus 2
RECORDS=pairs run bench -g 2 --pairs; expect 0 "pairs"
{ head -3 good; for size in 64 128 256; do for pair in '0, "to": 1' '1, "to": 0'; do
    echo '{"pair": {"from": '"$pair"', "size": '$size', "time": 1, "alg_bw": 4, "both_bw": 6, "nwrong": 0}}'; done; done; tail -1 good; } >sizes
RECORDS=sizes run bench -g 2 --pairs -b 64 -e 256 -f 2; expect 0 "pairs of several sizes"
check "each has its matrices: $(cat out err)" [ "$(grep -cE '^# (64|128|256) bytes from each' out)" = 3 ]
RECORDS=pairs run bench -g 2 --pairs; expect 0 "pairs"
gpus 0
check "the job is asked for pairs" has '^sendrecv .* --pairs$' arguments
check "a matrix" has '^       0         X      4.00$' out
check "both ways" has '^       1      6.00         X$' out
check "none is slow" has '^# no slow pair' out

terminal() { TERM=xterm timeout -k 5 30 python3 -c 'import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))' "$LAUNCH" "$@" >out 2>&1 </dev/null; }
# The job's own stderr goes to the terminal when it comes, progress or not.
check "a terminal sees progress" eval "HUSH=1 terminal bench -g 2; has 'all_reduce of 16 bytes, float, sum: 1 measured' out"
check "and it is erased before anything else is written" not has "$(printf 'measured\r[^\033]')" out

# ---- exit codes ----
RECORDS=wrong run bench -g 2; expect 1 "wrong values"
check "they are counted" has '^# Out of bounds values : 2 FAILED' out
check "nothing else is said: $(cat err)" not has '^launch:' err
NCCL_TESTS_MIN_BW=11.2 run bench -g 2; expect 1 "too slow"; check "it says so" has '^# Avg bus bandwidth    : 10.0021 FAILED' out
NCCL_TESTS_MIN_BW=11.1 run bench -g 2; expect 0 "a tenth is forgiven"; check "it says so" has '^# Avg bus bandwidth    : 10.0021 OK' out
RECORDS=half CODE=7 run bench -g 2 -J half.json; expect 1 "a job that dies"
check "what came is shown" has '^ +8 +2 +float' out
check "no verdict" not has 'Avg bus bandwidth' out
check "launch reports the failure" has 'rank 0 of 2 failed.*exited with code 7' err
check "and it is incomplete" has '^launch: bench: the job ended before all was measured$' err
check "the file says so" has '"errors": \["the job ended before all was measured"\]' half.json
RECORDS=half run bench -g 2; expect 1 "a job that ends too soon"
RECORDS=broken run bench -g 2; expect 1 "a record that makes no sense"
check "it is told: $(cat err)" has "^launch: bench: the job's record 'result' makes no sense: look at its 'time'$" err
RECORDS=late CODE=124 run bench -g 2 -T 3; expect 124 "a wait that took too long"; check "which" has 'longer than -T 3 s' err
LAUNCH_BENCH_JOB=/nowhere run bench; expect 2 "no job"; check "where it was looked for" has "^launch: LAUNCH_BENCH_JOB: '/nowhere': No such file" err
"$LAUNCH" bench -g 2 >/dev/full 2>err; rc=$?; expect 125 "a full disk"

# ---- signals; nothing stays behind ----
for sig in INT TERM; do
    RECORDS=half STAY=$TAG env --default-signal=INT "$LAUNCH" bench -g 2 >out 2>err </dev/null & pid=$!
    check "$sig: it runs" until_true running 1
    kill -$sig $pid; until_true running 0 || { fail "$sig: it goes on"; kill -9 $pid; }; wait $pid; rc=$?
    [ $sig = INT ] && expect 130 "$sig" || expect 143 "$sig"
    check "$sig: what came is shown" has '^ +8 +2 +float' out
    check "$sig: the worker is gone" running 0
done
RECORDS=half STAY=$TAG env --default-signal=INT "$LAUNCH" bench -g 2 >out 2>err </dev/null & pid=$!
check "it runs" until_true running 1
kill -9 $pid; wait $pid 2>/dev/null; check "kill -9: the worker is gone" until_true running 0

# ---- mistakes: one line, nothing started ----
bad() { # PATTERN arguments...
    rm -f arguments
    run bench "${@:2}"; expect 2 "${*:2}"
    check "one line for ${*:2}: $(cat err)" [ "$(wc -l <err)" = 1 ]
    check "${*:2} is explained: $(cat err)" has "$1" err
    check "nothing was started for ${*:2}" [ ! -e arguments -a ! -s out ]
}
bad "^launch: -b: must be a size .*, not '8X'$" -b 8X
bad "^launch: -b: 1073741824 bytes are more than the 1048576 of -e$" -b 1G -e 1M
bad "did you mean float\?$" -d flaot
bad "^launch: scatter: there is no GPU .* only all_reduce, all_gather and broadcast" scatter
bad "^launch: -r: there is no rank 2, the ranks are 0 to 1$" broadcast -r 2 -g 2
bad "^launch: -t: launch bench does not have this flag of nccl-tests" -t 2
bad "^launch: --affinity: must be " --affinity=x
bad "^launch: --gpus: this machine has no GPU" --gpus=1
bad "^launch: -J: /nonexistent/x.json: No such file" -J /nonexistent/x.json
NCCL_TESTS_MIN_BW=fast bad "^launch: NCCL_TESTS_MIN_BW: must be a bandwidth in GB/s, not 'fast'$" -g 2
gpus 2
bad "^launch: -g: 3 ranks for 2 GPUs: ask for fewer, or --share-gpus$" -g 3
run bench; expect 0 "two GPUs"; check "a rank for each, and sizes up to 1 GiB" has '^all_reduce -b 8 -e 1073741824 -f 2 ' arguments
run bench -g 3 --share-gpus; expect 0 "shared GPUs"
run bench --help; expect 0 "help"; check "it names the collectives" has ' alltoall gather scatter sendrecv' out

# ---- the real job ----
unset LAUNCH_BENCH_JOB
gpus 0
if [ -x "$BUILD/launch-bench" ]; then
    run bench -g 2 -b 8 -e 64K -f 8 -n 3; expect 0 "the real job"
    check "it says what on: $(head -6 out)" has '^#  Rank  1 Group  0 Pid +[0-9]+ on +[^ ]+ device -1 \[host\] host memory$' out
    check "five sizes: $(tail -12 out)" [ "$(grep -cE '^ +[0-9]+ +[0-9]+ +float +sum +-1( +[0-9.]+){3} +0( +[0-9.]+){3} +0$' out)" = 5 ]
    for collective in all_gather broadcast; do
        run bench $collective -g 2 -b 64 -e 64 -d all -n 1; expect 0 "$collective"
        check "$collective of four types: $(cat out)" [ "$(grep -cE '^ +64 +(4|8|16) +[a-z0-9]+ +none' out)" = 4 ]
    done
fi
finish
