#!/bin/bash
# SPDX-License-Identifier: MIT
# --nproc-per-node=gpu|auto|cpu and what workers see, on machines described by files.
. "$SRC/tests/e2e/lib.sh"
worker p.sh <<'W'
#!/bin/sh
echo "$LOCAL_RANK|$CUDA_VISIBLE_DEVICES|$CUDA_DEVICE_ORDER" >v.$RANK
W
count() { # N arguments...
    local n=$1; shift; rm -f v.*
    run "$@" ./p.sh; expect 0 "$*"; check "$*: $n workers, got $(ls v.* | wc -l)" test "$(ls v.* | wc -l)" = "$n"
}
gpus 8
count 8 --nproc-per-node=gpu
CUDA_VISIBLE_DEVICES=4,5,6,7 count 4 --nproc-per-node=gpu
CUDA_VISIBLE_DEVICES=4,5,6,7 count 4 --nproc-per-node=4
check "the list is handed on whole: $(cat v.1)" grep -qx '1|4,5,6,7|' v.1
CUDA_VISIBLE_DEVICES=2,0 count 2 --nproc-per-node=gpu --gpu-visibility=rank
check "the user's order is kept: $(cat v.0 v.1)" test "$(cat v.0 v.1 | tr '\n' ' ')" = "0|2| 0|0| "
CUDA_VISIBLE_DEVICES=GPU-000000a3,GPU-000000a1 count 2 --nproc-per-node=gpu --virtual-local-rank
check "and notation: $(cat v.0)" grep -qx '0|GPU-000000a3|' v.0
CUDA_VISIBLE_DEVICES=0,1,-1,2 count 2 --nproc-per-node=gpu
CUDA_VISIBLE_DEVICES=0,1,9,2 count 2 --nproc-per-node=gpu; check "what is cut is told" has "'9'" err
CUDA_VISIBLE_DEVICES=MIG-377e0049-554c-540b-93c6-d0976f8426cb count 1 --nproc-per-node=gpu
count 8 --nproc-per-node=auto
count 3 --nproc-per-node=3 --gpu-visibility=rank; check "numbers of ours come with their order: $(cat v.2)" grep -qx '0|2|PCI_BUS_ID' v.2
rm machine/dev/nvidia6; count 7 --nproc-per-node=gpu
gpus 1; count 4 --nproc-per-node=4 --share-gpus; check "shared: $(cat v.3)" grep -qx '0|0|PCI_BUS_ID' v.3
for none in '' -1 none; do
    CUDA_VISIBLE_DEVICES=$none run --nproc-per-node=gpu ./p.sh; expect 2 "CUDA_VISIBLE_DEVICES='$none'"
done
gpus 0; cpus=$(nproc)
count "$cpus" --nproc-per-node=auto
taskset -c "$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')" true && {
    one() { timeout 20 taskset -c "$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')" "$LAUNCH" --nproc-per-node=cpu ./p.sh; }
    rm -f v.*; one; check "cpu respects the affinity mask" test "$(ls v.* | wc -l)" = 1; }
finish
