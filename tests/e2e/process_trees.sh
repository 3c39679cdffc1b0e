#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 180
# Workers with unusual families: storms of orphans, daemons, stopped processes, pids that come round again.
. "$SRC/tests/e2e/lib.sh"
# 1000 short children that re-parent to the agent while others' deaths must not be missed
worker storm.sh <<W
#!/bin/bash
if [ \$RANK != 0 ]; then : >up.\$RANK; exec sleep $TAG; fi
until [ -e up.1 -a -e up.2 ]; do :; done
for i in {1..1000}; do (:&); done; zombies() { cat /proc/[0-9]*/stat 2>/dev/null | grep -c ") Z \$PPID "; }
for ((i = 0; i < 200; i++)); do [ "\$(zombies)" = 0 ] && break; read -t 0.02 <> <(:); done; zombies >zombies; exit 4
W
run --nproc-per-node=3 ./storm.sh; expect 4 "a storm of orphans"
check "all orphans were reaped: $(cat zombies)" test "$(cat zombies)" = 0
check "the culprit is known" has 'rank 0 of 3 failed first: it exited with code 4' err

# a daemon (forks twice, own session, streams closed) ends with the job and does not keep it
worker daemon.sh <<W
#!/bin/bash
(setsid bash -c '(exec sleep $TAG) & : >dm.'\$RANK </dev/null >/dev/null 2>&1 &)
until [ -e dm.0 -a -e dm.1 ]; do :; done; exit \$1
W
rm -f dm.*; run --nproc-per-node=2 ./daemon.sh 0; expect 0 "daemons of a job that went well"
check "they were named" has 'left [0-9]+ process(es)? behind, such as' err; check "they are gone" running 0
rm -f dm.*; run --nproc-per-node=2 ./daemon.sh 3; expect 3 "daemons of a job that failed"; check "they are gone" running 0

# stopped workers see the end of their group
worker stopped.sh <<W
#!/bin/bash
[ \$RANK = 0 ] && { until grep -q '^State:.T' /proc/\$(cat pid.1 2>/dev/null || echo self)/status; do :; done; exit 5; }
sleep $TAG & echo \$\$ >pid.1; trap 'echo TERM >got; exit 0' TERM; kill -STOP \$\$; wait
W
run --nproc-per-node=2 ./stopped.sh; expect 5 "a stopped worker while the group ends"
check "it was asked to end" test -s got; check "its child is gone" running 0
# ... also when it stops again and again
worker stubborn.sh <<W
#!/bin/bash
[ \$RANK = 0 ] && { until [ -e up ]; do :; done; exit 5; }
trap 'kill -STOP \$\$' TERM CONT; sleep $TAG & : >up; while :; do wait; done
W
run --nproc-per-node=2 --shutdown-timeout=300ms ./stubborn.sh; expect 5 "a worker that stops itself when asked to end"
check "nothing is left" running 0

# somebody can't run, or is somebody else's to wait for: a parent in vfork(), a traced child that has stopped, its own parent's or another's
cat >odd.c <<'C'
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
static void stay(void)
{
    creat("odd", 0600);
    for (;;)
        pause();
}
int main(int argc, char **argv)
{
    const char *what = argv[argc - 1];
    pid_t child = strcmp(what, "vfork") == 0 ? vfork() : fork();
    if (child == 0) {
        setsid();
        if (strcmp(what, "vfork") == 0)
            stay();
        if (strcmp(what, "traced") == 0 && ptrace(PTRACE_TRACEME, 0, 0, 0) == 0)
            raise(SIGSTOP);
        for (;;)
            pause();
    }
    if (strcmp(what, "seized") == 0) {
        if (fork() > 0)
            for (;;)
                pause();
        setsid();
        ptrace(PTRACE_SEIZE, child, 0, 0);
        ptrace(PTRACE_INTERRUPT, child, 0, 0);
    }
    waitpid(child, &(int){0}, __WALL);
    stay();
}
C
worker odd.sh <<'W'
#!/bin/bash
[ $RANK = 0 ] && exec ./odd_$TAG $1
until [ -e odd ]; do read -r -t 0.02 <> <(:); done; exit 7
W
export TAG
if command -v cc >/dev/null && cc -o odd_$TAG odd.c; then
    for what in vfork traced seized; do
        rm -f odd; run --nproc-per-node=2 --shutdown-timeout=300ms ./odd.sh $what; expect 7 "$what"
        check "$what: nothing of it is left" not pgrep -f "^./odd_$TAG"
    done
fi

# descriptors of the agent: as many in the last attempt as in the first
worker fds.sh <<'W'
#!/bin/bash
[ $RANK = 0 ] && { ls /proc/$PPID/fd | wc -l >>fds; exit 3; }; exec sleep 60
W
run --nproc-per-node=3 --max-restarts=4 ./fds.sh; expect 3 "restarts"
check "no descriptor leaks: $(tr '\n' ' ' <fds)" test "$(sed 1d fds | sort -u | wc -l)" = 1

# 50 pids (the kernel starts again at 300), so that they come round within a job: only our own processes are ever hit
worker reuse.sh <<'W'
#!/bin/bash
[ $RANK = 1 ] && exec sleep 60
for i in {1..150}; do (:); done; (:&); exit 6
W
cat >inside.sh <<W
#!/bin/bash
echo 350 >/proc/sys/kernel/pid_max || exit 77
sleep $TAG & bystander=\$!
for i in 1 2; do
    "$LAUNCH" --nproc-per-node=2 --max-restarts=2 ./reuse.sh >out 2>err </dev/null; [ \$? = 6 ] || { echo "code"; exit 1; }
done
kill -0 \$bystander || { echo "a bystander was killed"; exit 1; }
kill \$bystander
W
# pid_max belongs to the pid namespace since Linux 6.14; before it is the whole machine's, which we leave alone.
if printf '6.14\n%s\n' "$(uname -r | cut -d- -f1)" | sort -VC; then
    timeout -k 2 100 unshare -Urpf --mount-proc bash inside.sh >said 2>&1; rc=$?
    [ $rc = 77 ] || expect 0 "pids that come round: $(head -5 said err)"
fi
finish
