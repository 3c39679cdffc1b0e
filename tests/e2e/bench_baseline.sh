#!/bin/bash
# SPDX-License-Identifier: MIT
# launch bench --save, --compare, --history, --format=svg: with a job that only writes records of four GPUs.
. "$SRC/tests/e2e/lib.sh"
gpus 4
export LAUNCH_BENCH_JOB=$PWD/job XDG_STATE_HOME=$PWD/state
store=$PWD/state/launch/baselines

# NAME CHANGES: what rank 0 writes, in the file NAME. Times are those of NVLink, longer by scale, and at the size `at` by slow.
python3 - <<'P'
import json
def write(name, scale=1, at=0, slow=1, library=22809, model="NVIDIA H200", uuid=160, type="float", last=1 << 30, wrong=0,
          collective="all_reduce"):
    def half(size, us):
        alg = size / us / 1e3
        return dict(time=us, alg_bw=alg, bus_bw=1.5 * alg, nwrong=wrong, checked=1)
    with open(name, "w") as out:
        put = lambda **record: print(json.dumps(record), file=out)
        put(bench=dict(version=1, backend="nccl", collective=collective, ranks=4, library=library, headers=22809, min_bytes=1024,
                       max_bytes=1 << 30, step_factor=4, iterations=20, warmup=1, check=1, runtime=13000, driver=13000))
        for r in range(4):
            put(device=dict(rank=r, pid=100 + r, host="here", device=r, bus="0000:%02x:00.0" % (16 + r), name=model,
                            uuid="GPU-%08x" % (uuid + r)))
        size = 1024
        while size <= last:
            us = scale * (20 + size * 1.5 / 365e3)
            put(result=dict(size=size, count=size // 4, type=type, redop="sum", root=-1,
                            out_of_place=half(size, us * (slow if size == at else 1)), in_place=half(size, us)))
            size *= 4
        put(end=dict(wrong=wrong, timeout=False))
write("same"), write("up", scale=1.004), write("down", scale=0.996), write("noise", scale=1.04), write("fast", scale=0.5)
write("slow", at=64 << 20, slow=1.25), write("slow_small", at=1024, slow=1.2), write("wrong", wrong=1)
write("nccl", library=23003), write("others", uuid=200), write("h100", model="NVIDIA H100 80GB HBM3"), write("half", type="half")
write("short", last=1 << 20), write("gather", collective="all_gather"), write("hostile", model='H200 <&"]]>')
write("rtx", model="NVIDIA GeForce RTX 5090"), write("rtx_slow", model="NVIDIA GeForce RTX 5090", scale=20)
P
# Each run of the sweep writes the next one of $RECORDS, and says in ./runs that it was.
worker job <<'J'
#!/bin/sh
[ "$RANK" = 0 ] || exit 0
echo >>runs
set -- $RECORDS
shift $(($(wc -l <runs) - 1))
cat "$1"
J
# bench FILES options...: FILES, a word, is what the job writes, run by run
bench() { export RECORDS=$1; shift; rm -f runs; run bench "$@"; }
one_line() { [ "$(wc -l <err)" = 1 ] && has "$1" err; }

# ---- nothing to compare with ----
bench same --compare; expect 2 "no baseline yet"
check "it says so before anything runs: $(cat err)" one_line '^launch: (error: )?--compare: no baseline is kept; make one with --save$'
check "nothing was started" not test -e runs
bench same --history; expect 2 "no history yet"

