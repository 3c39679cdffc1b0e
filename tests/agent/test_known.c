/* SPDX-License-Identifier: MIT */
#include "../../agent/doctor/known.h"
#include "../../proto/base.h"
#include "../harness.h"

#include <stdio.h>
#include <stdlib.h>

static const char *name_of(const char *line)
{
    const struct known *known = known_of_line(line, strlen(line));
    return known ? known->name : "(none)";
}

#define AT "gpu7:27907:27907 [1] "

/* As programs write them: formats of NCCL 2.18 to 2.30 and of PyTorch, filled in; the rest follows the issues that the
 * rows name. */
static const struct {
    const char *name, *line;
} LINES[] = {
    {"shm-full", "n1:88:140 [3] misc/shmutils.cc:72 NCCL WARN Error: failed to extend "
                 "/dev/shm/nccl-JNHtwg to 9637892 bytes"},
    {"shm-full",
     "n1:88:140 [3] misc/shmutils.cc:113 NCCL WARN Error while creating shared memory "
     "segment /dev/shm/nccl-JNHtwg (size 9637888), error: No space left on device (28)"},
    {"shm-full",
     "include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device"},
    {"shm-full", "ERROR: Unexpected bus error encountered in worker. This might be caused by "
                 "insufficient shared memory (shm)."},
    {"shm-full",
     "RuntimeError: DataLoader worker (pid 46794) is killed by signal: Bus error. It is "
     "possible that dataloader's workers are out of shared memory. Please try to raise "
     "your shared memory limit."},
    {"shm-forbidden", "include/shm.h:48 NCCL WARN Call to shm_open failed : Permission denied"},
    {"shm-forbidden", AT "misc/shmutils.cc:73 NCCL WARN Error: failed to create shared memory file "
                         "/dev/shm/nccl-uZk0UH, error Permission denied (13)"},
    {"shm-not-shared", AT "NCCL WARN Error while attaching to shared memory segment "
                          "/dev/shm/nccl-\x01\x02 (size 0), error: No such file or directory (2)"},
    {"shm-removed",
     AT "misc/shmutils.cc:151 NCCL WARN unlink shared memory /dev/shm/nccl-Ab2 failed, "
        "error: No such file or directory (2)"},
    {"cumem-host",
     AT "NCCL INFO cuMem host allocations do not appear to be working; falling back to "
        "a /dev/shm/ based implementation. This could be due to the container runtime"},
    {"shm-torch", "RuntimeError: unable to open shared memory object </torch_812_1> in read-write "
                  "mode: Too many open files (24)"},
    {"fabric-manager", "Test CUDA failure common.cu:941 'system not yet initialized'"},
    {"fabric-manager",
     "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system "
     "not yet initialized"},
    {"nvls-bind",
     "[2026-06-23 15:45:07] " AT
     "transport/nvls.cc:379 (nvlsAllocateMem) NCCL WARN Failed to bind NVLink SHARP "
     "(NVLS) Multicast memory of size 2097152 : CUDA error 401 'the operation cannot be "
     "performed in the present state'."},
    {"nvls-bind", "[2025-05-10 23:09:41] " AT
                  "transport/nvls.cc:254 NCCL WARN Cuda failure 1 'invalid argument'"},
    {"nvls-bind", "transport/nvls.cc:165 NCCL WARN Cuda failure 'invalid argument'"},
    {"nvls-other", AT "transport/nvls.cc:223 NCCL WARN Cuda failure 999 'unknown error'"},
    {"imex", AT "misc/cudawrap.cc:182 NCCL WARN Cuda failure 800 'operation not permitted'"},
    {"driver-mismatch", "Failed to initialize NVML: Driver/library version mismatch"},
    {"driver-too-old",
     AT "init.cc:480 NCCL WARN Cuda failure 'CUDA driver version is insufficient for CUDA runtime "
        "version'"},
    {"driver-too-old", "RuntimeError: The NVIDIA driver on your system is too old (found version "
                       "11040)."},
    {"forward-compat",
     "RuntimeError: cuda runtime error (804) : forward compatibility was attempted "
     "on non supported HW at THCGeneral.cpp:47"},
    {"no-gpu", "RuntimeError: No CUDA GPUs are available"},
    {"no-gpu", "cudaErrorNoDevice: no CUDA-capable device is detected"},
    {"no-hip-gpu", "RuntimeError: No HIP GPUs are available"},
    {"gpu-lost", "Unable to determine the device handle for GPU 0000:19:00.0: Unknown Error"},
    {"gpu-lost",
     "[ 9.1] NVRM: Xid (PCI:0000:19:00): 79, pid=812, name=python, GPU has fallen off the "
     "bus."},
    {"xid",
     "[ 9.1] NVRM: Xid (PCI:0000:19:00): 94, pid=812, name=python, Contained: CE User Channel"},
    {"ecc", "RuntimeError: CUDA error: uncorrectable ECC error encountered"},
    {"gpu-busy", "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable"},
    {"gpu-busy", "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable"},
    {"gpu-ordinal", "RuntimeError: CUDA error: invalid device ordinal"},
    {"gpu-memory",
     "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has "
     "a total capacity of 23.65 GiB of which 11.06 MiB is free."},
    {"gpu-memory", AT "include/alloc.h:178 NCCL WARN Cuda failure 2 'out of memory'"},
    {"gpu-memory", AT "NCCL WARN Failed to CUDA calloc 4194304 bytes"},
    {"no-kernel",
     "RuntimeError: CUDA error: no kernel image is available for execution on the device"},
    {"no-kernel", AT "enqueue.cc:77 NCCL WARN Cuda failure 'named symbol not found'"},
    {"nccl-smem",
     AT "NCCL WARN cudaArch 1200 ncclMaxSharedMem 82240 exceeds device/fn maxSharedMem "
        "79856"},
    {"peer-access", AT "NCCL WARN Cuda failure 217 'peer access is not supported between these two "
                       "devices'"},
    {"peer-exhausted", AT "NCCL WARN Cuda failure 711 'peer mapping resources exhausted'"},
    {"nvlink-p2p-off", AT "NCCL WARN P2P is disabled between NVLINK connected GPUs 1 and 0. This "
                          "should not be the case given their connectivity"},
    {"illegal-access", "RuntimeError: CUDA error: an illegal memory access was encountered"},
    {"device-assert", "RuntimeError: CUDA error: device-side assert triggered"},
    {"duplicate-gpu", AT "init.cc:904 NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on "
                         "CUDA device 18000"},
    {"duplicate-gpu", AT "NCCL WARN Multiple Ranks are using the same GPU/Partition. Set "
                         "NCCL_MULTI_RANK_GPU_ENABLE=1 to enable this configuration."},
    {"device-unknown", "[rank1]:[W ProcessGroupNCCL.cpp:4115] [PG 0 Rank 1] using GPU 1 to perform "
                       "barrier as devices used by this process are currently unknown."},
    {"no-interface", AT "bootstrap.cc:114 NCCL WARN Bootstrap : no socket interface found"},
    {"no-interface", AT "NCCL WARN no device found matching eth9, verify NCCL_OOB_NET_IFNAME"},
    {"nccl-connect",
     "ubuntu:39964:40075 [0] misc/socket.cc:483 NCCL WARN socketStartConnect: Connect "
     "to 10.0.0.2<45763> failed : Software caused connection abort"},
    {"nccl-connect", "gpu-bql:18553:18611 [0] include/socket.h:360 WARN Call to connect failed : "
                     "Connection timed out"},
    {"nccl-connect",
     AT "misc/socket.cc:582 NCCL WARN socketPollConnect: connect to 127.0.0.1<4001> "
        "returned Connection refused, exceeded error retry count after 35 attempts"},
    {"uds", AT "misc/ipcsocket.cc:221 NCCL WARN UDS: Sending data over socket "
               "/tmp/nccl-socket-0-1 failed : Connection refused (111)"},
    {"id-reused", AT "NCCL WARN Bootstrap Root : rank 3 of 8 ranks has already checked in"},
    {"id-reused",
     AT "NCCL WARN Bootstrap Root : mismatch in info from procs, nranks 8 vs 4, nroots 1 "
        "vs 1, iroot 0 vs 0"},
    {"nccl-versions", AT "init.cc:896 NCCL WARN Mismatched NCCL version detected : rank 0 version "
                         "21803 rank 1 version 22005"},
    {"truncated",
     AT "bootstrap.cc:209 NCCL WARN Message truncated : received 1024 bytes instead of "
        "256"},
    {"collective-mismatch",
     "init.cc:1247 NCCL WARN Mismatched collective detected, please check your collective calls at "
     "and around rank 39."},
    {"memlock", AT "misc/ibvwrap.cc:149 NCCL WARN Call to ibv_create_cq failed"},
    {"memlock", AT "NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory"},
    {"iommu", AT "NCCL WARN Missing \"iommu=pt\" from kernel command line which can lead to system "
                 "instablity or hang!"},
    {"numa-balancing",
     AT "NCCL WARN NUMA auto balancing enabled which can lead to variability in the "
        "RCCL performance! Disable by \"sudo sysctl kernel.numa_balancing=0\""},
    {"fine-grain", AT "NCCL WARN Missing \"HSA_FORCE_FINE_GRAIN_PCIE=1\" from environment"},
    {"store-port", "[E socket.cpp:435] [c10d] The server socket has failed to listen on any local "
                   "network address."},
    {"store-port", "RuntimeError: Address already in use"},
    {"gloo-connect",
     "[rank1]:[E528 08:52:46.164295950 ProcessGroupGloo.cpp:145] Gloo connectFullMesh "
     "failed with [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:144] no error"},
    {"gloo-connect",
     "RuntimeError: [../third_party/gloo/gloo/transport/tcp/device.cc:83] Unable to "
     "find address for: eth9"},
    {"store-connect", "torch.distributed.DistNetworkError: The client socket has timed out after "
                      "600000ms while trying to connect to (172.17.0.9, 46229)."},
    {"libnccl", "ImportError: /opt/conda/lib/python3.9/site-packages/torch/lib/libtorch_cuda.so: "
                "undefined symbol: ncclCommRegister"},
    {"libnccl",
     "./job: error while loading shared libraries: libnccl.so.2: cannot open shared object "
     "file: No such file or directory"},
    {"library-symbol", "ImportError: /x/ext.so: undefined symbol: _ZN3c105ErrorC2E"},
    {"library-missing",
     "./a: error while loading shared libraries: libfoo.so.1: cannot open shared "
     "object file"},
    {"glibc", "./a: /lib/libc.so.6: version `GLIBC_2.38' not found"},
    {"python-module", "ModuleNotFoundError: No module named 'torch'"},
    {"python-script", "python3: can't open file '/x/t.py': [Errno 2] No such file or directory"},
    {"ddp-unused",
     "RuntimeError: Expected to have finished reduction in the prior iteration before "
     "starting a new one."},
    {"open-files", "OSError: [Errno 24] Too many open files"},
    {"threads", "libgomp: Thread creation failed: Resource temporarily unavailable"},
    {"threads", "RuntimeError: can't start new thread"},
    {"host-memory", "terminate called after throwing an instance of 'std::bad_alloc'"},
    {"host-memory", "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 8. TiB"},
    {"disk-full", "write: No space left on device"},
    {"nfs", "OSError: [Errno 116] Stale file handle: 'ckpt/model.pt'"},
    {"bus-error", "Bus error (core dumped)"},
    {"collective-timeout",
     "[rank0]:[E1206 18:44:12.7 ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective "
     "operation timeout: WorkNCCL(SeqNum=7753, OpType=_REDUCE_SCATTER_BASE)"},
    {"collective-timeout", "RuntimeError: [../gloo/transport/tcp/unbound_buffer.cc:81] Timed out "
                           "waiting 1800000ms for recv operation to complete"},
    {"peer-gone", "ubuntu:39964:40044 [0] misc/socket.cc:49 NCCL WARN socketProgress: Connection "
                  "closed by remote peer node1<57557>"},
    {"peer-gone", "RuntimeError: [../gloo/transport/tcp/pair.cc:534] Connection closed by peer "
                  "[127.0.0.1]:30671"},
    {"nccl-error", "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:1269, unhandled system error "
                   "(run with NCCL_DEBUG=INFO for details), NCCL version 2.14.3"},
    {"nccl-error",
     "Test NCCL failure common.cu:958 'internal error - please report this issue to the "
     "NCCL developers / '"},
    {"nccl-usage", "ncclInvalidUsage: This usually reflects invalid usage of NCCL library."},
    {"driver-mismatch", "[ 41.2] NVRM: API mismatch: the client has the version 550.54.15, but"},
    {"container-gpus", "Failed to initialize NVML: Unknown Error"},
    {"cuda-unknown", "RuntimeError: CUDA unknown error - this may be due to an incorrectly set up "
                     "environment, e.g. changing env variable"},
    {"cuda-fork", "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with "
                  "multiprocessing, you must use the 'spawn' start method"},
    {"gpu-ordinal", "AssertionError: Invalid device id"},
    {"cublas",
     "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"},
    {"cublas", "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED"},
    {"illegal-access", "RuntimeError: CUDA error: unspecified launch failure"},
    {"nccl-algorithm", "x:1:1 [0] enqueue.cc:2063 NCCL WARN No algorithm/protocol available for "
                       "function Broadcast with datatype ncclInt8. NCCL_ALGO was set to Tree."},
    {"nccl-algorithm",
     "x:1:1 [0] enqueue.cc:422 NCCL WARN Error : no algorithm/protocol available"},
    {"nccl-argument",
     "x:1:1 [0] misc/argcheck.cc:16 NCCL WARN AllReduce : sendbuff 0x7f is not a valid pointer"},
    {"nccl-argument", "x:1:1 [0] misc/argcheck.cc:204 NCCL WARN Broadcast : invalid root 8 (root "
                      "should be in the 0..8 range)"},
    {"memlock", "x:1:1 [0] misc/ibvwrap.cc:205 NCCL WARN Call to ibv_create_cq failed with error "
                "Cannot allocate memory"},
    {"infiniband", "x:1:1 [0] misc/ibvwrap.cc:210 NCCL WARN Call to ibv_create_qp failed with "
                   "error No space left on device"},
    {"infiniband", "x:1:1 [4] transport/net_ib/p2p.cc:688 NCCL WARN NET/IB: Got completion from "
                   "peer 10.0.0.2<4711> with status=12 vendor err 129"},
    {"infiniband", "x:1:1 [4] NCCL WARN NET/IB : mlx5_3:1 Got async event : port error"},
    {"barrier", "RuntimeError: [Rank 0]: Ranks 1, 3 failed to pass monitoredBarrier in 30000 ms"},
    {"no-launcher", "ValueError: Error initializing torch.distributed using env:// rendezvous: "
                    "environment variable MASTER_ADDR expected, but not set"},
    {"torch-no-group", "RuntimeError: Default process group has not been initialized, please make "
                       "sure to call init_process_group."},
    {"local-rank", "train.py: error: the following arguments are required: --local_rank"},
    {"local-rank", "train.py: error: the following arguments are required: --data, --local-rank"},
    {"local-rank", "train.py: error: unrecognized arguments: --local_rank=0"},
    {"local-rank", "train.py: error: unrecognized arguments: --local-rank=0"},
    {"gloo-sizes",
     "  what():  [enforce fail at ./gloo/transport/tcp/pair.cc:510] op.preamble.length <= "
     "op.nbytes. 8 vs 4"},
    {"torch-no-cuda", "AssertionError: Torch not compiled with CUDA enabled"},
    {"torch-no-cuda", "AttributeError: module 'torch._C' has no attribute '_cuda_setDevice'"},
    {"no-launch-main", "launch-run: ./job.so has no launch_main()"},
    {"python-module", "/usr/bin/python3: No module named train"},
    {"torch-no-nccl", "RuntimeError: Distributed package doesn't have NCCL built in"},
    {"oom-killer",
     "kernel: Out of memory: Killed process 4711 (python3) total-vm:91234kB, anon-rss:81234kB"},
    {"oom-killer", "slurmstepd: error: Detected 1 oom_kill event in StepId=12.0. Some of the step "
                   "tasks have been OOM Killed."},
    {"collective-timeout", "[rank0]:[E ProcessGroupNCCL.cpp:1316] [PG 0 Rank 0] Heartbeat monitor "
                           "timed out! Process will be terminated after dumping debug info."},
    {"collective-timeout",
     "[rank4]:[E205 ProcessGroupNCCL.cpp:1870] [PG ID 12 Rank 4] ProcessGroupNCCL's watchdog got "
     "stuck for 480 seconds without making progress"},
    {"peer-gone", "torch.distributed.DistBackendError: [1] is setting up NCCL communicator and "
                  "retrieving ncclUniqueId from [0] via c10d key-value store by key '0', but "
                  "store->get('0') got error: Connection reset by peer"},
    {"store-clients", "torch.distributed.DistStoreError: Timed out after 901 seconds waiting for "
                      "clients. 1/2 clients joined."},
    {"killed", "  traceback : Signal 9 (SIGKILL) received by PID 4711"},
    {"nccl-error", "x:1:1 [0] proxy.cc:1905 NCCL WARN [Proxy Service 0] Failed to execute "
                   "operation Connect from rank 0, retcode 3"},
};

