/* SPDX-License-Identifier: MIT */
#include "hints.h"

#include "../proto/base.h"

#include <signal.h>
#include <string.h>

/* All that a row names must hold; the first row that fits is taken, so the more telling ones stand first. */
struct hint {
    const char *sign;  /* stands in one of the texts; NULL: any */
    const char *sign2; /* and this too; NULL: none */
    int exit_code;     /* 0: any */
    int signal;        /* 0: any */
    const char *say;
};

static const struct hint HINTS[] = {
    {.sign = "error while loading shared libraries",
     .say = "a shared library is missing: look with ldd at the program, set LD_LIBRARY_PATH or "
            "install it"},
    {.sign = "version `GLIBC",
     .say = "the program was built for a newer C library than this machine has: build it here"},
    {.sign = "Duplicate GPU detected",
     .say = "two ranks use one GPU: each must take the GPU of its LOCAL_RANK; to share GPUs on "
            "purpose: --share-gpus"},
    {.sign = "CUDA out of memory",
     .say = "GPU memory ran out: a smaller batch, or nvidia-smi to see who else uses this GPU"},
    {.sign = "cudaErrorMemoryAllocation",
     .say = "GPU memory ran out: a smaller batch, or nvidia-smi to see who else uses this GPU"},
    {.sign = "invalid device ordinal",
     .say = "a rank asked for a GPU that is not there: fewer ranks (--nproc-per-node=gpu), or "
            "--share-gpus"},
    {.sign = "no CUDA-capable device",
     .say = "no GPU can be seen: check CUDA_VISIBLE_DEVICES and, in a container, how GPUs are "
            "passed in"},
    {.sign = "CUDA driver version is insufficient",
     .say =
         "the GPU driver is older than the CUDA runtime: update the driver or use an older CUDA"},
    {.sign = "no kernel image is available",
     .say = "the program was not compiled for this GPU: add its architecture (nvcc -arch)"},
    {.sign = "ECC error",
     .say = "the GPU's memory had an error that could not be corrected: look with nvidia-smi -q, "
            "reset the GPU"},
    {.sign = "Address already in use",
     .say = "a port is taken: leave --master-port out (a free one is found) and let the job use "
            "MASTER_PORT"},
    {.sign = "ModuleNotFoundError",
     .say = "a Python module is missing: is this the right environment? launch runs the first "
            "python of the PATH"},
    {.sign = "can't open file",
     .sign2 = "No such file",
     .say = "Python did not find the script: the path counts from the directory where launch was "
            "started"},
    {.sign = "Too many open files",
     .say = "the limit of open files is too low: ulimit -n, before launch is started"},
    {.sign = "No space left on device",
     .say = "a disk is full, or /dev/shm is: df -h; in a container a larger --shm-size may help"},
    {.sign = "unable to open shared memory object",
     .say = "/dev/shm is too small or not writable; in a container a larger --shm-size may help"},
    {.sign = "Watchdog caught collective operation timeout",
     .say = "a collective never finished: some rank did not take part; --hang-timeout names it and "
            "shows its stacks"},
    {.sign = "Resource temporarily unavailable",
     .sign2 = "thread",
     .say = "no more threads or processes may be made: ulimit -u, the cgroup's pids.max, or a "
            "smaller OMP_NUM_THREADS"},
    {.sign = "std::bad_alloc",
     .say = "memory ran out, or the limit is too low: ulimit -v, the cgroup's memory.max"},
    {.sign = "MemoryError",
     .say = "memory ran out, or the limit is too low: ulimit -v, the cgroup's memory.max"},
    {.exit_code = 127,
     .say = "exit code 127 usually means that a script called a program that is not there"},
    {.exit_code = 126,
     .say = "exit code 126 usually means that a script called a file that can't be executed"},
    {.signal = SIGBUS,
     .say = "SIGBUS often means a full /dev/shm (in a container: --shm-size) or a file cut short "
            "while it was mapped"},
    {.signal = SIGSEGV,
     .say = "for a backtrace: ulimit -c unlimited, or build with -g -fsanitize=address"},
    {.signal = SIGILL,
     .say = "the program may have been built for another CPU: build it without -march=native, or "
            "on this machine"},
    {.signal = SIGKILL,
     .say = "somebody or the kernel sent SIGKILL, it can't be said who: dmesg tells of memory that "
            "ran out"},
    {.signal = SIGXCPU, .say = "the limit of CPU time was reached: ulimit -t"},
    {.signal = SIGXFSZ, .say = "the limit of file size was reached: ulimit -f"},
    {.signal = SIGSYS,
     .say = "a system call was forbidden: look for a seccomp filter of the container"},
};

static bool says(const struct hint_facts *facts, const char *sign)
{
    for (unsigned i = 0; i < HINTS_TEXTS; i++) {
        const struct hint_text *t = &facts->texts[i];
        if (t->text && memmem(t->text, t->n, sign, strlen(sign)))
            return true;
    }
    return false;
}

static bool fits(const struct hint *hint, const struct hint_facts *facts)
{
    return (!hint->sign || says(facts, hint->sign)) && (!hint->sign2 || says(facts, hint->sign2)) &&
           (!hint->exit_code ||
            (facts->reason == REASON_EXIT && facts->exit_code == hint->exit_code)) &&
           (!hint->signal || facts->signal == hint->signal);
}

const char *hints_find(const struct hint_facts *facts)
{
    if (facts->oom)
        return "memory ran out: a smaller batch, fewer data loaders, or a higher limit (the "
               "cgroup's memory.max)";
    if (facts->reason == REASON_RENDEZVOUS)
        return "every rank must call launch_join(), and launch_leave() before it ends";
    for (size_t i = 0; i < ARRAY_LEN(HINTS); i++)
        if (fits(&HINTS[i], facts))
            return HINTS[i].say;
    return NULL;
}