# ---- saved, compared ----
bench "up same down" --save; expect 0 "saved"
check "the sweep ran three times" test "$(wc -l <runs)" = 3
check "and was shown once" test "$(grep -cE '^ +1073741824 ' out)" = 1
check "where it is kept is told" has '^# Saved as baseline: all_reduce, 4 ranks, 1K to 1G, 4 x NVIDIA H200; 3 runs: .*/state/launch/baselines/all_reduce-4-[0-9a-f]{16}.json$' out
check "there is one file, which only its owner writes" test "$(stat -c %a "$store"/*.json)" = 644 -a "$(ls -A "$store" | wc -l)" = 1
own=$(echo "$store"/*.json)
bench same --compare; expect 0 "the same again"
check "as fast: $(tail -3 out)" has '^# Compared with baseline: as fast, at all 11 sizes$' out
bench noise --compare; expect 0 "noise"
bench slow --compare; expect 1 "a size that got slower by 20 % of its bandwidth"
check "it is named: $(tail -3 out)" has '^# Compared with baseline: SLOWER at 1 of 11 sizes: 64M out-of-place by 25.0 % \(limit 10 %\)$' out
check "lines of the table are comments" not has '^[^#]*slower' out
bench slow_small --compare; expect 0 "what is noise in a small message"
bench fast --compare; expect 0 "faster"
check "faster is said" has '^# Compared with baseline: faster at 11 of 11 sizes' out
bench slow_small --compare --tolerance=10; expect 1 "a tolerance of one's own"
bench same --history; expect 0 "history"
check "it has all runs, and what came of them: $(cat out)" test \
    "$(grep -oE '(saved|as fast|faster|slower)( at [0-9]+ sizes?)?$' out | xargs)" = \
    'saved as fast as fast slower at 1 size as fast faster at 11 sizes slower at 1 size'

# ---- other formats keep their stdout ----
bench slow --compare --format=json; expect 1 "slower, as JSON"
check "stdout is JSON" python3 -m json.tool out /dev/null
check "the verdict is on stderr" has 'SLOWER at 1 of 11 sizes' err
bench hostile --format=svg; expect 0 "a picture"
check "of hostile names" python3 -c 'import xml.dom.minidom as m; m.parse("out")'
bench slow --compare --format=svg; expect 1 "a picture beside the baseline"
check "it is one, with its parts" python3 - <<'P'
import xml.dom.minidom
page = xml.dom.minidom.parse("out")
assert len(page.getElementsByTagName("polyline")) == 3 and len(page.getElementsByTagName("polygon")) == 1
P

# ---- what is not comparable ----
refused() { local what=$1 says=$2; shift 2; expect 2 "$what"; check "$what: $(cat err)" one_line "$says"; }
bench nccl --compare; refused "another NCCL" 'other software: NCCL: 2.28.9 then, 2.30.3 now \(--across-versions'
bench nccl --compare --across-versions; expect 0 "another NCCL, if asked for"
check "it is told" has '^# Since then: NCCL 2.28.9, now 2.30.3$' out
bench others --compare; refused "another machine, by its key" 'no baseline of this machine and sweep: make one with --save; the latest of the 1 of all_reduce \(--history\) is not comparable, another machine: other UUIDs of the GPUs$'
bench short --compare; refused "another sweep, by its key" 'is not comparable, another sweep: 11 sizes then, 6 now$'
bench others "--compare=$own"; refused "another machine, by its file" 'baseline: not comparable, another machine: other UUIDs of the GPUs'
bench h100 "--compare=$own"; refused "another model" '4 x NVIDIA H200 then, 4 x NVIDIA H100 80GB HBM3 now'
bench half "--compare=$own"; refused "another type" 'another type: float then, half now'
bench short "--compare=$own"; refused "fewer sizes" 'another sweep: 11 sizes then, 6 now'
bench gather all_gather "--compare=$own"; refused "another collective" 'another collective: all_reduce then, all_gather now'

# ---- files that are none ----
cp "$own" good.json
bench same --save=mine.json --runs=1; expect 0 "a file of one's own"
bench same --compare=mine.json; expect 0 "compared with it"
head -c 900 good.json >half.json
bench same --compare=half.json; refused "half a file" 'baseline half.json: the file is damaged, perhaps cut short'
check "nothing was started" not test -e runs
sed 's/"format": 1/"format": 7/' good.json >newer.json
bench same --compare=newer.json; refused "another format" 'format 7, written by launch .*: save it anew'
echo '{"results": []}' >other.json
bench same --compare=other.json; refused "somebody else's JSON" 'does not say what machine it is of'
bench same --compare=none.json; refused "no file" 'baseline none.json: No such file'
bench same --save=other.json; refused "no overwriting" 'other.json: there is a file that is no baseline: not overwritten'
ln -s good.json link.json
bench same --save=link.json; refused "no writing through links" 'link.json: it is a symbolic link'
check "nothing was started" not test -e runs
chmod 777 "$store"
bench same --save --runs=1; expect 125 "a store that others may write to"
check "and why" has 'others may write to its directory baselines' err
chmod 755 "$store"

# ---- runs that are no measure ----
bench "wrong same same" --save=wrong.json; expect 1 "wrong values"
check "are shown" has '^# Out of bounds values : .*FAILED' out
check "and not kept" not test -e wrong.json
bench same --pairs --save; refused "pairs" '--pairs: --save, --compare and --format=svg are of sweeps'
bench same --tolerance=5; refused "a tolerance for nothing" '--tolerance: goes with --compare'
bench same --compare --tolerance=x; refused "no percentage" "--tolerance: must be a percentage from 0 to 1000 such as 5, not 'x'"
bench same --runs=2; refused "runs for nothing" '--runs: goes with --save'

# ---- what is expected ----
bench same; expect 0 "fast as it should be" # no NVLink is known of this machine: nothing is claimed
check "nothing is expected without links" not has 'Expected' out
bench rtx; expect 0 "a model that needs none"
check "the source is named" has '^# Expected bus bandwidth: about 35 GB/s from 64M up \(4 x RTX 5090 over PCIe; source: nccl issue 1639\)$' out
bench rtx_slow; expect 0 "too slow is a warning"
check "which says by how much: $(tail -2 out)" has '^# WARNING: reached 1[0-9.]+ GB/s, [0-9]+ % of it; below 60 % something is worth a look$' out

finish
