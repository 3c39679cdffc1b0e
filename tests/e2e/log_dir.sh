#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 60
# Settings of output and log files that can't be: one line, exit 2, nothing started and nothing made.
. "$SRC/tests/e2e/lib.sh"
worker p.sh <<'W'
#!/bin/sh
: >started.$RANK
W
refused() { # REGEX arguments...
    local text=$1; shift
    rm -f started.*
    run --nproc-per-node=2 "$@" ./p.sh
    expect 2 "$*"
    check "$*: message has '$text', is: $(cat err)" has "$text" err
    check "$*: one line" test "$(wc -l <err)" = 1
    check "$*: nothing started" test ! -e started.0
}
: >file; ln -s nowhere dangling; ln -s loop loop
for d in /dev/null/x /proc/nope/x; do refused "log-dir: $d: " --log-dir=$d --tee=3; done
refused "$PWD/file: Not a directory" --log-dir=file
refused "$PWD/file/x: Not a directory" --log-dir=file/x
refused "$PWD/dangling: .*link to something" --log-dir=dangling
refused "$PWD/loop: " --log-dir=loop
if [ "$(id -u)" != 0 ]; then mkdir locked; chmod 500 locked; refused "$PWD/locked: .*denied" --log-dir=locked; fi
refused 'log-dir: must be' --log-dir=
for m in 4 5 33 x 0:4 0:3, 0:3,,1:3 0=3 4096:3 0:3,0:1; do
    refused "redirects: must be .*0:3,10:1, not '$m'" "--redirects=$m"
    refused "tee: must be .*0:3,10:1, not '$m'" -t "$m"
done
refused 'local-ranks-filter: must be' --local-ranks-filter=0,x
refused 'stdin: must be' --stdin=some
refused 'stdin=2: there is no rank 2' --stdin=2
refused 'log-rotate-size: must be' --log-rotate-size=10MB
refused 'log-rotate-keep: must be' --log-rotate-keep=0
for id in a/b .. ../x 'a b'; do refused 'run-id: must be' "--run-id=$id" --log-dir=made; done
TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE=$'a\nb' refused 'TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE' --log-dir=made -t 3
PET_TEE=9 refused 'PET_TEE' --log-dir=made
rm -f started.*
run --log-dir=made ./missing; expect 127 "a program that is not there"
check "and no directory was made for any of them" test ! -e made
run --nproc-per-node=2 -t 0:3,7:3 --log-dir=/dev/null ./p.sh; expect 0 "a rank that is not there"
check "is only told: $(cat err)" has 'warning: --tee: there is no rank 7' err
finish
