/* SPDX-License-Identifier: MIT */
#include "../../agent/hints.h"
#include "../../proto/base.h"
#include "../harness.h"

#include <signal.h>

static const char *hint_for(const char *text, int exit_code, int sig)
{
    struct hint_facts facts = {
        .reason = sig ? REASON_SIGNAL : REASON_EXIT, .exit_code = exit_code, .signal = sig};
    /* Each place where a text can stand. */
    const char *first = NULL;
    for (unsigned i = 0; i < HINTS_TEXTS; i++) {
        memset(facts.texts, 0, sizeof facts.texts);
        facts.texts[i] = (struct hint_text){text, strlen(text)};
        const char *hint = hints_find(&facts);
        CHECK(i == 0 || hint == first);
        first = hint;
    }
    return first;
}

/* Lines as the programs write them. */
TEST(every_signature_has_its_hint)
{
    static const struct {
        const char *text;
        int code;
        const char *want;
    } CASES[] = {
        {"./a: error while loading shared libraries: libfoo.so.1: cannot open shared object file",
         127, "ldd"},
        {"./a: /lib/libc.so.6: version `GLIBC_2.38' not found", 1, "newer C library"},
        {"NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 18000", 1,
         "--share-gpus"},
        {"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", 1,
         "GPU memory ran out"},
        {"cudaErrorMemoryAllocation: out of memory", 1, "GPU memory ran out"},
        {"RuntimeError: CUDA error: invalid device ordinal", 1, "--nproc-per-node=gpu"},
        {"no CUDA-capable device is detected", 1, "CUDA_VISIBLE_DEVICES"},
        {"CUDA driver version is insufficient for CUDA runtime version", 1, "update the driver"},
        {"no kernel image is available for execution on the device", 1, "nvcc -arch"},
        {"CUDA error: uncorrectable ECC error encountered", 1, "reset the GPU"},
        {"bind: Address already in use", 1, "--master-port"},
        {"ModuleNotFoundError: No module named 'torch'", 1, "Python module"},
        {"python3: can't open file '/x/t.py': [Errno 2] No such file or directory", 2,
         "directory where launch"},
        {"OSError: [Errno 24] Too many open files", 1, "ulimit -n"},
        {"write: No space left on device", 1, "disk is full"},
        {"RuntimeError: unable to open shared memory object </torch_1>", 1, "--shm-size"},
        {"Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1)", 134, "--hang-timeout"},
        {"can't start new thread: Resource temporarily unavailable", 1, "ulimit -u"},
        {"terminate called after throwing an instance of 'std::bad_alloc'", 134, "memory.max"},
        {"MemoryError", 1, "memory.max"},
        {"sh: 1: foo: not found", 127, "not there"},
        {"sh: 1: ./foo: Permission denied", 126, "can't be executed"},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++)
        CHECK_HAS(hint_for(CASES[i].text, CASES[i].code, 0), CASES[i].want);
}

TEST(signals_have_hints_and_claim_nothing_that_is_not_proven)
{
    static const struct {
        int sig;
        const char *want;
    } CASES[] = {{SIGBUS, "/dev/shm"}, {SIGSEGV, "ulimit -c"}, {SIGILL, "another CPU"},
                 {SIGKILL, "dmesg"},   {SIGXCPU, "ulimit -t"}, {SIGXFSZ, "ulimit -f"},
                 {SIGSYS, "seccomp"}};
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++)
        CHECK_HAS(hint_for("", 128 + CASES[i].sig, CASES[i].sig), CASES[i].want);
    CHECK(!strcasestr(hint_for("", 137, SIGKILL), "oom"));
}

TEST(what_is_not_known_has_no_hint)
{
    for (int code = 1; code < 126; code++)
        CHECK(hint_for("something else", code, 0) == NULL);
    CHECK(hint_for("", 143, SIGTERM) == NULL);
    struct hint_facts none = {.reason = REASON_EXIT, .exit_code = 1};
    CHECK(hints_find(&none) == NULL);
    struct hint_facts spawn = {.reason = REASON_SPAWN, .exit_code = 127};
    CHECK(hints_find(&spawn) == NULL);
}

TEST(proof_that_memory_ran_out_goes_first)
{
    struct hint_facts facts = {
        .reason = REASON_SIGNAL, .signal = SIGKILL, .exit_code = 137, .oom = true};
    CHECK_HAS(hints_find(&facts), "memory ran out");
    struct hint_facts missing = {.reason = REASON_RENDEZVOUS};
    CHECK_HAS(hints_find(&missing), "launch_join()");
}
