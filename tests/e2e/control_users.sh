#!/bin/bash
# SPDX-License-Identifier: MIT
# Other users neither see nor steer a job; root sees all.
. "$SRC/tests/e2e/lib.sh"
[ "$(id -u)" = 0 ] && command -v setpriv >/dev/null || skip "needs root and setpriv to be two users"
gpus 0; mkdir -p machine/dev/shm machine/tmp; chmod 755 . machine machine/*; chmod 1777 machine/dev/shm machine/tmp; unset XDG_RUNTIME_DIR
cp "$LAUNCH" launch
as() { local uid=$1; shift; setpriv --reuid="$uid" --regid="$uid" --clear-groups "$@"; }
as 65534 true 2>/dev/null || skip "may not become another user"
as 65534 ./launch ps >/dev/null 2>&1 || skip "nobody can't run programs here"
listed() { as "$1" ./launch ps --json | grep -c run_id; }
./launch -n 1 --run-id=roots sleep $TAG >out 2>err </dev/null & roots=$!
as 65534 ./launch -n 1 --run-id=nobodys sleep $TAG >out2 2>err2 </dev/null & nobodys=$!
until_true running 2 || fail "both jobs run: $(cat err err2)"
until_true eval '[ "$(listed 0)" = 2 ]' || fail "root sees both"
check "nobody sees his own" test "$(listed 65534)" = 1
check "another user none" test "$(listed 54321)" = 0
check "root is told whose it is" eval './launch ps | grep -q "^nobodys.*nobody"'
as 65534 ./launch stop roots >said 2>told; rc=$?; expect 2 "root's job is not nobody's to stop"
check "it is unknown to him: $(cat told)" has 'no job roots is running' told
as 54321 ./launch stop nobodys >said 2>told; rc=$?; expect 2 "nor that of another"
check "both still run" running 2
./launch stop nobodys >said 2>told; rc=$?; expect 0 "root may stop it"
wait $nobodys; rc=$?; expect 143 "it was stopped"
./launch stop roots; wait $roots
# a trap: somebody else was there first
as 54321 mkdir -m 700 machine/dev/shm/launch-65534
LAUNCH_LOG=debug as 65534 ./launch -n 1 true >out 2>err; rc=$?; expect 0 "the job runs all the same"
check "it is not used" has 'belongs to uid 54321, not to 65534' err
finish