TEST(every_known_failure_is_found_by_a_line_as_programs_write_it)
{
    for (size_t i = 0; i < KNOWN_N; i++) {
        bool tried = false;
        for (size_t k = 0; k < ARRAY_LEN(LINES); k++)
            tried |= strcmp(LINES[k].name, KNOWN[i].name) == 0;
        if (!tried)
            test_fail(__FILE__, __LINE__, "no line for %s", KNOWN[i].name);
    }
    for (size_t k = 0; k < ARRAY_LEN(LINES); k++)
        if (strcmp(name_of(LINES[k].line), LINES[k].name) != 0)
            test_fail(__FILE__, __LINE__, "%s, not %s: %s", name_of(LINES[k].line), LINES[k].name,
                      LINES[k].line);
}

/* No earlier row takes a line away from a sign, and none is too short to be looked for. */
TEST(every_sign_of_a_known_failure_finds_its_own_row)
{
    for (size_t i = 0; i < KNOWN_N; i++) {
        CHECK(KNOWN[i].signs[0] && KNOWN[i].cause && KNOWN[i].fix);
        CHECK_INT(strlen(KNOWN[i].cause) + strlen(KNOWN[i].fix), <, 600);
        for (unsigned k = 0; k < KNOWN_SIGNS && KNOWN[i].signs[k]; k++) {
            char line[256];
            size_t n = 0;
            const char *gap = strstr(KNOWN[i].signs[k], "...");
            CHECK(!gap || gap - KNOWN[i].signs[k] >= 4);
            for (const char *at = KNOWN[i].signs[k]; *at; at++, n++) {
                bool is_gap = strncmp(at, "...", 3) == 0;
                line[n] = is_gap ? '#' : *at;
                at += is_gap ? 2 : 0;
            }
            line[n] = '\0';
            CHECK_INT(n, >=, 6);
            if (strcmp(name_of(line), KNOWN[i].name) != 0)
                test_fail(__FILE__, __LINE__, "%s takes what is %s's: %s", name_of(line),
                          KNOWN[i].name, line);
        }
    }
}

