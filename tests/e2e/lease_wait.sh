#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# --wait: a fair line for GPUs that others have, left by a signal or when time is over; programs without a lease.
. "$SRC/tests/e2e/lib.sh"
gpus 8
worker stay.sh <<'W'
#!/bin/bash
echo "$CUDA_VISIBLE_DEVICES" >got.$1
until [ -e end.$1 ]; do read -r -t 0.02 <> <(:); done
exit 0
W
# job NAME arguments...: in the background, its pid in $pid_NAME; until end NAME
job() { local name=$1; shift; rm -f "e.$name"; "$LAUNCH" --run-id="$name" "$@" ./stay.sh "$name" >o.$name 2>e.$name </dev/null & eval "pid_$name=$!"; }
has_gpus() { until_true test -s "got.$1"; check "$1 has GPUs $2: $(cat got.$1 e.$1)" grep -qxE "$2" got.$1; }
in_line() { until_true has "number $2 in line" "e.$1" || fail "$1 is number $2: $(cat e.$1)"; }
end() { local p="pid_$1"; : >end.$1; wait "${!p}"; rc=$?; }
job a --gpus=4; has_gpus a 0,1,2,3
job b --gpus=6 --wait; in_line b 1
check "why: $(cat e.b)" has 'waiting for 6 GPUs, 4 of 8 free: number 1 in line' e.b
job c --gpus=5 --wait=1h; in_line c 2
"$LAUNCH" gpus >out; check "launch gpus tells who waits: $(cat out)" has '^waiting for 6: run b ' out; check "of both" has '^waiting for 5: run c ' out
# a small one may take what is left over when those before it are served, and no more, whether it stands in line or not
run --gpus=3 true; expect 75 "three would delay the first in line"
run --gpus=2 true; expect 0 "two delay nobody: the end of a is enough for six, that of b for five"
job d --gpus=3 --wait; in_line d 3
end a; has_gpus b '(.,){5}.'; in_line c 1; check "who came later waits: $(cat e.c)" test ! -e got.c -a ! -e got.d
end b; has_gpus c '(.,){4}.'; has_gpus d '(.,){2}.'
end c; expect 0 "c"; end d; expect 0 "d"; check "a place is told once: $(cat e.c)" test "$(grep -c 'in line' e.c)" = 2

# killed while it waits: it is out of the line
rm -f got.* end.*; job a --gpus=8; has_gpus a 0,1,2,3,4,5,6,7
job b --gpus=8 --wait; in_line b 1; job c --gpus=8 --wait; in_line c 2
kill -9 $pid_b; wait $pid_b 2>/dev/null; in_line c 1
job d --gpus=8 --wait; in_line d 2; kill $pid_d; wait $pid_d; rc=$?
expect 143 "SIGTERM while waiting"; check "it is told: $(cat e.d)" has 'nothing was started' e.d
python3 - <<'P' || fail "Ctrl-C while waiting"
import os, signal, subprocess
signal.signal(signal.SIGINT, signal.SIG_DFL)
p = subprocess.Popen([os.environ["LAUNCH"], "--gpus=1", "--wait", "true"], stderr=subprocess.PIPE, text=True)
assert "in line" in p.stderr.readline()
p.send_signal(signal.SIGINT)
assert p.wait(20) == -signal.SIGINT, p.returncode
P
run --gpus=1 --wait=50ms true; expect 75 "a wait that is over"; check "it is told: $(cat err)" has 'time of --wait is over' err
for bad in x -1 1y 5000h; do run --gpus=1 --wait=$bad true; expect 2 "--wait=$bad"; check "--wait=$bad: $(cat err)" has '--wait: must be a time' err; done
run --gpus=1 --wait=0 true; expect 75 "--wait=0 is none"
# the holder is killed: the waiter has the GPUs
agent=$(pgrep -P $pid_a); kill -9 $pid_a "$agent"; has_gpus c 0,1,2,3,4,5,6,7; end c
# a job that shares its GPUs is waited for, too
rm -f got.* end.*; job a --nproc-per-node=8; until_true test -s got.a || until_true test -e got.a
job b --gpus=8 --wait; in_line b 1; end a; has_gpus b 0,1,2,3,4,5,6,7; end b

# programs that launch did not start, by NVML
[ -e "$BUILD/tests/fake/libnvidia-ml.so.1" ] || finish
fake_nvml machine; export FAKE_NVML_USE=$PWD/use FAKE_GPUS=8
sleep $TAG & other=$!
until_true has '^sleep$' /proc/$other/comm # a shell until it executes sleep
printf '0 %d 5368709120\n0 1 1\n5 %d 1048576\n' $other $other >use
"$LAUNCH" gpus >out; check "they are named: $(cat out)" has "^0    used by sleep \(pid $other, user [a-z0-9]+, 5120 MiB\)" out
run --gpus=8 true; expect 75 "all of the GPUs"
check "GPU, name and pid are told: $(cat err)" has "GPU 0 is used by sleep \(pid $other, user [a-z0-9]+, 5120 MiB\), which launch did not start; --force" err
run --gpus=5-5 true; expect 75 "one that is used"; run --gpus=5-5 --force true; expect 0 "--force"
rm -f got.* end.*; run --gpus=6 sh -c 'echo $CUDA_VISIBLE_DEVICES'; check "others are taken: $(cat out)" grep -qx 1,2,3,4,6,7 out
job a --gpus=5,6 --wait; in_line a 1
: >use; kill $other; wait $other 2>/dev/null; has_gpus a 5,6; end a; expect 0 "it waited for the end of the program"
for way in FAIL=9 CRASH=1; do env "FAKE_NVML_$way" "$LAUNCH" --gpus=8 true 2>err; rc=$?; expect 0 "NVML with $way"; check "nothing is said" test ! -s err; done
FAKE_NVML_HANG=1 run --gpus=8 true; expect 0 "NVML that hangs"; check "it is told" has 'NVML has not told' err
mkdir -p machine/sys/module/nvidia_uvm; echo 0 >machine/sys/module/nvidia_uvm/refcnt
FAKE_NVML_HANG=1 run --gpus=8 true; expect 0 "nobody has CUDA open"; check "NVML is not asked" test ! -s err
finish
