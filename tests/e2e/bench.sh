#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 240
# The harness behind `make bench` measures, and writes what it says it writes. Nothing here looks at a duration.
. "$SRC/tests/e2e/lib.sh"
sanitized && skip "needs the plain build"
bench() { timeout -k 5 100 env BUILD="$BUILD" python3 "$SRC/tests/bench/run.py" "$@" >out 2>err </dev/null; rc=$?; }
bench torn starts --quick --starts 12 --json got.json; expect 0 "two cheap items"
check "a table" has '^torn or lost lines of 8 x 5000 .* 0 +ok$' out
cat >shape.py <<'P'
import json
got = json.load(open("got.json"))
assert got["format"] == 1 and got["quick"] is True and got["items"] == ["torn", "starts"], got
assert got["failed"] == [], got["failed"]
for key in ("cpu", "cores", "kernel", "launch", "date"):
    assert got["machine"][key], key
keys = {"item", "name", "unit", "ours", "peer", "peers", "ratio", "goal", "value", "limit", "verdict", "size"}
for row in got["rows"]:
    assert set(row) == keys, row
    assert row["item"] in got["items"] and row["verdict"] in ("ok", "over", "info"), row
    for samples in (row["ours"], row["peers"]):
        assert samples is None or samples["n"] >= 1, row
        if samples:
            order = [samples[key] for key in ("least", "q1", "median", "q3", "most")]
            assert order == sorted(order), row
    assert (row["peers"] is None) == (row["peer"] is None), row
for name in ("torn or lost lines of 8 x 5000", "hangs in 12 starts of 1 to 256", "wrong exit codes in these"):
    mine = [row for row in got["rows"] if row["name"] == name and row["peer"] is None]
    assert len(mine) == 1 and mine[0]["value"] == 0 and mine[0]["verdict"] == "ok", (name, mine)
for skipped in got["skipped"]:
    assert set(skipped) == {"item", "what", "why"} and skipped["why"], skipped
P
check "the JSON's shape" python3 shape.py
markdown() { python3 "$SRC/tests/bench/run.py" --markdown "$@" >out 2>err </dev/null; rc=$?; }
markdown got.json; expect 0 "the table of a README from it"
check "names the machine" has '^[0-9-]*, .* cores, .*Linux.*Medians' out
check "has a row for what was measured" has '^. torn or lost lines of 8 x 5000 . 0 .*. 0 .$' out
markdown shape.py; expect 2 "a file of another kind"; check "is told" has 'shape.py: not what --json writes' err
# Costs that double with the size are linear, those of all pairs are not.
cat >grows.py <<'P'
import sys
sys.path.insert(0, sys.argv[1])
import growth, measure
for power in (0, 1, 2):
    e = growth.exponent({n: 7 * n**power for n in (1, 2, 4, 8, 16, 64, 256, 1024)})
    assert abs(e - power) < 1e-9, (power, e)
assert growth.exponent({1: 5}) is None
class Bench: results = measure.Results()
growth.show(Bench, "pairs", "worker", "us", "us", 1, {n: [n * n] for n in (1, 8, 64)})
growth.show(Bench, "each", "worker", "us", "us", 1, {n: [10 + n] for n in (1, 8, 64)})
rows = Bench.results.rows
assert [r["size"] for r in rows] == [1, 8, 64, None] * 2 and [rows[i]["verdict"] for i in (3, 7)] == ["over", "ok"], rows
P
check "growth is told from its series" python3 grows.py "$SRC/tests/bench"
bench torn starts --quick --limit 0.000001 --json got.json; expect 0 "no time at all"
check "what was not begun is named" has '^skipped: torn: all of it: the time is over' out
# A launcher that tears lines and one that fails are seen.
mkdir -p broken/tests; ln -s "$BUILD/tests/bench" broken/tests/bench
worker broken/launch <<'W'
#!/bin/sh
[ "$1" = --version ] && { echo broken; exit 0; }
echo half a line; exit 7
W
BUILD=$PWD/broken bench torn starts --quick --starts 12 --json got.json; expect 0 "a measurement that is over its goal is one"
check "torn lines are counted" has '^torn or lost lines of 8 x 5000 +40000 .* over$' out
check "wrong exit codes too" has '^wrong exit codes in these +12 .* over$' out
BUILD=$PWD/broken bench starts --quick --starts 6 --strict --json got.json; expect 1 "--strict makes it a failure"
BUILD=$PWD/broken bench memory --quick --json got.json; expect 1 "what could not be measured is one"
check "and is named" has '^FAILED: memory: 8 workers did not start' out
bench nonsense; expect 2 "an unknown item"; check "lists those there are" has 'start, starts, memory' err
bench --starts 0; expect 2 "no starts"
BUILD=$PWD/nowhere bench start; expect 2 "nothing built"; check "says what to do" has 'make bench' err
finish
