#!/bin/bash
# SPDX-License-Identifier: MIT
# launch bench --save, --compare, --history, --format=svg: with a job that only writes records of four GPUs.
. "$SRC/tests/e2e/lib.sh"
gpus 4
export LAUNCH_BENCH_JOB=$PWD/job XDG_STATE_HOME=$PWD/state
store=$PWD/state/launch/baselines

# What rank 0 writes: times are those of NVLink, longer by $SCALE, at size $AT by $SLOW on top, and by what ./noise has for
# this run.
worker job <<'J'
#!/usr/bin/env python3
import json, os, sys
if os.environ["RANK"] != "0":
    sys.exit(0)
env = os.environ.get
runs = int(open("runs").read()) if os.path.exists("runs") else 0
open("runs", "w").write(str(runs + 1))
noise = [float(n) for n in env("NOISE", "1").split()]
scale, slow, at = float(env("SCALE", "1")) * noise[runs % len(noise)], float(env("SLOW", "1")), int(env("AT", "0"))
put = lambda **record: print(json.dumps(record), flush=True)
put(bench=dict(version=1, backend="nccl", collective=sys.argv[1], ranks=4, library=int(env("LIBRARY", "22809")), headers=22809,
               min_bytes=1024, max_bytes=1 << 30, step_factor=4, iterations=20, warmup=1, check=1, runtime=13000, driver=13000))
for r in range(4):
    put(device=dict(rank=r, pid=100 + r, host="here", device=r, bus="0000:%02x:00.0" % (16 + r), name=env("NAME", "NVIDIA H200"),
                    uuid="GPU-%08x" % (int(env("UUID", "160")) + r)))
def half(size, us):
    alg = size / us / 1e3
    return dict(time=us, alg_bw=alg, bus_bw=1.5 * alg, nwrong=int(env("WRONG", "0")), checked=1)
size = 1024
while size <= int(env("LAST", str(1 << 30))):
    us = scale * (20 + size * 1.5 / 365e3)
    put(result=dict(size=size, count=size // 4, type=env("TYPE", "float"), redop="sum", root=-1,
                    out_of_place=half(size, us * (slow if size == at else 1)), in_place=half(size, us)))
    size *= 4
put(end=dict(wrong=int(env("WRONG", "0")), timeout=False))
J
bench() { rm -f runs; run bench "$@"; }
one_line() { [ "$(wc -l <err)" = 1 ] && has "$1" err; }

# ---- nothing to compare with ----
bench --compare; expect 2 "no baseline yet"
check "it says so before anything runs: $(cat err)" one_line '^launch: (error: )?--compare: no baseline is kept; make one with --save$'
check "nothing was started" not test -e runs
bench --history; expect 2 "no history yet"

