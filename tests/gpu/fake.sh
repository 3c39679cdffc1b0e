# SPDX-License-Identifier: MIT
# Sourced by lib.sh with FAKE=1: a machine of GPUS (4) GPUs, CUDA, NCCL and NVML of tests/fake, jobs linked with them, and
# stand-ins for programs that only a GPU server has (stand_in.py), in the midst of which the scripts can be tried.
fakes=$PWD/$build/tests/fake root=$dir/root
needs launch launch-run tests/fake/{libcudart.so.13,libnccl.so.2,libnvidia-ml.so.1,launch-bench-nccl,gpu_heal,rank_sum,train}
case ${GPUS:=4} in 1) machine=h200-vm ;; 2) machine=h200x2-vm ;; *) machine=h200x4-vm GPUS=4 ;; esac
python3 tests/machines/mkroot.py tests/machines/$machine.machine "$root" || exit 2
mkdir -p "$root/usr/lib" "$dir/bin" "$dir/nccl-tests/build" "$dir/nccl-tests/build-mpi"
ln -s "$fakes/libnvidia-ml.so.1" "$root/usr/lib/"
: >"$root/dev/kmsg"
export LAUNCH_SYSROOT=$root FAKE_NVML_MACHINE=$root/nvml FAKE_GPUS=$GPUS LD_LIBRARY_PATH=$fakes LAUNCH_BENCH_JOB=$dir/bin/bench_job
FAKE_GPU_BUS=$(sed -n 's/^ *\(0000:[^ ]*\) gpu .*/\1/p' tests/machines/$machine.machine | paste -sd,)
export FAKE_GPU_BUS FAKE_SMI_TOPO=$PWD/tests/machines/$machine.smi.txt
heal=$fakes/gpu_heal rank_sum=$fakes/rank_sum train=$fakes/train fault=$dir/bin/fault
# The 64 MiB of --transports are much for a CPU.
printf '#!/bin/bash\nexec "%s" "${@/67108864/65536}"\n' "$fakes/launch-bench-nccl" >"$LAUNCH_BENCH_JOB"
# The first attempt's rank 1 has a fault.
cat >"$fault" <<'W'
#!/bin/bash
[ "$TORCHELASTIC_RESTART_COUNT" = 0 ] || exit 0
[ "$RANK" = 1 ] || exec sleep 60
echo "3,1,99,-;NVRM: Xid (PCI:${FAKE_GPU_BUS%%.*}): 31, pid=$$, name=fault, MMU Fault" >>"$LAUNCH_SYSROOT/dev/kmsg"
kill -ABRT $$
W
chmod +x "$dir"/bin/*
for name in nvidia-smi mpirun; do ln -s "$PWD/tests/gpu/stand_in.py" "$dir/bin/$name"; done
for name in all_reduce all_gather reduce_scatter broadcast reduce alltoall gather scatter sendrecv; do
    for to in build build-mpi; do ln -s "$PWD/tests/gpu/stand_in.py" "$dir/nccl-tests/$to/${name}_perf"; done
done
export PATH=$dir/bin:$PATH NCCL_TESTS=$dir/nccl-tests
