#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# Where a cgroup v2 leaf can be had the workers live in one; it goes with the job, whoever of us is killed.
. "$SRC/tests/e2e/lib.sh"
leaves() { find /sys/fs/cgroup -maxdepth 8 -type d -name "launch-$ID*" 2>/dev/null | wc -l; }
none() { [ "$(leaves)" = 0 ]; }
ID=t$$
run --nproc-per-node=2 --run-id=$ID cat /proc/self/cgroup; expect 0 "a plain job"
check "no leaf is left" none
grep -q "0::.*launch-$ID-" out || skip "no cgroup v2 leaf can be had here"
check "both workers were in it" test "$(grep -c "0::.*launch-$ID-" out)" = 2
run --nproc-per-node=2 --run-id=$ID --cgroup=off cat /proc/self/cgroup; expect 0 "--cgroup=off"
check "and then not" not has "launch-$ID" out

# Deeper than a walk of the tree follows, each in a session of its own and deaf to TERM.
worker chain.sh <<'W'
#!/bin/bash
trap '' TERM
[ "$1" = 0 ] && { : >deep.$RANK; exec sleep $2; }
setsid --fork "$0" $(($1 - 1)) "$2"; exec sleep $2
W
# What a worker makes below the leaf goes as well.
worker below.sh <<'W'
#!/bin/bash
for base in /sys/fs/cgroup /sys/fs/cgroup/unified; do
    dir=$base$(sed -n 's/^0:://p' /proc/self/cgroup); [ -e "$dir/cgroup.procs" ] && mkdir -p "$dir/a/b" && echo $$ >"$dir/a/b/cgroup.procs"
done
: >made.$RANK; exec sleep $1
W
for how in guard agent TERM; do
    for job in "./chain.sh 45 $TAG" "./below.sh $TAG"; do
        rm -f deep.* made.*
        "$LAUNCH" --nproc-per-node=2 --run-id=$ID --shutdown-timeout=200ms $job >out 2>err </dev/null & pid=$!
        case $job in *chain*) until_true running 92 ;; *) until_true test -e made.0 -a -e made.1; until_true running 2 ;; esac ||
            fail "$job comes up: $(tagged)"
        check "$how: there is a leaf" not none
        agent=$(pgrep -P $pid | head -1)
        case $how in guard) kill -9 $pid ;; agent) kill -9 "$agent" ;; TERM) kill $pid ;; esac
        wait $pid 2>/dev/null; rc=$?
        [ $how = TERM ] && expect 143 "TERM" || expect 137 "$how killed"
        until_true running 0 || fail "$how, $job: $(tagged) are left"
        until_true none || fail "$how, $job: $(leaves) leaves are left"
    done
done
finish
