#!/bin/bash
# SPDX-License-Identifier: MIT
# The launcher never reads its stdin; one worker inherits it, several get none.
. "$SRC/tests/e2e/lib.sh"
n=$(printf '1\n2\n3\n' | while read -r x; do "$LAUNCH" --nproc-per-node=2 true; echo "$x"; done | wc -l)
check "a read loop keeps its input" test "$n" = 3
check "one worker inherits stdin" test "$(echo hello | "$LAUNCH" cat)" = hello
check "several find it empty" test -z "$(echo hello | "$LAUNCH" --nproc-per-node=2 cat)"
for fd in 0 1 2; do
    eval "\"\$LAUNCH\" --nproc-per-node=2 sh -c 'echo ok >closed.\$RANK' $fd$([ $fd = 0 ] && echo '<' || echo '>')&-"
    check "started with descriptor $fd closed" test -s closed.1; rm -f closed.*
done
if command -v script >/dev/null; then
    check "one worker has the terminal" has 'yes' <(script -qec "$LAUNCH sh -c 'test -t 0 && test -t 1 && echo yes'" /dev/null </dev/null)
fi

which() { echo hello | "$LAUNCH" "$@" sh -c 'if read -r x; then echo "$RANK $x"; fi' | sort | xargs; }
check "one rank gets it" test "$(which --nproc-per-node=3 --stdin=1)" = '1 hello'
check "nobody gets it" test -z "$(which --stdin=none)"
check "a single worker by its number" test "$(which --stdin=0)" = '0 hello'
echo hello >lines
check "all share it" test "$("$LAUNCH" --nproc-per-node=3 --stdin=all sh -c 'readlink /proc/self/fd/0' <lines | sort -u)" = "$PWD/lines"
check "with --tee too" test "$(which --nproc-per-node=2 --stdin=1 --tee=3 --log-dir=/dev/null)" = '[default1]:1 hello'
n=$(printf '1\n2\n' | while read -r x; do "$LAUNCH" --nproc-per-node=2 --tee=3 --log-dir=/dev/null true; echo "$x"; done | wc -l)
check "the agent itself reads nothing" test "$n" = 2
finish
