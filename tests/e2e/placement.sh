#!/bin/bash
# SPDX-License-Identifier: MIT
# Workers are where --affinity and --mem-policy say, inside what the caller may use; what the kernel refuses costs a line, never the job.
. "$SRC/tests/e2e/lib.sh"
unset OMP_NUM_THREADS HWLOC_XMLFILE HWLOC_SYNTHETIC
allowed() { sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' "/proc/$1/status"; }
mine=$(allowed self); first=${mine%%[,-]*}
worker p.sh <<'W'
#!/bin/sh
sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status >cpu.$RANK
echo "$OMP_NUM_THREADS" >omp.$RANK
W

mkdir root; ln -s /proc /sys /dev root # this machine, with locks on CPUs of its own

# On this machine, as it is.
for mode in none node socket core-complex; do
    run -n 2 --affinity=$mode ./p.sh; expect 0 "--affinity=$mode"
    check "$mode: nothing to tell" test ! -s err
done
run -n 2 --affinity=none ./p.sh; check "none is as inherited" test "$(cat cpu.0 cpu.1)" = "$mine"$'\n'"$mine"
run -n 2 --numa-binding node ./p.sh; expect 0 "torchrun's spelling"
if [ "$(nproc)" -ge 2 ]; then
    export LAUNCH_SYSROOT=$PWD/root
    for mode in exclusive cores; do
        run -n 2 --affinity=$mode ./p.sh; expect 0 "--affinity=$mode"
        check "$mode: two ranks have different CPUs: $(cat cpu.0) and $(cat cpu.1)" test "$(cat cpu.0)" != "$(cat cpu.1)"
    done
    run -n 2 --affinity=cores --max-restarts=1 sh -c './p.sh; [ $TORCHELASTIC_RESTART_COUNT = 1 ]'
    check "after a restart, too" test "$(cat cpu.0)" != "$(cat cpu.1)"

    # Two jobs at once: the second gets what the first has left, a third nothing, and a job that was killed holds nothing.
    timeout 60 taskset -c "$first" "$LAUNCH" -n 1 --affinity=exclusive sh -c "echo >up; exec sleep $TAG" & pid=$!
    until_true test -e up || fail "the first job runs"
    run -n 1 --affinity=exclusive ./p.sh; expect 0 "an exclusive job beside another"
    check "keeps off its CPU: $(cat cpu.0)" not grep -qx "$first\|$first[,-].*" cpu.0
    timeout 20 taskset -c "$first" "$LAUNCH" -n 1 --affinity=exclusive ./p.sh 2>err; rc=$?; expect 2 "where all is taken"
    check "that is told: $(cat err)" has '1 rank belongs to NUMA node [0-9]+, which has 0 cores for them \(other jobs have some\)' err
    pkill -9 -P $pid; wait $pid
    again() { timeout 20 taskset -c "$first" "$LAUNCH" -n 1 --affinity=exclusive ./p.sh 2>err; }
    until_true again || fail "after kill -9 the CPU is free as soon as the agent is gone: $(cat err)"
    unset LAUNCH_SYSROOT
fi

# Inside a mask of one CPU, nothing leaves it.
one() { timeout 20 taskset -c "$first" "$LAUNCH" -n 2 "$@" ./p.sh >out 2>err; rc=$?; }
for mode in node socket core-complex cores none; do
    rm -f cpu.*; one --affinity=$mode; expect 0 "$mode on one CPU"
    check "$mode stays inside: $(cat cpu.0 cpu.1)" test "$(cat cpu.0 cpu.1)" = "$first"$'\n'"$first"
    check "$mode: one thread each" test "$(cat omp.0 omp.1)" = "1"$'\n'"1"
done
rm -f cpu.*; LAUNCH_SYSROOT=$PWD/root one --affinity=exclusive; expect 2 "two exclusive ranks on one CPU"
check "that is told in one line: $(cat err)" test "$(grep -c 'exclusive: 2 ranks belong to NUMA node .*, which has 1 core ' err)" = 1 -a "$(wc -l <err)" = 1
check "and nothing was started" test ! -e cpu.0

# Memory. A container may refuse the call; then that is told, and the job runs.
for policy in prefer:prefer bind:bind interleave:interleave; do
    run -n 2 --mem-policy=${policy%:*} sh -c "grep -c ' ${policy#*:}' /proc/self/numa_maps >maps.\$RANK; true"; expect 0 "--mem-policy=${policy%:*}"
    check "memory: ${policy#*:}, or a word about it" test "$(cat maps.1)" -gt 0 -o -s err
done

# A sandbox that refuses both calls.
cat >refuse.py <<'P'
import ctypes, os, platform, struct, sys
calls = {"x86_64": (203, 238), "aarch64": (122, 237)}.get(platform.machine()) or sys.exit(77)
rows = [(0x20, 0, 0, 0), (0x15, 1, 0, calls[0]), (0x15, 0, 1, calls[1]), (6, 0, 0, 0x50001), (6, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *row) for row in rows))
program = struct.pack("=Hxxxxxx" + "Q", len(rows), ctypes.addressof(code))
libc = ctypes.CDLL(None)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0): sys.exit(77)
os.execv(sys.argv[1], sys.argv[1:])
P
timeout 20 python3 refuse.py "$LAUNCH" -n 2 --affinity=node --mem-policy=bind --max-restarts=1 sh -c './p.sh; [ $TORCHELASTIC_RESTART_COUNT = 1 ]' >out 2>err; rc=$?
if [ $rc != 77 ]; then
    expect 0 "a sandbox that refuses"
    check "affinity: told once: $(cat err)" test "$(grep -c 'rank 0 could not be bound to its CPUs (--affinity): Operation not permitted' err)" = 1
    check "memory: told once" test "$(grep -c 'rank 0 could not be given its memory policy (--mem-policy): Operation not permitted' err)" = 1
