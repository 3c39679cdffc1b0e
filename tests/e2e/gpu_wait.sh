#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# Before a restart the old group must be off the GPUs, as far as NVML knows; NVML may hang or crash and we go on.
. "$SRC/tests/e2e/lib.sh"
[ -e "$BUILD/tests/fake/libnvidia-ml.so.1" ] || skip "no fake NVML"
export FAKE_NVML_USE=$PWD/use FAKE_GPUS=2
gpus 2; fake_nvml machine
worker p.sh <<'W'
#!/bin/bash
[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0
[ $RANK = 1 ] || { [ "$1" = unused ] || exec 3<"$LAUNCH_SYSROOT/dev/nvidia0"; : >up; exec sleep 60; }
until [ -e up ]; do :; done
[ "$1" = hold ] && echo "1 $$ 5368709120" >use
[ "$1" = other ] && echo "1 1 5368709120" >use
exit 3
W
restart() { : >use; rm -f up; LIMIT=20 run --nproc-per-node=2 --max-restarts=1 ./p.sh "$@"; }
restart free; expect 0 "nobody holds a GPU"; check "nothing is said" not has 'GPU|NVML' err
restart other; expect 0 "somebody else's process"; check "nothing is said" not has 'GPU|NVML' err
restart hold; expect 0 "a GPU that stays held"
check "GPU and holder are named: $(cat err)" has 'GPU 0000:11:00.0 is still held by .* \(pid [0-9]+, 5120 MiB\) of the last attempt; starting all the same' err
# given free meanwhile: no warning
: >use; rm -f up; "$LAUNCH" --nproc-per-node=2 --max-restarts=1 ./p.sh hold >out 2>err </dev/null & pid=$!
until_true test -s use; until_true has 'starting all' err; pause; : >use; wait $pid; rc=$?
expect 0 "a GPU that becomes free"; check "nothing is said: $(cat err)" not has 'GPU|NVML' err
FAKE_NVML_FAIL=9 restart free; expect 0 "NVML that fails"
FAKE_NVML_CRASH=1 restart free; expect 0 "NVML that crashes"
FAKE_NVML_HANG=1 restart free; expect 0 "NVML that hangs"; check "it is told" has 'NVML has not told within 5 s' err
FAKE_NVML_HANG=1 restart unused; expect 0 "workers without a GPU"; check "NVML was not asked" not has 'NVML' err
# nobody has CUDA open: NVML is not asked at all
mkdir -p machine/sys/module/nvidia_uvm; echo 0 >machine/sys/module/nvidia_uvm/refcnt
FAKE_NVML_HANG=1 restart free; expect 0 "no CUDA anywhere"; check "NVML was not asked" not has 'NVML' err
echo 3 >machine/sys/module/nvidia_uvm/refcnt
# asked to end while it waits
rm -f up; FAKE_NVML_HANG=1 "$LAUNCH" --nproc-per-node=2 --max-restarts=1 ./p.sh free >out 2>err </dev/null & pid=$!
until_true has 'starting all' err; pause; kill $pid; wait $pid; rc=$?
expect 143 "a job that is ended while it waits for its GPUs"
finish
