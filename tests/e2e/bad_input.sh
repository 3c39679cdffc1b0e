#!/bin/bash
# SPDX-License-Identifier: MIT
# limit: 120
# Bad input: one line that says what and where, exit 2 (126 and 127 for programs), nothing started.
. "$SRC/tests/e2e/lib.sh"
worker p.sh <<'W'
#!/bin/sh
: >started.$RANK
W
refused() { # CODE REGEX arguments...
    local code=$1 text=$2; shift 2
    rm -f started.*
    run "$@"
    expect "$code" "$*"
    check "$*: message has '$text', is: $(cat err)" has "$text" err
    check "$*: one line" test "$(wc -l <err)" = 1
    check "$*: nothing on stdout" test ! -s out
    check "$*: nothing started" test ! -e started.0
}
for v in '' ' ' 0 -1 -5 4.0 '8 ' ' 2' foo 99999 1e1 0x2 2x +-2 '2 3' 99999999999999999999 GPU; do
    refused 2 nproc-per-node "--nproc-per-node=$v" ./p.sh
done
run --nproc-per-node=08 ./p.sh; expect 0 "08 is eight"; check "eight ranks" test "$(ls started.* | wc -l)" = 8
refused 2 'did you mean --nproc-per-node' --nproc-per-nod 2 ./p.sh
refused 2 'no-such-option' --no-such-option ./p.sh
refused 2 'max-restarts' --max-restarts=-1 ./p.sh
refused 2 'rendezvous-timeout' --rendezvous-timeout=-3 ./p.sh
refused 2 'shutdown-timeout' --shutdown-timeout=x ./p.sh
refused 2 'master-port' --master-port=70000 ./p.sh
refused 2 'nnodes' --nnodes=2 ./p.sh
refused 2 'program'
PET_NPROC_PER_NODE=x refused 2 'PET_NPROC_PER_NODE' ./p.sh
LAUNCH_MAX_RESTARTS=x refused 2 'LAUNCH_MAX_RESTARTS' ./p.sh

# What somebody in a hurry types.
refused 2 'did you mean --nproc-per-node' --nproc 4 ./p.sh
refused 2 'did you mean --nproc-per-node' --nprocs 4 ./p.sh
refused 2 'launch --help has the rest$' -n 4
refused 2 'needs a value: --nproc-per-node=' --nproc-per-node --standalone ./p.sh
refused 2 'number from 1 .* not .=' --nproc-per-node = 4 ./p.sh
refused 2 'several servers yet .*--nproc-per-node=gpu' --nnodes=2 --nproc-per-node=8 ./p.sh
refused 2 'must be 0' --nnodes=1 --node-rank=1 ./p.sh
refused 2 'static.*c10d' --rdzv-backend=etcd ./p.sh
refused 2 'module contradicts --no-python' -m --no-python pkg
: >train.py
refused 2 "called 'train'" -m train.py
refused 2 "no module's name" -m ./train.py
refused 127 'did you mean train.py' train
refused 127 'option --nproc-per-node' nproc_per_node=4 ./p.sh
refused 127 'typographic dash' –nproc-per-node=4 ./p.sh
refused 127 'stand behind the' --nproc-per-node=4 ' ' ./p.sh
refused 127 'command: launch help' halp
refused 127 'option --version' version
refused 127 "'gone.py': No such file" gone.py
: >'a b.py'; PATH=/none "$LAUNCH" 'a b.py' 2>err; check "a name with a blank: $(cat err)" has 'set PYTHON_EXEC$' err
# What somebody types who comes from mpirun, srun or docker.
refused 2 'unknown option; --affinity' --map-by=core ./p.sh
refused 2 'unknown option; a job has one server' -H node1:4 ./p.sh
refused 2 'unknown option; --max-restarts' --restart=always ./p.sh
refused 127 'stand before launch: N=1 launch' N=1 ./p.sh
refused 127 'words of their own' './p.sh --lr=1'
refused 127 'launch ps lists the jobs' list
echo 'program: ./p.sh' >job.yaml
refused 127 'did you mean --config=job.yaml' job.yaml
refused 126 'did you mean --config=./job.yaml' ./job.yaml
echo 'command: ./p.sh' >words.yaml
refused 2 "words.yaml:1:1: unknown key 'command'; 'program'" --config=words.yaml
PYTHON_EXEC=/no/such/python refused 127 'PYTHON_EXEC' train.py
printf '#!/bin/sh\nPATH=/nowhere exec %s "$@"\n' "$LAUNCH" >pathless; chmod +x pathless
LAUNCH=./pathless refused 127 'neither python nor python3' train.py
chmod a-r train.py; [ -r train.py ] || refused 126 'may not be read' train.py

refused 127 './missing' ./missing
refused 127 "'no-such-program-here' was not found in the PATH$" no-such-program-here
: >plain; refused 126 'plain' ./plain
mkdir dir a_dir; refused 126 'directory' ./dir; refused 126 'directory' dir/
refused 126 "'a_dir' is a directory, not a program" a_dir
printf '#!/bin/sh\r\necho hi\r\n' >crlf.sh; chmod +x crlf.sh; refused 127 'sh.r' ./crlf.sh
printf '#!/usr/bin/env python3\r\nprint(1)\r\n' >crlf; chmod +x crlf; refused 127 'env python3.r.: .*DOS line ends' ./crlf
printf '#!/no/such/interp\n' >noint.sh; chmod +x noint.sh; refused 127 '/no/such/interp' ./noint.sh
printf 'echo ran >got.$RANK\n' >nosb; chmod +x nosb
run --nproc-per-node=2 ./nosb; expect 0 "a text without #! is run by sh"; check "both ran" test -s got.0 -a -s got.1
printf '\177ELF garbage\0' >bad.elf; chmod +x bad.elf
run --nproc-per-node=2 --max-restarts=2 ./bad.elf; expect 126 "garbage behind an ELF magic"
check "what it may be: $(cat err)" has 'Exec format error, built for another CPU' err
check "exec's reason is told once: $(cat err)" test "$(grep -c 'Exec format error' err)" = 1
refused 2 '--master-addr: 192.0.2.1 is no address of this server' --master-addr=192.0.2.1 ./p.sh
LAUNCH_MAX_RESTART=3 PET_NPROC_PER_NOD=2 LAUNCH_COLOR_OF_MINE=red run ./p.sh; expect 0 "slips in variables"
check "are told: $(cat err)" has '^launch: warning: LAUNCH_MAX_RESTART is not read by launch; did you mean LAUNCH_MAX_RESTARTS\?$' err
check "torchrun's, too" has 'PET_NPROC_PER_NOD .*PET_NPROC_PER_NODE' err
check "others are not looked at" test "$(wc -l <err)" = 2
gpus 4
CUDA_VISIBLE_DEVICES=0,0 refused 2 CUDA_VISIBLE_DEVICES ./p.sh
CUDA_VISIBLE_DEVICES=0,foo refused 2 foo ./p.sh
CUDA_VISIBLE_DEVICES=1,GPU-000000a1 refused 2 GPU-000000a1 --nproc-per-node=gpu ./p.sh
refused 2 'share-gpus' --gpu-visibility=rank --nproc-per-node=8 ./p.sh
gpus 0; refused 2 'auto' --nproc-per-node=gpu ./p.sh
finish
