#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 240
# Containers and chroots that lack something: /proc, what others do in it, all that can be written, /dev/shm, /sys. The sums are right, a
# failure is told with its code, and what has left its session ends, too.
. "$SRC/tests/e2e/lib.sh"
own="unshare -m"; [ "$(id -u)" = 0 ] || own="unshare -Urm"
$own true 2>/dev/null || skip "no mount namespaces here"
top=$(mktemp -d); trap 'rm -rf "$top"' EXIT; chmod 755 "$top"; cp "$LAUNCH" "$BUILD/examples/rank_sum" "$top/"
outside=$(readlink /proc/self/ns/mnt)
cd "$top" || exit 1; gpus 0; cd "$OLDPWD" || exit 1
worker "$top/daemon.sh" <<E
#!/bin/sh
[ \$RANK = 0 ] || exec sleep $TAG
(setsid sleep $TAG &)
sleep $TAG & exit 4
E
# world WHAT COMMANDS...: both jobs in a namespace where these were done; AS=: how they are started
world() {
    local what=$1; shift
    { echo "[ \"\$(readlink /proc/self/ns/mnt)\" != '$outside' ] || exit 9"; printf '%s\n' "$@" "cd $top"; echo "exec ${AS-} \"\$@\""; } >in_world.sh
    inside() { timeout -k 5 60 $own sh -e in_world.sh "$@" >out 2>err </dev/null; rc=$?; }
    inside true; [ $rc = 0 ] || { echo "left out: $what: $(cat err)"; return; }
    inside ./launch -n 2 ./rank_sum; expect 0 "$what: a job"
    check "$what: its sums: $(cat out err)" test "$(grep -c 'of 2: sum = 1' out)" = 2
    inside ./launch -n 2 --shutdown-timeout=5 ./daemon.sh; expect 4 "$what: a failure"
    check "$what: it is told: $(cat err)" has 'rank 0 of 2 failed first: it exited with code 4' err
    check "$what: nothing is left" running 0; reap
}
world "no /proc" "mount -t tmpfs none /proc"
world "no /dev/shm" "mount -t tmpfs -o ro none /dev/shm"
world "no /sys" "mount -t tmpfs none /sys"
world "nothing can be written" "mount -t tmpfs -o ro none /dev/shm" "mount -o remount,bind,ro /" "touch $top/x && exit 9 || :"
own="$own --pid --fork" AS="setpriv --reuid=65534 --regid=65534 --clear-groups"
world "a /proc that hides processes" "mount -t proc -o hidepid=2 proc /proc" "$AS $top/launch --version"
finish
