# SPDX-License-Identifier: MIT
# Sourced by every end-to-end script. LAUNCH, BUILD and SRC are set by the runner; the working directory is the
# script's own and goes away with it.
set -u
failures=0
TAG=300.$$$RANDOM # workers that shall stay run `sleep $TAG`, so that they can be counted

fail() { echo "FAIL: $*"; failures=$((failures + 1)); }
skip() { echo "$*"; exit 77; }
finish() { reap; [ "$failures" = 0 ] || exit 1; exit 0; }

# check "what should hold" command...
check() { local what=$1; shift; "$@" || fail "$what"; }
not() { ! "$@"; }
has() { grep -aqE -- "$1" "${@:2}"; }

# run launcher-arguments...: output in ./out and ./err, exit code in $rc
run() {
    timeout -k 5 "${LIMIT:-30}" "$LAUNCH" "$@" >out 2>err </dev/null
    rc=$?
}
# expect CODE "what": the last run ended with this code
expect() { [ "$rc" = "$1" ] || { fail "$2: exit $1 expected, got $rc"; sed 's/^/    | /' err; }; }

# worker NAME <<'E': an executable script
worker() { cat >"$1"; chmod +x "$1"; }

# halves.py: five lines, each written in two halves 0.2 s apart, and an end without a newline.
write_halves() {
    worker halves.py <<'W'
#!/usr/bin/env python3
import os, time
r = os.environ["RANK"]
for i in "12345":
    os.write(1, b"r%sa%s" % (r.encode(), i.encode())); time.sleep(.2); os.write(1, b"r%sb%s\n" % (r.encode(), i.encode()))
os.write(1, b"r%send" % r.encode())
W
}

# The build that is tested carries sanitizers: it is slower, and its libraries can't be loaded by a plain interpreter.
sanitized() { case $BUILD in */san-*) true ;; *) false ;; esac; }

# A short wait between two looks; until_true polls for at most 20 s.
pause() { read -r -t 0.02 <> <(:) || true; }
until_true() {
    local i
    for ((i = 0; i < 1000; i++)); do "$@" && return 0; pause; done
    return 1
}
tagged() { pgrep -fx "sleep $TAG" | wc -l; }
running() { [ "$(tagged)" = "$1" ]; }
reap() { pkill -9 -fx "sleep $TAG" 2>/dev/null; true; }

# fake_nvml ROOT: the NVML of tests/fake becomes that of the machine below ROOT
fake_nvml() { mkdir -p "$1/usr/lib"; ln -sfn "$BUILD/tests/fake/libnvidia-ml.so.1" "$1/usr/lib/"; }

# gpus N [AMD]: a fake machine below ./machine with N GPUs, NVIDIA's or AMD's, announced by LAUNCH_SYSROOT
gpus() {
    local i pci
    export LAUNCH_SYSROOT=$PWD/machine
    unset CUDA_VISIBLE_DEVICES HIP_VISIBLE_DEVICES
    rm -rf machine; mkdir -p machine/dev machine/proc/driver/nvidia/gpus
    for ((i = 0; i < $1; i++)); do
        if [ "${2:-}" = AMD ]; then
            pci=machine/sys/class/kfd/kfd/topology/nodes/$((i + 1))
            mkdir -p $pci machine/dev/dri; echo $((100 + i)) >$pci/gpu_id; : >machine/dev/dri/renderD$((128 + i))
            printf 'drm_render_minor %d\nlocation_id %d\ndomain 0\n' $((128 + i)) $(((16 + i) << 8)) >$pci/properties
            continue
        fi
        pci=$(printf '0000:%02x:00.0' $((16 + i)))
        mkdir -p "machine/proc/driver/nvidia/gpus/$pci"
        printf 'Model: \t\t Fake GPU\nGPU UUID: \t GPU-%08x-0000-0000-0000-00000000000%x\nBus Location: \t %s\nDevice Minor: \t %d\n' \
            $((160 + i)) "$i" "$pci" "$i" >"machine/proc/driver/nvidia/gpus/$pci/information"
        : >"machine/dev/nvidia$i"
    done
}

# A memory cgroup of our own, v2 or v1, with 96 MiB, in $group; "" if none can be had. Whoever calls it removes it.
memory_group() {
    local base dir file
    group=
    for base in /sys/fs/cgroup /sys/fs/cgroup/memory; do
        dir=$base/launch-test-$$
        [ -e $base/cgroup.procs ] && mkdir $dir 2>/dev/null || continue
        for file in memory.max memory.limit_in_bytes; do
            [ -e $dir/$file ] && echo 96M >$dir/$file 2>/dev/null && group=$dir
        done
        [ -n "$group" ] && break; rmdir $dir
    done
}