TEST(ordinary_output_is_no_known_failure)
{
    static const char *const INNOCENT[] = {
        "",
        "N",
        "rank 0 of 8: sum = 28",
        "NCCL version 2.28.9+cuda13.0",
        AT "NCCL INFO Bootstrap: Using eth0:10.0.0.5<0>",
        AT "NCCL INFO NET/Plugin : Plugin load returned 17 : libnccl-net.so: cannot open shared "
           "object file: No such file or directory : when loading libnccl-net.so",
        AT "NCCL INFO NET/Plugin: Failed to find ncclNetPlugin_v10 symbol.",
        AT
        "NCCL INFO TUNER/Plugin: dlerror=libnccl-tuner.so: cannot open shared object file: No such "
        "file or directory",
        AT "NCCL INFO NET/IB : No device found.",
        AT "NCCL INFO socketPollConnect: connect to 127.0.0.1<4001> returned Connection refused, "
           "retrying (1/34) after sleep for 100 msec",
        AT "NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct",
        AT "NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM",
        AT "NCCL INFO P2P is disabled between connected GPUs 0 and 1. You can repress this message "
           "with NCCL_IGNORE_DISABLED_P2P=1.",
        AT "NCCL INFO NVLS multicast support is available on dev 0 (NVLS_NCHANNELS 16)",
        AT "NCCL INFO comm 0x55 rank 0 nranks 8 cudaDev 0 busId 18000 - Init COMPLETE",
        AT "NCCL INFO comm 0x55 rank 0 nranks 8 - Destroy COMPLETE",
        AT "NCCL INFO RAS client listening socket at 127.0.0.1<28028>",
        "launch-bench: the job of 8 ranks has begun, environment variable names follow",
        AT "NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>",
        AT "NCCL INFO Using network IB",
        "# Out of bounds values : 0 OK",
        "# Avg bus bandwidth    : 23.1234",
        "# Reducing maxBytes to 268435456 due to memory limitation",
        "Epoch 3: 45%|####      | 451/1000 [00:12<00:15, 36.1it/s, loss=2.31, mem=12.1G]",
        "step 1200 | loss 1.873 | lr 3.0e-04 | grad norm 0.91 | tokens/s 182,331 | memory 61.2 GiB",
        "WARNING:torch.distributed.run: Setting OMP_NUM_THREADS environment variable for each "
        "process "
        "to be 1 in default",
        "[W socket.cpp:601] [c10d] The client socket cannot be initialized to connect to "
        "[localhost]:29500 (errno: 97 - Address family not supported).",
        "[I socket.cpp:566] [c10d] The server socket has started to listen on [::]:29500.",
        "[I socket.cpp:787] [c10d] The client socket has connected to [localhost]:29500 on "
        "[localhost]:51234.",
        "INFO: ncclCommInitRank took 1.2 s",
        "torch.cuda.is_available() = True, 8 GPUs",
        "Saving checkpoint to /mnt/nfs/run7/step_1200.pt",
        "Loading checkpoint shards: 100%|##########| 4/4 [00:08<00:00, 2.05s/it]",
        "UserWarning: The given NumPy array is not writable",
        "FutureWarning: `torch.cuda.amp.autocast(args...)` is deprecated.",
        "Traceback (most recent call last):",
        "  File \"train.py\", line 180, in <module>",
        "allocated shared memory: 9637892 bytes in /dev/shm/nccl-JNHtwg",
        "Connected all rings; peak GPU memory allocated 61.2 GiB, reserved 64.0 GiB",
        "retrying in 5 s: Connection timed out",
        "wandb: Network error (ConnectionError), entering retry loop.",
        "Killed",
        "launch:   its last lines on stderr:",
        "sh: 1: foo: not found",
    };
    for (size_t i = 0; i < ARRAY_LEN(INNOCENT); i++)
        if (strcmp(name_of(INNOCENT[i]), "(none)") != 0)
            test_fail(__FILE__, __LINE__, "%s: %s", name_of(INNOCENT[i]), INNOCENT[i]);
}

