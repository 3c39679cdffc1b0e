#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# Users of one server against one another: what root is shown of others' jobs, directories that all may write, a full life without root.
. "$SRC/tests/e2e/lib.sh"
[ "$(id -u)" = 0 ] && command -v setpriv >/dev/null && command -v python3 >/dev/null || skip "needs root, setpriv and python3"
top=$(mktemp -d); trap 'rm -rf "$top"' EXIT; chmod 755 "$top"; cp "$LAUNCH" "$BUILD/examples/rank_sum" "$top/"; cd "$top" || exit 1
LAUNCH=$top/launch
gpus 0; mkdir -p machine/dev/shm machine/tmp home tmp; chmod 1777 machine/dev/shm machine/tmp tmp; chown 65534 home; unset XDG_RUNTIME_DIR
export TMPDIR=$top/tmp LAUNCH_LEASE_DIR=$top/tmp
PATH=/usr/local/bin:/usr/bin:/bin # what others can run, too
as() { local uid=$1; shift; setpriv --reuid="$uid" --regid="$uid" --clear-groups --inh-caps=-all "$@"; }
as 65534 "$LAUNCH" ps >/dev/null 2>&1 || { cd /; skip "nobody can't run programs here"; }
as 65534 python3 -c "" || { cd /; skip "nobody has no python3"; }
wait_for() { until_true grep -qs "$@" || fail "$*"; }

# ---- never needs root ----
cd home || exit 1
as 65534 "$LAUNCH" -n 8 ../rank_sum >out 2>err; rc=$?; expect 0 "the demo as nobody"
check "its sums: $(cat out err)" test "$(grep -c 'sum = 28' out)" = 8
as 65534 "$LAUNCH" --detach -n 2 --run-id=his --log-dir=logs --tee=1 sh -c 'printf "\033]0;x\007secret of nobody\n"; exec sleep '$TAG >out 2>err; rc=$?; expect 0 "in the background"
until_true running 2 || fail "both run: $(cat err)"
as 65534 "$LAUNCH" ps >out; check "he sees it: $(cat out)" has '^his ' out
as 65534 "$LAUNCH" logs his >out; check "he gets his bytes as they are" grep -qa $'\033]0;x\007secret' out

# ---- root looks at it ----
log() { echo logs/his_*/attempt_0/"$1"/stdout.log; }
wait_for secret "$(log 0)"; wait_for secret "$(log 1)"
"$LAUNCH" logs his >out; check "root reads it without controls: $(cat -v out)" grep -qa '?\]0;x?secret of nobody' out
check "both ranks" test "$(grep -ac 'secret of nobody' out)" = 2
echo "secret of root" >"$top/roots"; chmod 600 "$top/roots"; mkfifo "$top/fifo"
as 65534 sh -c "rm $(log 0) $(log 1); ln -s $top/roots $(log 0); ln -s $top/fifo $(log 1)"
timeout 10 "$LAUNCH" logs his >out 2>err; check "no file of root's is shown, and a FIFO holds nobody up: $? $(cat out)" not has 'secret of root' out err
as 65534 sh -c "rm -f logs/his_*/console.log; ln -s $top/roots \$(echo logs/his_*)/console.log"
timeout 10 "$LAUNCH" attach his >out 2>err; rc=$?; expect 2 "attach, likewise"; check "why: $(cat err)" has 'console.log: Operation not permitted' err
check "nothing was shown: $(cat out)" test ! -s out

# ---- his control socket ----
cat >flood.py <<'W'
import glob, os, socket, sys, time
path = glob.glob(sys.argv[1] + "/tmp/launch-65534/his.*")[0]
socks = []
for i in range(300):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.setblocking(False)
    try:
        s.connect(path); s.send([b"x", b"\x48\x43\x4e\x4c\x01\x00", os.urandom(24)][i % 3])
    except OSError: # the backlog is full, or we were dropped for a newer one
        pass
    socks.append(s)
print("flooded", flush=True)
end = time.monotonic() + 30
while not os.path.exists("end") and time.monotonic() < end:
    time.sleep(0.01)
