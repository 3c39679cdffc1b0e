#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# launch doctor on fake machines: one that is well, one with several faults, one whose NVML hangs, one without a GPU; for programs,
# and for a user who may not look everywhere.
. "$SRC/tests/e2e/lib.sh"
[ -e "$BUILD/tests/fake/libnvidia-ml.so.1" ] || skip "no fake NVML"
unset CUDA_VISIBLE_DEVICES LD_LIBRARY_PATH
for name in $(compgen -e | grep -E '^(TORCH_)?NCCL_|^CUDA_LAUNCH|^CUDA_DEVICE_MAX'); do unset "$name"; done

# Two sockets; NVSwitches join four GPUs behind two PCIe switches.
cat >server.machine <<'M'
cpu GenuineIntel name="Some Xeon" family=6 model=143
package
node memory=64
l3 cores=2
package
node memory=64
l3 cores=2
driver nvidia version=580.159.04
root 0000:15 node=0
  0000:16:00.0 bridge
    0000:17:00.0 bridge
      0000:19:00.0 gpu name="NVIDIA H100" fabric=completed
    0000:17:01.0 bridge
      0000:1a:00.0 gpu name="NVIDIA H100" fabric=completed
root 0000:37 node=1
  0000:38:00.0 bridge
    0000:39:00.0 bridge
      0000:3b:00.0 gpu name="NVIDIA H100" fabric=completed
    0000:39:01.0 bridge
      0000:3c:00.0 gpu name="NVIDIA H100" fabric=completed
  0000:04:00.0 nvswitch
nvlink all 18 version=4 speed=26562
health all told 1
M