TEST(any_bytes_can_be_looked_through)
{
    char line[512];
    srand(7);
    for (unsigned round = 0; round < 2000; round++) {
        size_t n = (size_t)rand() % sizeof line;
        for (size_t i = 0; i < n; i++)
            line[i] = (char)rand();
        /* The beginning of a sign at the very end. */
        const char *sign = KNOWN[round % KNOWN_N].signs[0];
        size_t part = strlen(sign) / 2;
        if (n >= part)
            memcpy(line + n - part, sign, part);
        char *copy = malloc(n ? n : 1); /* so that a sanitizer sees one byte too far */
        memcpy(copy, line, n);
        known_of_line(copy, n);
        known_of_text(copy, n);
        free(copy);
    }
    CHECK(!known_of_line("", 0));
    CHECK(!known_of_text("", 0).known);
}

static struct known_reason reason(const char *text)
{
    return known_of_text(text, strlen(text));
}

TEST(the_warning_before_a_vague_error_tells_more)
{
    struct known_reason r = reason(
        AT
        "misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-J to 99 bytes\n"
        "RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)\n"
        "OSError: [Errno 24] Too many open files\n");
    CHECK(r.known);
    CHECK_STR(r.known->name, "shm-full");
    CHECK(!r.warning);
}

TEST(a_vague_error_brings_the_last_warning_along)
{
    struct known_reason r =
        reason(AT "NCCL WARN the first thing\n\n" AT
                  "x.cc:1 NCCL WARN nobody knows this one\nncclInternalError: x\n"
                  "NCCL WARN what came of it\nncclSystemError\n");
    CHECK(r.known);
    CHECK_STR(r.known->name, "nccl-error");
    CHECK_INT(r.warning_n, ==, strlen("nobody knows this one"));
    CHECK(memcmp(r.warning, "nobody knows this one", r.warning_n) == 0);
}

TEST(of_several_reasons_the_last_one_ended_the_program)
{
    CHECK_STR(reason("x: Too many open files\nRuntimeError: CUDA out of memory.\n").known->name,
              "gpu-memory");
    CHECK_STR(
        reason("Watchdog caught collective operation timeout\nCUDA out of memory").known->name,
        "gpu-memory");
    CHECK(!reason("all is well\n").known);
}
