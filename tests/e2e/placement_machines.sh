#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# Machines that nobody here has: every mode keeps its promises on each, and a plain start reads next to nothing.
. "$SRC/tests/e2e/lib.sh"
unset OMP_NUM_THREADS CUDA_VISIBLE_DEVICES HIP_VISIBLE_DEVICES HWLOC_XMLFILE HWLOC_SYNTHETIC

cat >check.py <<'P'
"""check.py MACHINE-ROOT: what logs/MODE/*/placement.json promise."""
import glob, json, os, sys
root, = sys.argv[1:]
def numbers(text):
    return {n for part in text.split(",") if part for a, _, b in [part.partition("-")] for n in range(int(a), int(b or a) + 1)}
def read(path):
    return open(root + path).read().strip()
status = dict(line.split(":\t") for line in read("/proc/self/status").splitlines())
allowed = numbers(status["Cpus_allowed_list"])
paths = glob.glob("logs/*/*/placement.json")
assert len(paths) == 7, paths
for path in paths:
    mode, placement, seen = path.split("/")[1], json.load(open(path)), set()
    assert placement["affinity"] == mode or mode == "auto", placement["affinity"]
    for r in placement["ranks"]:
        cpus = numbers(r["cpus"])
        assert cpus and cpus <= allowed, (mode, r)
        assert int(r["omp_num_threads"]) >= 1, (mode, r)
        node = numbers(read(f"/sys/devices/system/node/node{r['node']}/cpulist"))
        assert node, (mode, r)  # never one of memory only
        if r["bus_id"]:
            at = int(read(f"/sys/bus/pci/devices/{r['bus_id']}/numa_node"))
            near = numbers(read(f"/sys/devices/system/node/node{at}/cpulist")) if at >= 0 else set()
            assert not near or at == r["node"], (mode, r)
        if placement["affinity"] in ("node", "exclusive", "cores", "core-complex") and r["bound"]:
            assert cpus <= node, (mode, r)
        if placement["affinity"] == "exclusive":
            cores = {c for cpu in cpus for c in numbers(read(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"))}
            assert not cores & seen, r
            seen |= cores
P

roots=$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d -p .) # thousands of files
trap 'rm -rf "$roots"' EXIT
root=$roots/machine

for description in "$SRC"/tests/machines/*.machine; do
    name=$(basename "$description" .machine); rm -rf "$root"
    python3 "$SRC/tests/machines/mkroot.py" "$description" "$root" || fail "$name: no root"
    for mode in auto none node socket exclusive core-complex cores; do
        LAUNCH_SYSROOT=$root run -n auto --affinity=$mode --report-placement --log-dir=logs/$mode true; expect 0 "$name, $mode"
    done
    check "$name: the promises hold" python3 check.py "$root"; rm -rf logs
    LAUNCH_SYSROOT=$root run -n 1024 --affinity=exclusive true; expect 2 "$name: 1024 exclusive ranks"
done

# Whole tables, where people will look them up.
table() { # MACHINE options...: the report as it is printed
    rm -rf "$root"; python3 "$SRC/tests/machines/mkroot.py" "$SRC/tests/machines/$1.machine" "$root"
    LAUNCH_SYSROOT=$root run "${@:2}" --report-placement true; grep '^launch:  \|placement of' err | tr -s ' ' >table
}
table epyc-nps4-a100 -n gpu
cat >want <<'W'
launch: placement of 4 ranks: --affinity=node --mem-policy=none
launch: rank GPU bus id UUID CPUs node memory NIC OMP_NUM_THREADS
launch: 0 0 0000:01:00.0 GPU-5eed0000-0000-4000-8000-000000000000 24-31,56-63 3 local mlx5_0 8
launch: 1 1 0000:41:00.0 GPU-5eed0001-0000-4000-8000-000000000001 16-23,48-55 2 local mlx5_0 8
launch: 2 2 0000:81:00.0 GPU-5eed0002-0000-4000-8000-000000000002 8-15,40-47 1 local mlx5_0 8
launch: 3 3 0000:c1:00.0 GPU-5eed0003-0000-4000-8000-000000000003 0-7,32-39 0 local mlx5_0 8
W
check "EPYC in NPS4: $(diff want table)" cmp -s want table
CUDA_VISIBLE_DEVICES=3,1 table grace-gb200 -n gpu --affinity=exclusive --mem-policy=bind
cat >want <<'W'
launch: placement of 2 ranks: --affinity=exclusive --mem-policy=bind
launch: rank GPU bus id UUID CPUs node memory NIC OMP_NUM_THREADS
launch: 0 3 0019:01:00.0 GPU-5eed0003-0000-4000-8000-000000000003 108-143 1 bind 1 mlx5_3 36
launch: 1 1 0009:01:00.0 GPU-5eed0001-0000-4000-8000-000000000001 36-71 0 bind 0 mlx5_1 36
W
check "two GPUs of a Grace server, the others' cores and the GPUs' memory left alone: $(diff want table)" cmp -s want table
table h200-vm -n gpu
check "one node: nobody is bound" grep -q -- '--affinity=none' table

# What a start looks at. Without GPUs no file of a node; with them has_cpu alone on one node.
command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null || finish
opened() { timeout 30 strace -f -e trace=openat,readlink -o trace "$LAUNCH" "$@" true 2>/dev/null; grep -c 'libnvidia-ml\|libhwloc\|/system/node/\|/system/cpu/' trace; }
check "a plain start looks at no node, NVML or hwloc" test "$(opened -n 8)" = 0
gpus 2; mkdir -p machine/sys/devices/system/node; echo 0 >machine/sys/devices/system/node/has_cpu
check "with GPUs one file tells that there is one node" test "$(opened -n gpu)" = 1
echo 0-1 >machine/sys/devices/system/node/has_cpu
check "where there are several, they are read" test "$(opened -n gpu)" -gt 1
check "but neither NVML nor hwloc is loaded" not grep -q 'libnvidia-ml\|libhwloc' trace
finish
