#!/bin/bash
# SPDX-License-Identifier: MIT
# Everything from the program on is the job's own, byte for byte.
. "$SRC/tests/e2e/lib.sh"
worker args.sh <<'W'
#!/bin/sh
printf '%s\0' "$@" >got.$RANK
W
mkdir "my job é"; cp args.sh "my job é/run me.sh"
set -- --r=16 --log x --max 3 -m foo --nproc-per-node 9 -h --version "it's" 'say "hi"' 'two  spaces' '' $'a\nb' '*' '$HOME' 'back\slash' $'\xff\xfe' --
printf '%s\0' "$@" >want
for program in ./args.sh "my job é/run me.sh"; do
    rm -f got.*
    run --nproc-per-node 2 "$program" "$@"; expect 0 "$program"
    check "$program: rank 0's arguments" cmp -s want got.0
    check "$program: rank 1's arguments" cmp -s want got.1
done
finish
