#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 60
# The first screen of the commands that look at a server, where there is no GPU; and wrong words of every command: one line that
# says what was probably meant, exit code 2, nothing started.
. "$SRC/tests/e2e/lib.sh"
gpus 0
export XDG_RUNTIME_DIR=$PWD/run; mkdir -m 700 run # no job of others is seen

run check -n 2; expect 0 "check"; check "check says what it checked: $(cat out)" has '^healthy: 2 ranks in host memory \(no GPU' out
run bench -g 2 -b 8 -e 64 -f 8; expect 0 "bench"; check "bench says so first: $(head -1 out)" has '^# launch bench .*no GPU, no NCCL$' <(head -1 out)
run doctor; check "doctor says so first: $(head -1 out)" has '^No GPU here' <(head -1 out)
run topo; expect 0 "topo"; check "topo says so: $(cat out)" has 'No GPU that this process may use' out
run gpus; expect 0 "gpus"; check "gpus says so: $(cat out)" has '^no GPU that this process may use$' out

wrong() { # CODE PATTERN arguments...
    local code=$1 pattern=$2; shift 2
    run "$@"; expect "$code" "$*"
    check "$*: one line with $pattern: $(cat err)" eval '[ "$(wc -l <err)" = 1 ] && has "$pattern" err && [ ! -s out ]'
}
wrong 2 "there is no 'allreduce'; did you mean all_reduce\?$" bench allreduce
wrong 2 "must be one of all_reduce, .*, not 'nosuch'$" bench nosuch
wrong 2 'did you mean --format\?$' bench --formt=csv
wrong 127 "'chek' was not found in the PATH; did you mean the command: launch check\?$" chek # a program, for all we know
wrong 2 "check: 'nosuch': options of launch are taken here, and no program$" check nosuch
wrong 2 'check: --jso: unknown option' check --jso
wrong 2 'gpus: --clear=x: there is no GPU that this process may use$' gpus --clear=x
wrong 2 'gpus: --clera=0: unknown option; did you mean --clear\?$' gpus --clera=0
wrong 2 'topo: -p2p: unknown option; did you mean --p2p\?$' topo -p2p n
wrong 2 'topo: --fromat=svg: unknown option; did you mean --format\?$' topo --fromat=svg
wrong 2 'topo: x: one word too many; usage: launch topo' topo x
wrong 2 'ps: x: one word too many; launch status RUN shows one job; usage: launch ps' ps x
wrong 2 'ps: -json: unknown option; did you mean --json\?$' ps -json
wrong 2 'status: --wacth: unknown option; did you mean --watch\?$' status x --wacth
wrong 2 'stop: y: one word too many; usage: launch stop RUN \[--now\]$' stop x y
for command in status logs attach stop restart grow signal; do
    wrong 2 "$command: which job\? launch ps lists them; usage: launch $command RUN" $command
    wrong 2 'no job nosuch is running; none is(; what an ended one wrote is in its --log-dir)?$' $command nosuch $([ $command != signal ] || echo USR1)
done
wrong 2 'none is; what an ended one wrote is in its --log-dir$' logs nosuch
wrong 2 'no job nosuch is running; none is$' doctor nosuch
wrong 2 'nosuch: No such file or directory$' doctor --log=nosuch
wrong 2 "no help on 'chek'; did you mean: launch help check\?$" help chek
gpus 2; wrong 2 "gpus: --clear must name GPUs of this server, which has 2, as in 2 or 0-1,3, not 'x'$" gpus --clear=x
finish
