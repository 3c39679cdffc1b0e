#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 60
# launch topo --transports on fake CUDA, NCCL and NVML: what NCCL chose beside what the machine lets one expect, the reasons for
# differences, and words that are wrong.
. "$SRC/tests/e2e/lib.sh"
[ -e "$BUILD/tests/fake/launch-bench-nccl" ] || skip "no NCCL"
# 64 MiB are much for a CPU.
worker job <<W
#!/bin/bash
exec "$BUILD/tests/fake/launch-bench-nccl" "\${@/67108864/65536}"
W
export LD_LIBRARY_PATH=$BUILD/tests/fake LAUNCH_BENCH_JOB=$PWD/job TMPDIR=$PWD
"$SRC/tests/machines/mkroot.py" "$SRC/tests/machines/h200x2-vm.machine" machine
export LAUNCH_SYSROOT=$PWD/machine FAKE_NVML_MACHINE=$PWD/machine/nvml FAKE_GPUS=2 FAKE_GPU_BUS=0000:00:06.0,0000:00:07.0
fake_nvml machine
unset CUDA_VISIBLE_DEVICES

run topo --transports; expect 0 "two GPUs with NVLink"
check "what was chosen: $(cat out)" has '^ +1  P2P/CUMEM x2  X$' out
check "what was expected: $(cat out)" has '^ +1  P2P \(NV18\)  X$' out
check "which is the same" has '^2 connections, 0 not as expected$' out
check "and by which algorithm" has '^AllReduce of [0-9]+ bytes: RING, ' out
check "nothing on stderr" test ! -s err
NCCL_P2P_DISABLE=1 run topo --transports; expect 0 "without P2P"
check "the setting is named: $(cat out)" has '^  ! 0 to 1, 1 to 0: SHM, not P2P: NCCL_P2P_DISABLE=1 \(environment\)$' out
check "and marked" has 'SHM x2 !' out
mkdir -p machine/etc; echo NCCL_P2P_LEVEL=LOC >machine/etc/nccl.conf
FAKE_NCCL_VIA=shm run bench --transports --json; expect 0 "a file forbids it"
cat >shape.py <<'P'
import json
got = json.load(open("out"))
assert set(got) == {"version", "nccl", "shared_gpus", "ranks", "pairs", "ring_path", "nvls", "collnet", "choices", "settings"}, set(got)
assert [rank["gpu"] for rank in got["ranks"]] == ["0000:00:06.0", "0000:00:07.0"], got["ranks"]
assert [(pair["from"], pair["to"]) for pair in got["pairs"]] == [(0, 1), (1, 0)]
for pair in got["pairs"]:
    assert (pair["via"], pair["way"], pair["link"], pair["expected"], pair["differs"]) == ("SHM", "SHM", "NV18", "P2P", True), pair
    assert pair["why"] == "NCCL_P2P_LEVEL=LOC (/etc/nccl.conf:1)", pair
assert {"name": "NCCL_P2P_LEVEL", "value": "LOC", "where": "/etc/nccl.conf:1"} in got["settings"]
P
check "the file is named: $(cat out)" python3 shape.py
rm machine/etc/nccl.conf
FAKE_NCCL_VIA=shm run topo --transports; expect 0 "nothing forbids it"
check "a guess, at least: $(cat out)" has 'SHM, not P2P: (a virtual machine|not known)' out
run topo --transports -n 3 --share-gpus; expect 0 "shared GPUs"
check "also between those that no ring connects: $(cat out)" has '^6 connections, ' out
check "a network: $(cat out)" has ': NET, not P2P: --share-gpus: ' out
NCCL_NVLS_ENABLE=1 FAKE_NCCL_HANG=always run topo --transports --timeout=300ms; expect 1 "a hang"
check "is told: $(cat err)" has "^launch: --transports: NCCL hangs; launch check finds out why" err
check "and what it chose" has 'P2P/CUMEM x2' out

run topo --transports --matrix; expect 2 "a word of topo's other half"
check "is told: $(cat err)" has '^launch: --transports: --matrix: unknown option' err
run topo --transports --format=svg; expect 2 "no picture"
run topo --transports --help; expect 0 "--help"; check "of both" has '^usage: launch topo --transports' out
gpus 0
run topo --transports; expect 2 "no GPU"; check "is told" has 'no GPU that NCCL could use' err
check "no log is left" not ls -d launch-nccl-* 2>/dev/null
finish