# machine FILE.machine: below ./machine, with all that the doctor likes to see
machine() {
    local bridge
    rm -rf machine
    "$SRC/tests/machines/mkroot.py" "$1" machine
    export LAUNCH_SYSROOT=$PWD/machine FAKE_NVML_MACHINE=$PWD/machine/nvml
    fake_nvml machine
    mkdir -p machine/dev/shm machine/proc/sys/kernel; chmod 1777 machine/dev/shm
    : >machine/dev/nvidia-uvm; : >machine/dev/kmsg
    printf '%-26s%-21s%-21s%s\n' 'Max stack size' 8388608 unlimited bytes 'Max processes' 99999 99999 processes \
        'Max open files' 1024 1048576 files 'Max locked memory' 8388608 8388608 bytes >machine/proc/self/limits
    echo quiet >machine/proc/cmdline; echo 0 >machine/proc/sys/kernel/numa_balancing
    for bridge in machine/sys/bus/pci/devices/*; do
        [ ! -e "$bridge/class" ] || ! has '^0x0604' "$bridge/class" || acs 0 "$bridge/config"
    done
}
# acs CONTROL FILE: a config space with that control of ACS, an octal digit
acs() { { head -c 256 /dev/zero; printf '\015\000\001\000\000\000'"\\0$1"'\000'; } >"$2"; }
finding() { has "^$1 +$2 +$3" out; } # VERDICT CHECK PATTERN

# Those that depend on where the tests run are left out.
elsewhere='^(ok|warning|could not look) +(shm|numa-calls|libnccl|cgroup) '
machine server.machine
# One whose NVML hangs is given up on after 10 s: meanwhile all the others.
cp -r machine hung; LAUNCH_SYSROOT=$PWD/hung FAKE_NVML_HANG=1 timeout -k 5 60 "$LAUNCH" doctor >hung.out 2>&1 </dev/null & hung=$!
run doctor; expect 0 "a machine that is well"
check "all is well: $(grep -vE "^(ok|4 x|$|warning: )|$elsewhere" out)" [ -z "$(grep -vE "^(ok|4 x|$|warning: )|$elsewhere|^ +(so|do):" out)" ]
check "the machine is named" has '^4 x NVIDIA H100, driver 580.159.04$' out
check "every check has a line" [ "$(grep -cE '^(ok|warning|broken|could)' out)" -ge 30 ]
check "no colour in a file" not has $'\033' out
NCCL_ALGO=Ring run doctor; expect 0 "a warning"; check "it is there" finding warning nccl 'NCCL_ALGO=Ring \(environment\)'

# Several faults at once.
cat >>machine/nvml <<'F'
health 2 rows_pending 1
health 3 recovery 2
health 2 slowed 0x48
health 2 celsius 92
health 1 ecc_now 2
p2p 0 0 1 4
process 3 4711 3221225472
F
sed -i 's/^\(gpu 1 .* \)3 0 \(9 0 4 26562\)/\11 0 \2/' machine/nvml
rm machine/dev/nvidia-uvm
acs 4 machine/sys/bus/pci/devices/0000:39:01.0/config
echo '4,8,5000000,-;NVRM: Xid (PCI:0000:19:00): 79, pid=1, name=x, GPU has fallen off the bus.' >machine/dev/kmsg
mkdir -p machine/etc; echo NCCL_P2P_DISABLE=1 >machine/etc/nccl.conf
run doctor; expect 1 "a machine with faults"
check "rows" finding warning rows 'GPU 2: '
check "recovery action" finding broken recovery 'GPU 3: NVML: recovery action 2 \(the server is to be booted again\)'
check "heat" finding warning clocks 'GPU 2: .*heat \(0x48\); 92 C'
check "memory errors" finding warning ecc 'GPU 1: 2 uncorrectable'
check "P2P" finding broken p2p ".*0-1 DR"
check "a program" finding warning users 'GPU 3: NVML: pid 4711.*, 3072 MiB'
check "the fabric" finding broken fabric 'GPU 1: '
check "a node" finding broken nodes '/dev/nvidia-uvm'
check "ACS" finding warning acs '.*0000:39:01.0 \(0x0004\)'
check "an Xid" finding warning xid '.*Xid 79 \(the GPU has fallen off the bus\) of GPU 0000:19:00'
check "a setting and its file" finding warning nccl 'NCCL_P2P_DISABLE=1 \(/etc/nccl.conf:1\)'
check "what follows and what to do" eval "has '^ +so: CUDA fails with error 802' out && has '^ +do: start nvidia-fabricmanager' out"
check "the verdict" has '^broken: [0-9]+ ok, [0-9]+ warning, 4 broken, ' out
run doctor --json; expect 1 "JSON"
check "it is JSON with all in it" python3 - <<'P'
import json
d = json.load(open("out"))
assert d["verdict"] == "broken" and d["broken"] == 4 and d["gpus"] == 4 and d["vendor"] == "NVIDIA", d
assert all(set(f) == {"check", "about", "verdict", "evidence", "consequence", "fix"} for f in d["findings"])
assert all((f["fix"] is not None) == (f["verdict"] in ("warning", "broken")) for f in d["findings"])
assert len(d["findings"]) == d["ok"] + d["warning"] + d["broken"] + d["could_not_look"]
P
FAKE_NVML_LOST=3 run doctor; check "a lost GPU" finding broken nvml 'GPU 3 \(0000:3c:00.0\): NVML: GPU is lost'
FAKE_NVML_FAIL=9 run doctor; expect 1 "NVML that fails"
check "why" finding broken nvml 'libnvidia-ml.so.1: nvmlInit: Driver Not Loaded'
check "the rest could not look" finding 'could not look' rows 'NVML tells nothing'

# A library of another version than the driver.
cp "$BUILD/tests/fake/libnvidia-ml.so.1" machine/usr/lib/libnvidia-ml.so.570.86.15
ln -sfn libnvidia-ml.so.570.86.15 machine/usr/lib/libnvidia-ml.so.1
run doctor; check "both versions" finding broken driver '.*580.159.04, but .*libnvidia-ml.so.570.86.15'

# A user who may read no config of bridges, no log, no device: what the runner made is root's alone, so that it is copied.
if [ "$(id -u)" = 0 ]; then
    public=$(mktemp -d); trap 'rm -rf "$public"' EXIT
    cp -r machine "$public"; chmod -R a+rX "$public"; chmod -R a+rw "$public"/machine/dev; chmod 1777 "$public"/machine/dev/shm
    head -c 64 machine/sys/bus/pci/devices/0000:39:01.0/config >"$public/machine/sys/bus/pci/devices/0000:39:01.0/config"
    chmod 600 "$public/machine/dev/kmsg" "$public/machine/dev/nvidia0"
    as_user() {
        LAUNCH_SYSROOT=$public/machine timeout -k 5 30 setpriv --reuid 54321 --regid 54321 --clear-groups "$LAUNCH" "$@" >out 2>err </dev/null; rc=$?
    }
    as_user help
    if [ "$rc" = 0 ]; then
        as_user doctor; expect 1 "somebody else"
        check "the log" finding 'could not look' xid '/dev/kmsg: Permission denied; root may'
        check "bridges" finding 'could not look' acs 'ACS of 1 bridges above GPUs \(0000:39:01.0 is one\): only root'
        check "a device" finding broken nodes '.*no permission to read and write: /dev/nvidia0'
    fi
fi

cat >laptop.machine <<'M'
cpu AuthenticAMD
package
node
l3 cores=2
M
machine laptop.machine; run doctor; expect 0 "no GPU"
check "it is said" has '^No GPU here' out
check "nothing alarms: $(cat out)" [ -z "$(grep -E '^(warning|broken) ' out | grep -vE "$elsewhere")" ]

wait $hung; rc=$?; expect 1 "NVML that hangs"; cp hung.out out
check "it is told" finding broken nvml '.*did not answer within 10 s'
check "nobody hangs on" until_true not pgrep -f "^$LAUNCH doctor"

# The real machine: whatever it is, the doctor comes back and says so.
unset LAUNCH_SYSROOT FAKE_NVML_MACHINE
run doctor; check "exit code $rc on this machine" [ "$rc" -le 1 ]

wrong() { run "${@:2}"; expect 2 "${*:2}"; check "${*:2}: $(cat err)" eval "[ \$(wc -l <err) = 1 ] && has '$1' err"; }
wrong 'unknown option; usage: launch doctor' doctor --x
wrong 'needs a value' doctor --log
wrong 'one word too many' doctor a b
wrong '^launch: doctor: --log goes without a run' doctor a --log=b
"$LAUNCH" doctor >/dev/full 2>err; rc=$?; expect 125 "a full disk"
finish