W
as 65534 python3 flood.py "$top/machine" >flooded 2>&1 & flood=$!; until_true grep -qs flooded flooded || fail "the flood: $(cat flooded)"
as 65534 "$LAUNCH" status his >out 2>err; rc=$?; expect 0 "it answers in spite of 300 that ask nothing"
: >end; wait $flood
socket=$(echo "$top"/machine/tmp/launch-65534/his.*)
check "another user gets no connection" not as 54321 python3 -c "import socket; socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect('$socket')" 2>refused; check "it is the directory that keeps him out: $(cat refused)" has PermissionError refused
for id in his hi h 'his*' '' "$socket" ../launch-65534/his; do as 54321 "$LAUNCH" stop "$id" >out 2>err; rc=$?; expect 2 "another user tries '$id'"; done
check "it runs" running 2
as 65534 "$LAUNCH" stop his --now; check "he may end it" until_true running 0

# ---- a directory that all may write ----
cd "$top" || exit 1; mkdir -m 777 open sticky; chmod 777 open; chmod 1777 sticky; warning='runs as root, and all users may write to'
dir() { (cd "$1" && shift && run "$@" && cp out err "$top" 2>/dev/null; echo $rc >"$top/rc"); rc=$(cat rc); }
dir open true; expect 0 "root in a directory of all"; check "one line: $(cat err)" eval '[ "$(wc -l <err)" = 1 ] && has "$warning the working directory" err'
for d in sticky home /; do dir $d true; expect 0 "$d"; check "$d is as usual: $(cat err)" test ! -s err; done; rm -f /out /err
(cd open && as 65534 "$LAUNCH" --log-dir=his true >../out 2>../err); check "his business: $(cat err)" test ! -s err
run --log-dir=open -n 1 true; expect 0 "root's logs there"; check "one line: $(cat err)" eval '[ "$(wc -l <err)" = 1 ] && has "$warning the directory of --log-dir" err'
run --log-dir=sticky true; check "not of a sticky one: $(cat err)" test ! -s err
# where the kernel lets root follow another's link in such a directory (fs.protected_symlinks=0): what was there stays as it was
mkdir -m 700 private; for f in failure.json console.log attempt_0; do echo precious >private/$f; done
as 65534 ln -s "$top/private" sticky/link
run --log-dir=sticky/link -n 2 --tee=3 sh -c 'exit 3'
if [ $rc = 2 ]; then check "one line: $(cat err)" eval '[ "$(wc -l <err)" = 1 ] && has "sticky/link: Permission denied" err'
else
    expect 3 "a link of another user's to a directory of root's"; new=$(find private -mindepth 1 -maxdepth 1 -type d)
    check "one new directory, which only root may enter: $(ls -la private)" eval '[ "$(echo "$new" | wc -l)" = 1 ] && [ "$(stat -c %a "$new")" = 700 ] && [ -s "$new/failure.json" ]'
    check "the rest is as it was" test "$(cat private/failure.json private/console.log private/attempt_0 | grep -cx precious)" = 3
fi
echo precious >victim; cp victim failure.json
"$LAUNCH" --run-id=moved -n 2 --log-dir=open --tee=3 --log-rotate-size=64K --max-restarts=1 sh -c 'echo up; until [ -e go ]; do sleep 0.02; done
    i=0; while [ $i -lt 3000 ]; do echo "line $i of a log that is long enough to be rotated"; i=$((i+1)); done; exit 3' >out 2>err & job=$!
until_true eval 'grep -qs up open/moved_*/attempt_0/1/stdout.log' || fail "it runs: $(cat err)"
as 65534 sh -c 'cd open && d=$(echo moved_*) && mv $d away && mkdir -p $d/attempt_0/0 $d/attempt_0/1 && for f in failure.json .failure.json attempt_0/0/stdout.log attempt_0/1/stdout.log attempt_0/1/stderr.log; do ln -s ../../victim $d/$f; ln -sf '"$top"'/victim $d/$f; done'
: >go; wait $job; rc=$?; expect 3 "its directory was moved away"
check "nothing went where the links point: $(head -c 300 victim)" test "$(cat victim)" = precious
check "logs went on where they were" eval '[ -s open/away/failure.json ] && [ -s open/away/attempt_1/0/stdout.log ]'
cd /; finish
