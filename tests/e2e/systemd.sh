#!/bin/bash
# SPDX-License-Identifier: MIT
# The unit template is one that systemd takes, and starts launch as it is meant to be started.
. "$SRC/tests/e2e/lib.sh"
unit=$SRC/examples/systemd/launch@.service
# What it says to start can be started, with a file as in the README.
eval "$(sed -n '/^JOB=/,/^END/{/^END/d;s/=\(.*\)/="\1"/;p}' "$SRC/examples/systemd/README.md")"
check "the README has an example" test -n "${JOB:-}"
options=$(sed -n 's/^LAUNCH_\([A-Z_]*\)=.*/\1/p' "$SRC/examples/systemd/README.md" | tr 'A-Z_' 'a-z-')
"$LAUNCH" --help >help
for o in $options; do check "--$o is an option" has "^ .*--$o[ =]" help; done
command=$(sed -n 's|^ExecStart=/usr/local/bin/launch ||p' "$unit" | sed 's/%i/night/')
JOB='sh -c true'; run ${command/\$JOB/$JOB}; expect 0 "the command line"
command -v systemd-analyze >/dev/null || { [ "$failures" = 0 ] && skip "the rest needs systemd-analyze"; finish; }
mkdir -p units; sed "s|/usr/local/bin/launch|$LAUNCH|" "$unit" >units/launch@night.service
SYSTEMD_LOG_LEVEL=warning systemd-analyze verify "$PWD/units/launch@night.service" >said 2>&1; rc=$?
[ $rc = 0 ] || ! has 'Failed to (initialize|create|allocate) manager|Operation not permitted' said || skip "systemd-analyze can't run here: $(head -1 said)"
check "systemd-analyze verify: $(cat said)" test $rc = 0
check "and has nothing to say: $(cat said)" not has 'launch@' said
finish
