#!/bin/bash
# SPDX-License-Identifier: MIT
# What a worker finds: an outer job's variables are gone, odd ones are handed on, no foreign descriptor is open.
. "$SRC/tests/e2e/lib.sh"
worker p.sh <<'W'
#!/bin/sh
echo "$RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $GROUP_RANK $MASTER_ADDR" >e.$LOCAL_RANK
W
(export RANK=7 LOCAL_RANK=5 WORLD_SIZE=99 LOCAL_WORLD_SIZE=9 GROUP_RANK=3 MASTER_ADDR=10.9.8.7 MASTER_PORT=1 \
    SLURM_PROCID=3 SLURM_NTASKS=64 OMPI_COMM_WORLD_RANK=4 PMI_RANK=4
 run --nproc-per-node=2 ./p.sh; exit $rc) || fail "two ranks below an outer job"
for r in 0 1; do check "rank $r: $(cat e.$r)" grep -qx "$r $r 2 2 0 127.0.0.1" e.$r; done

cat >dump.py <<'W'
import os
open("env." + os.environ["RANK"], "wb").write(open("/proc/self/environ", "rb").read())
W
cat >drive.py <<'W'
import os, subprocess, sys
env = dict(os.environb)
env.update({b"BASH_FUNC_ml%%": b"() {  echo hi;\n}", b"ML": b"a\nb\n", b"EQ": b"x=y=z", b"E": b"", b"a.b": b"1",
            b"RAW": b"\xff\xfe", **{b"BIG%d" % i: b"z" * 120000 for i in range(8)}})
rc = subprocess.run([os.environ["LAUNCH"], "--nproc-per-node=2", "python3", "dump.py"], env=env).returncode
for r in "01":
    got = dict(x.split(b"=", 1) for x in open("env." + r, "rb").read().split(b"\0") if x)
    rc += sum(got.get(k) != v for k, v in env.items() if k in (b"BASH_FUNC_ml%%", b"ML", b"EQ", b"E", b"a.b", b"RAW", b"BIG7"))
full = dict(os.environb)
for i in range(2000): full[b"P%d" % i] = b"p" * 990
while True:  # as full as still starts a program
    try: subprocess.run([os.environ["LAUNCH"], "--help"], env=full, stdout=subprocess.DEVNULL); break
    except OSError: full.popitem()
p = subprocess.run([os.environ["LAUNCH"], "--nproc-per-node=2", "/bin/true"], env=full, stderr=subprocess.PIPE, timeout=20)
if p.returncode and b"too long" not in p.stderr: rc += 1; print(p.stderr)
sys.exit(rc)
W
check "odd variables survive, a full environment is told" python3 drive.py

cat >fds.py <<'W'
import os
fds = [f for f in sorted(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd/" + f)]
open("fds." + os.environ["WORLD_SIZE"], "w").write(" ".join(fds))
W
exec 7</dev/null 8>/dev/null
for n in 1 2; do
    run --nproc-per-node=$n python3 fds.py
    check "descriptors of a worker of $n: $(cat fds.$n)" grep -qxE '0 1 100 101 2' fds.$n
done
worker mask.sh <<'W'
#!/bin/sh
grep -E '^Sig(Blk|Ign)' /proc/self/status >mask.$RANK
W
grep -E '^Sig(Blk|Ign)' /proc/self/status >mask.want
run --nproc-per-node=2 ./mask.sh
check "signal mask and dispositions are as the caller had them" cmp -s mask.want mask.0
(ulimit -Sn 256; run --nproc-per-node=64 sh -c 'ulimit -Sn'; exit $rc) || fail "64 workers under ulimit -Sn 256"
check "workers keep the caller's descriptor limit" test "$(sort -u out)" = 256
finish