fi

# NUMA nodes without CPUs (a GPU's memory on Grace) hold no rank and no memory of one.
if unshare -m true 2>/dev/null; then
    for i in 0 1 2 3 4; do
        mkdir -p nodes/node$i; echo >nodes/node$i/cpulist; echo "10 20 20 20 20" >nodes/node$i/distance
    done
    cat /sys/devices/system/cpu/online >nodes/node0/cpulist
    for f in online possible has_memory; do echo 0-4 >nodes/$f; done; echo 0 >nodes/has_cpu
    rm -f cpu.*; timeout 20 unshare -m sh -c 'mount --bind nodes /sys/devices/system/node && exec "$@"' sh "$LAUNCH" -n 2 --affinity=node ./p.sh 2>err; rc=$?
    expect 0 "nodes without CPUs"; check "the ranks have CPUs" test "$(cat cpu.0)" = "$mine"
fi

# What is wrong is told before anything starts.
echo '<topology' >broken.xml
export LAUNCH_SYSROOT=$PWD/nowhere
for bad in broken.xml:XMLFILE pack:SYNTHETIC; do
    export "HWLOC_${bad#*:}=${bad%:*}"; rm -f cpu.0
    run -n 2 --affinity=node ./p.sh; expect 2 "HWLOC_${bad#*:}=${bad%:*}"
    check "in one line that names it: $(cat err)" test "$(grep -c "HWLOC_${bad#*:}" err)" = 1 -a "$(wc -l <err)" = 1 -a ! -e cpu.0
    unset "HWLOC_${bad#*:}"
done
run -n 2 --affinity=numa ./p.sh; expect 2 "--affinity=numa"; check "choices are named" has "must be 'auto', .*'cores', not 'numa'" err
unset LAUNCH_SYSROOT

# The report, with the user's own threads.
OMP_NUM_THREADS=3 run -n 2 --affinity=node --report-placement --log-dir=logs ./p.sh; expect 0 "--report-placement"
check "a head and a row each: $(cat err)" test "$(grep -c '^launch:' err)" = 4
check "rank, no GPU, CPUs, node, memory, no NIC, threads" has "^launch:   1     -    -       -     $mine +[0-9]+ +local   -    3\$" err
check "JSON is there" python3 - "$mine" <<'P'
import glob, json, sys
p, = map(json.load, map(open, glob.glob("logs/*/placement.json")))
r = p["ranks"]
sys.exit(not (p["affinity"] == "node" and p["mem_policy"] == "none" and [x["rank"] for x in r] == [0, 1] and r[1]["cpus"] == sys.argv[1]
              and r[1]["bound"] and r[1]["gpu"] is None and r[1]["omp_num_threads"] == "3"))
P
finish
