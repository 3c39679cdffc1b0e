#!/bin/bash
# SPDX-License-Identifier: MIT
# Evidence for a check of launch doctor by hand: what it says as root and as a user without rights, and beside that the raw facts
# from those who know them, all in one log, facts.log. Exit code 1: one of the two gave no JSON.
#
#     tests/gpu/doctor.sh [BUILD]          see lib.sh
. "$(dirname "$0")/lib.sh"
needs launch

# Where a user without rights can execute it.
chmod 755 "$dir"; cp "$launch" "$dir/launch"
verdicts() { # FILE: a line for each check
    python3 - "$1" <<'P'
import json, sys
found = json.load(open(sys.argv[1]))
for finding in found["findings"]:
    print(f"    {finding['verdict']:15} | {finding['check']:12} | {finding['evidence']}")
P
}
doctor() { # WHO command...
    local who=$1 got bad=0; shift
    limited 60 "$@" "$dir/launch" doctor --json >"$logs/doctor.$who.json" 2>"$dir/err"; got=$?
    echo "exit code $got"
    { [ $got -le 1 ] && verdicts "$logs/doctor.$who.json"; } || { fail "doctor as $who"; bad=1; }
    holds "launch doctor as $who" "exit code $got, $(verdicts "$logs/doctor.$who.json" 2>/dev/null | cut -d'|' -f1 | sort | uniq -c | tr -s ' \n' ' ')" [ $bad = 0 ]
    limited 60 "$@" "$dir/launch" doctor
}
as_root() { doctor root; }
as_user() { doctor user setpriv --reuid=65534 --regid=65534 --clear-groups; }

fact() { echo "---- $*"; limited 30 "$@" 2>&1 | head -n "${LINES_MAX:-400}"; }
facts() {
    fact uname -a; fact id; fact cat /proc/cmdline /proc/driver/nvidia/version /proc/driver/nvidia/params
    fact nvidia-smi; fact nvidia-smi -q; fact nvidia-smi topo -m; fact nvidia-smi nvlink -s
    fact sh -c 'ls -l /dev/nvidia* /dev/nvidia-caps /dev/dri'
    fact sh -c 'cat /proc/driver/nvidia/gpus/*/information'
    fact df -h /dev/shm /tmp /run; fact stat -c '%A %U %n' /dev/shm /tmp /run/lock; fact free -m; fact sh -c 'ulimit -a'
    fact sh -c "env | grep -E '^(NCCL|CUDA|LD_|NVIDIA)'"; fact cat /etc/nccl.conf "${HOME:-/root}/.nccl.conf"
    fact sh -c 'ldconfig -p | grep -E "nccl|nvidia-ml|libcuda|cudart"'
    fact python3 -c 'import torch; print(torch.__version__, torch.version.cuda, torch.cuda.nccl.version())'
    fact sh -c 'find / -xdev -name "libnccl.so*" 2>/dev/null'
    fact lscpu; fact lspci -vv; fact sh -c 'for d in /sys/bus/pci/devices/*; do echo "$d" $(cat $d/vendor $d/device $d/class $d/numa_node $d/current_link_speed $d/current_link_width 2>/dev/null); done'
    fact sh -c 'ls /sys/class/infiniband /sys/kernel/iommu_groups'; fact sh -c 'systemctl is-active nvidia-fabricmanager; pgrep -a fabric'
    fact cat /proc/sys/kernel/numa_balancing /proc/self/cgroup; fact sh -c 'grep . /sys/fs/cgroup/memory.max /sys/fs/cgroup/cpu.max /sys/fs/cgroup/pids.max'
    LINES_MAX=200 fact sh -c 'dmesg | tail -n 200'
}
facts_log() {
    { facts; for who in root user; do echo "---- launch doctor --json as $who"; cat "$logs/doctor.$who.json"; done; } >"$logs/facts.log" 2>&1
    echo "$(wc -l <"$logs/facts.log") lines in $logs/facts.log"
    grep -A12 -E '^---- (cat /proc/cmdline|df|stat|sh -c env)' "$logs/facts.log"
}
section as_root 10 130 as_root
section as_user 10 130 as_user
section facts_log 30 300 facts_log
finish
