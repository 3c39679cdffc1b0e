#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 300
# launch topo on the machines of tests/machines: text and JSON as recorded there (GOLDEN=write records them anew), pictures that
# are well-formed, and drivers that fail, hang, crash or lose a GPU.
. "$SRC/tests/e2e/lib.sh"
[ -e "$BUILD/tests/fake/libnvidia-ml.so.1" ] || skip "no fake NVML"
machines=$SRC/tests/machines
# Thousands of small files: in memory where that can be had.
roots=$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d -p .)
trap 'rm -rf "$roots"' EXIT

# on MACHINE arguments...: launch topo there
on() {
    local root=$roots/$1
    [ -e "$root" ] || "$machines/mkroot.py" "$machines/$1.machine" "$root"
    export LAUNCH_SYSROOT=$root
    unset FAKE_NVML_MACHINE
    [ ! -e "$root/nvml" ] || { fake_nvml "$root"; export FAKE_NVML_MACHINE=$root/nvml; }
    run topo "${@:2}"
}

golden() { # NAME.EXTENSION of what is in ./out
    [ "${GOLDEN:-}" != write ] || cp out "$machines/$1"
    diff "$machines/$1" out >difference || { fail "$1 is not what was recorded"; head -20 difference; }
}

# Every file in shown/: JSON, XML without scripts, DOT with statements and quotes that close and edges between declared nodes.
all_well_formed() {
    python3 - <<'P'
import json, os, re, xml.dom.minidom
string = r'"(?:[^"\\]|\\.)*"'
value = rf'(?:{string}|\w+)'
attributes = rf'\[{value}={value}(?:, {value}={value})*\]'
statement = rf'\s*(?:(?:graph|node|edge|\w+|\w+ -- \w+)(?: {attributes})?;|{value}={value};|(?:graph|subgraph) \w+ {{|}})'
def dot(text):
    assert re.fullmatch(rf'(?:{statement})+\s*', text), "no DOT"
    bare = re.sub(string, "", text)
    assert bare.count("{") == bare.count("}"), "braces"
    declared = set(re.findall(r'^\s*(\w+) \[', text, re.M))
    assert {end for pair in re.findall(r'(\w+) -- (\w+)', bare) for end in pair} <= declared, "edges to nowhere"
def markup(text):
    xml.dom.minidom.parseString(text)
    assert not re.search("<script|href|javascript", text), "a script"
checks, wrong = {"json": json.loads, "svg": markup, "xml": markup, "dot": dot}, 0
for name in sorted(os.listdir("shown")):
    try:
        checks[name.rsplit(".")[-1]](open("shown/" + name).read())
    except Exception as e:
        wrong += 1
        print(name, repr(e))
raise SystemExit(wrong > 0)
P
}

# One whose NVML hangs is given up on after 10 s: meanwhile all the others.
on pcie-4x-l40s
FAKE_NVML_HANG=1 timeout -k 5 120 "$LAUNCH" topo >hung 2>&1 </dev/null & hung=$!