# ---- saved, compared ----
NOISE="1 1.004 0.996" bench --save; expect 0 "saved"
check "the sweep ran three times" test "$(cat runs)" = 3
check "and was shown once" test "$(grep -c '1073741824' out)" = 1
check "where it is kept is told" has '^# Saved as baseline: all_reduce, 4 ranks, 1K to 1G, 4 x NVIDIA H200; 3 runs: .*/state/launch/baselines/all_reduce-4-[0-9a-f]{16}.json$' out
check "there is one file, which only its owner writes" test "$(stat -c %a "$store"/*.json)" = 644 -a "$(ls -A "$store" | wc -l)" = 1
own=$(echo "$store"/*.json)
bench --compare; expect 0 "the same again"
check "as fast: $(tail -3 out)" has '^# Compared with baseline: as fast, at all 11 sizes$' out
SCALE=1.04 bench --compare; expect 0 "noise"
AT=67108864 SLOW=1.25 bench --compare; expect 1 "a size that got slower by 20 % of its bandwidth"
check "it is named: $(tail -3 out)" has '^# Compared with baseline: SLOWER at 1 of 11 sizes: 64M out-of-place by 25.0 % \(limit 10 %\)$' out
check "lines of the table are comments" not has '^[^#]*slower' out
AT=1024 SLOW=1.20 bench --compare; expect 0 "what is noise in a small message"
SCALE=0.5 bench --compare; expect 0 "faster"
check "faster is said" has '^# Compared with baseline: faster at 11 of 11 sizes' out
AT=1024 SLOW=1.20 bench --compare --tolerance=10; expect 1 "a tolerance of one's own"
bench --history; expect 0 "history"
check "it has all runs, and what came of them: $(cat out)" test \
    "$(grep -oE '(saved|as fast|faster|slower)( at [0-9]+ sizes?)?$' out | xargs)" = \
    'saved as fast as fast slower at 1 size as fast faster at 11 sizes slower at 1 size'

# ---- other formats keep their stdout ----
AT=67108864 SLOW=1.25 bench --compare --format=json; expect 1 "slower, as JSON"
check "stdout is JSON" python3 -m json.tool out /dev/null
check "the verdict is on stderr" has 'SLOWER at 1 of 11 sizes' err
AT=67108864 SLOW=1.25 NAME='H200 <&"]]>' bench --format=svg; expect 0 "a picture"
check "of hostile names" python3 -c 'import xml.dom.minidom as m; m.parse("out")'
AT=67108864 SLOW=1.25 bench --compare --format=svg; expect 1 "a picture beside the baseline"
check "it is one, with its parts" python3 - <<'P'
import xml.dom.minidom
page = xml.dom.minidom.parse("out")
assert len(page.getElementsByTagName("polyline")) == 3 and len(page.getElementsByTagName("polygon")) == 1
P

# ---- what is not comparable ----
refused() { local what=$1 says=$2; shift 2; expect 2 "$what"; check "$what: $(cat err)" one_line "$says"; }
LIBRARY=23003 bench --compare; refused "another NCCL" 'other software: NCCL: 2.28.9 then, 2.30.3 now \(--across-versions'
LIBRARY=23003 bench --compare --across-versions; expect 0 "another NCCL, if asked for"
check "it is told" has '^# Since then: NCCL 2.28.9, now 2.30.3$' out
UUID=200 bench --compare; refused "another machine, by its key" 'no baseline of this machine and sweep: make one with --save; --history shows the 1 of all_reduce'
UUID=200 bench "--compare=$own"; refused "another machine, by its file" 'baseline: not comparable, another machine: other UUIDs of the GPUs'
NAME='NVIDIA H100 80GB HBM3' bench "--compare=$own"; refused "another model" '4 x NVIDIA H200 then, 4 x NVIDIA H100 80GB HBM3 now'
TYPE=half bench "--compare=$own"; refused "another type" 'another type: float then, half now'
LAST=1048576 bench "--compare=$own"; refused "fewer sizes" 'another sweep: 11 sizes then, 6 now'
bench all_gather "--compare=$own"; refused "another collective" 'another collective: all_reduce then, all_gather now'

# ---- files that are none ----
cp "$own" good.json
bench --save=mine.json --runs=1; expect 0 "a file of one's own"
bench --compare=mine.json; expect 0 "compared with it"
head -c 900 good.json >half.json
bench --compare=half.json; refused "half a file" 'baseline half.json: the file is damaged, perhaps cut short'
check "nothing was started" not test -e runs
sed 's/"format": 1/"format": 7/' good.json >newer.json
bench --compare=newer.json; refused "another format" 'format 7, written by launch .*: save it anew'
echo '{"results": []}' >other.json
bench --compare=other.json; refused "somebody else's JSON" 'does not say what machine it is of'
bench --compare=none.json; refused "no file" 'baseline none.json: No such file'
bench --save=other.json; refused "no overwriting" 'other.json: there is a file that is no baseline: not overwritten'
ln -s good.json link.json
bench --save=link.json; refused "no writing through links" 'link.json: it is a symbolic link'
check "nothing was started" not test -e runs
chmod 777 "$store"
bench --save --runs=1; expect 125 "a store that others may write to"
check "and why" has 'others may write to its directory baselines' err
chmod 755 "$store"

# ---- runs that are no measure ----
WRONG=1 bench --save=wrong.json; expect 1 "wrong values"
check "are shown" has '^# Out of bounds values : .*FAILED' out
check "and not kept" not test -e wrong.json
bench --pairs --save; refused "pairs" '--pairs: --save, --compare and --format=svg are of sweeps'
bench --tolerance=5; refused "a tolerance for nothing" '--tolerance: goes with --compare'
bench --compare --tolerance=x; refused "no percentage" "--tolerance: must be a percentage from 0 to 1000 such as 5, not 'x'"
bench --runs=2; refused "runs for nothing" '--runs: goes with --save'

# ---- what is expected ----
bench; expect 0 "fast as it should be" # no NVLink is known of this machine: nothing is claimed
check "nothing is expected without links" not has 'Expected' out
NAME='NVIDIA GeForce RTX 5090' bench; expect 0 "a model that needs none"
check "the source is named" has '^# Expected bus bandwidth: about 35 GB/s from 64M up \(4 x RTX 5090 over PCIe; source: nccl issue 1639\)$' out
NAME='NVIDIA GeForce RTX 5090' SCALE=20 bench; expect 0 "too slow is a warning"
check "which says by how much: $(tail -2 out)" has '^# WARNING: reached 1[0-9.]+ GB/s, [0-9]+ % of it; below 60 % something is worth a look$' out
finish
