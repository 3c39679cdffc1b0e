#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# One directory of locks for several users and containers, and what somebody may have put into it.
. "$SRC/tests/e2e/lib.sh"
gpus 2
chmod 755 . machine; chmod 666 machine/dev/*
export LAUNCH_LEASE_DIR=$PWD/locks
rm -rf locks; mkdir -m 1777 locks
run --gpus=2 true; expect 0 "a sticky directory"
attack() { # WHAT command...: in the place of a lock file
    local what=$1; shift; rm -rf locks/launch-gpu-0000:10:00.0; "$@" locks/launch-gpu-0000:10:00.0
    run --gpus=1 true; expect 2 "$what"; check "$what, one line: $(cat err)" test "$(wc -l <err)" = 1
    check "$what: file and reason are told: $(cat err)" has 'launch-gpu-0000:10:00.0.*(not our lock file|Is a directory)' err
    run --nproc-per-node=2 true; expect 0 "$what: a job without --gpus"; check "$what: it goes on in silence: $(cat err)" test ! -s err
}
echo precious >victim; chmod 666 victim
attack "a symbolic link" ln -s "$PWD/victim"
attack "a dangling link" ln -s "$PWD/nothing"; check "nothing was made there" test ! -e nothing
attack "a hard link" ln victim
attack "a FIFO" mkfifo -m 666
attack "a directory" mkdir
attack "a file of another mode" install -m 644 /dev/null
check "the victim is as it was" test "$(cat victim)" = precious
for how in "ln -s $PWD/victim" "mkfifo -m 666" mkdir; do
    rm -rf locks/*; $how locks/launch-queue; LIMIT=10 run --gpus=1 true; expect 2 "in the place of the queue: $how"
    check "$how, one line: $(cat err)" eval '[ "$(wc -l <err)" = 1 ] && has launch-queue err'
done
rm -rf locks/*; for i in {1..20000}; do echo locks/launch-gpu-$i; done | xargs touch; run --gpus=2 --wait true; expect 0 "a crowd of files that mean nothing"; rm -rf locks; mkdir -m 1777 locks
# lies in the pages harm nobody
run --gpus=1 --wait true; expect 0 "before the lies"
for f in locks/*; do head -c 100000 /dev/urandom >"$f"; done
run --gpus=2 --wait true; expect 0 "pages full of noise"; "$LAUNCH" gpus >out; check "launch gpus: $(cat out)" test "$(grep -c free out)" = 2
for f in locks/*; do truncate -s 100G "$f" || truncate -s 1G "$f"; done 2>/dev/null
run --gpus=2 true; expect 0 "huge lock files"; "$LAUNCH" gpus >out; check "launch gpus: $(cat out)" test "$(grep -c free out)" = 2
# a directory that will not do
for mode in 0777 0775; do rm -rf bad; mkdir bad; chmod $mode bad; run --gpus=1 --lease-dir=bad true; expect 2 "mode $mode"; check "mode $mode: $(cat err)" has 'bad: .*sticky' err; done
run gpus --lease-dir=bad; expect 2 "launch gpus"; check "it says so, too: $(cat err)" has 'gpus: .*bad: .*sticky' err
ln -s locks alias; run --gpus=1 --lease-dir=alias true; expect 0 "a link of the user's own to a directory"
[ "$(id -u)" = 0 ] && command -v setpriv >/dev/null || finish
mkdir foreign; chown 65534 foreign; run --gpus=1 --lease-dir=foreign true; expect 2 "another user's directory"
check "it is told: $(cat err)" has 'foreign: it belongs to another user' err

# two users
nobody() { timeout 30 setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all "$@"; }
copy=$(mktemp -d); trap 'rm -rf "$copy"' EXIT; chmod 755 "$copy"; cp "$LAUNCH" "$copy/launch"
mv machine locks "$copy/"; export LAUNCH_SYSROOT=$copy/machine LAUNCH_LEASE_DIR=$copy/locks; rm -f "$copy"/locks/*
cd "$copy" || exit 1; mkdir -m 777 w; cd w || exit 1
nobody "$copy/launch" gpus >/dev/null || { cd /; skip "another user can't run the launcher here"; }
: >held; chmod 666 held
"$LAUNCH" --run-id=roots --gpus=1 sh -c 'echo up >held; exec sleep '$TAG >/dev/null 2>&1 </dev/null & holder=$!; until_true test -s held
nobody "$copy/launch" --gpus=2 true 2>err; rc=$?; expect 75 "GPUs of another user's job"
check "they see whose: $(cat err)" has 'leased  run roots \(sh, user root, pid' err
nobody "$copy/launch" --run-id=theirs --gpus=1 sh -c 'echo $CUDA_VISIBLE_DEVICES; until [ -e end ]; do sleep 0.02; done' >theirs 2>&1 & other=$!
until_true test -s theirs; check "the other GPU: $(cat theirs)" grep -qx 1 theirs
run --gpus=1 true; expect 75 "now root has to wait"; check "root sees whose: $(cat err)" has 'run theirs \(sh, user (nobody|65534)' err
nobody "$copy/launch" --gpus=2 --wait sh -c 'echo $CUDA_VISIBLE_DEVICES' >both 2>&1 & waiter=$!
until_true has 'in line' both; kill -9 $holder; wait $holder 2>/dev/null; : >end; wait $other $waiter
check "it had both at the end: $(cat both)" has '^0,1$' both
check "files are everybody's: $(ls -l "$LAUNCH_LEASE_DIR")" test -z "$(find "$LAUNCH_LEASE_DIR" -type f ! -perm 666)"
# a directory that an administrator has prepared: files are there, and nobody can remove them
run --gpus=2 true; chmod 755 "$LAUNCH_LEASE_DIR"
nobody "$copy/launch" --gpus=2 true 2>err; rc=$?; expect 0 "prepared files"; rm "$LAUNCH_LEASE_DIR"/launch-queue
nobody "$copy/launch" --gpus=2 true 2>err; rc=$?; expect 2 "a directory that can't be written"; check "one line: $(cat err)" has 'launch-queue: Permission denied' err
chmod 1777 "$LAUNCH_LEASE_DIR"
# containers: namespaces of their own, the same directory
rm -f held end; unshare --pid --mount --ipc --fork --kill-child true 2>/dev/null || { cd /; finish; }
unshare --pid --mount --ipc --uts --fork --kill-child "$LAUNCH" --run-id=inside --gpus=2 sh -c 'echo up >held; exec sleep '$TAG >/dev/null 2>&1 </dev/null & holder=$!; until_true test -s held
run --gpus=1 true; expect 75 "GPUs of a job in a container"; check "it is named: $(cat err)" has 'run inside ' err
unshare --pid --mount --fork --kill-child "$LAUNCH" --gpus=1 --wait sh -c 'echo $CUDA_VISIBLE_DEVICES' >o2 2>&1 & waiter=$!
until_true has 'in line' o2; kill -9 $holder; wait $holder 2>/dev/null; wait $waiter; check "the next container has one of them: $(cat o2)" has '^[01]$' o2 # the guard goes by itself, and may be seen between the one and the other
cd /; finish