mkdir shown
for file in "$machines"/*.machine; do
    name=$(basename "$file" .machine)
    on "$name"; expect 0 "$name as text"; golden "$name.topo.txt"
    check "$name has no colour in a file" not has $'\033' out
    for format in json svg xml dot; do
        on "$name" --format=$format; expect 0 "$name as $format"; cp out "shown/$name.$format"
        [ $format != json ] || golden "$name.topo.json"
    done
done
check "all that is shown is well-formed" all_well_formed

# What was recorded on real ones with nvidia-smi.
cells() { sed -nE '/^(GPU|NIC)[0-9]/{s/[ \t]+/ /g;s/ $//;p}' "$@"; }
for name in h200-vm h200x2-vm h200x4-vm; do
    on "$name"
    check "$name has the cells of nvidia-smi" diff <(cells "$machines/$name.smi.txt") <(cells out)
done

on pcie-4x-l40s --p2p=r; expect 0 "P2P"
check "pairs that can't" has '^GPU0 +X +OK +CNS +CNS$' out
on pcie-4x-l40s --p2p n; check "no NVLink" has '^GPU0 +X +NS +CNS +CNS$' out
on hgx-h100 --p2p=w; check "all pairs can" has '^GPU7( +OK){7} +X$' out

# The matrix alone is that of the whole picture.
for file in "$machines"/*.machine; do
    name=$(basename "$file" .machine); grep -q '^GPU0' "$machines/$name.topo.txt" || continue
    on "$name" --matrix; expect 0 "$name, the matrix"
    check "$name: $(diff out <(head -n "$(wc -l <out)" "$machines/$name.topo.txt"))" test -s out -a -z "$(diff out <(head -n "$(wc -l <out)" "$machines/$name.topo.txt"))"
done
FAKE_NVML_HANG=1 on h200-vm -m; expect 0 "one GPU"; check "NVML is not asked for its matrix" not has NVML out
FAKE_NVML_FAIL=9 on hgx-h100 -m; expect 0 "NVML that fails"; check "it is told" has "^NVML can't be used \(nvmlInit: Driver Not Loaded\): this is the PCIe picture" out

# A terminal has colours, unless its user has something against them.
terminal() { TERM=xterm timeout -k 5 60 python3 -c 'import os, pty, sys; sys.exit(pty.spawn(sys.argv[1:]))' "$LAUNCH" topo >out 2>&1 </dev/null; }
on hgx-h100
check "colour on a terminal" eval 'terminal; has "$(printf "\033")\[32mNV18" out'
check "NO_COLOR" eval 'NO_COLOR=1 terminal; not has "$(printf "\033")" out && has NV18 out'

# Drivers that do not help.
picture_only() { has "NVML can't be used \($1\): this is the PCIe picture only" out && has 'GPU0 +X +PIX' out; }
on pcie-4x-l40s; unset FAKE_NVML_MACHINE; export FAKE_NVML_FAIL=9
run topo; expect 0 "a driver that is not loaded"; check "it is told: $(tail -3 out)" picture_only 'nvmlInit: Driver Not Loaded'
run topo --p2p=r; expect 125 "P2P without NVML"; check "why" has "^launch: --p2p: NVML can't be used: nvmlInit: Driver Not Loaded$" err
unset FAKE_NVML_FAIL
FAKE_NVML_CRASH=1 run topo; expect 0 "a library that crashes"; check "it is told" picture_only 'it crashed while it began'
wait $hung; rc=$?; expect 0 "a library that hangs"; cp hung out; check "it is told" picture_only 'it did not answer within 10 s'
check "nobody hangs on" until_true not pgrep -f "^$LAUNCH topo"
FAKE_NVML_CRASH_P2P=1 on pcie-4x-l40s; check "a crash later on" picture_only 'it went away while it told about the GPUs'
rm "$LAUNCH_SYSROOT/usr/lib/libnvidia-ml.so.1"
LD_LIBRARY_PATH=$BUILD/tests/fake run topo; expect 0 "a library that is another machine's"
check "it is not asked" picture_only 'there is no usable libnvidia-ml.so.1'
FAKE_NVML_LOST=2 on pcie-4x-l40s; expect 0 "a GPU that is lost"
check "it is named" has "GPU 2 \(0000:98:00.0\): NVML can't use it: GPU is lost" out
check "the others are shown" has '^0 .*L40S .*gen4 x16 +45 GiB' out

# Mistakes: one line, exit 2.
wrong() { # PATTERN arguments...
    run topo "${@:2}"; expect 2 "${*:2}"
    check "one line for ${*:2}: $(cat err)" [ "$(wc -l <err)" = 1 ]
    check "${*:2} is explained: $(cat err)" has "$1" err
    check "nothing is shown for ${*:2}" [ ! -s out ]
}
on laptop
wrong '^launch: --format=pdf: one of text, json, xml, svg and dot is needed$' --format=pdf
wrong '^launch: --p2p=q: one of r .* is needed$' --p2p=q
wrong '^launch: --p2p=: one of r .* is needed$' --p2p=
wrong '^launch: --p2p=rw: one of r .* is needed$' --p2p=rw
wrong '^launch: --format: a value is needed$' --format
wrong '^launch: topo: -x: unknown option; usage: launch topo .*--transports' -x
wrong '^launch: --p2p goes with --format=text; json has all of it$' --p2p=r --format=svg
wrong '^launch: --matrix goes with neither --p2p nor --format$' -m --p2p=r
wrong '^launch: --matrix goes with neither --p2p nor --format$' --format=json --matrix
run topo -m; expect 125 "a matrix without a GPU"; check "why" has '^launch: --matrix: no GPU that this process may use$' err
run topo --p2p=r; expect 125 "P2P without a GPU"; check "why" has '^launch: --p2p: no NVIDIA GPU that this process may use$' err
run topo --help; expect 0 "help"; check "help names the formats" has 'format=svg' out
"$LAUNCH" topo >/dev/full 2>err; rc=$?; expect 125 "a full disk"; check "it is told" has 'No space left' err
finish
