/* SPDX-License-Identifier: MIT */
/* A rank whose kernel writes to an address that is not mapped, for tests/gpu/fault.sh: in the first attempt rank 1 does, after a
 * while, and aborts on the error; later all end well. The driver's API only, from the library that is there. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char PTX[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .entry f() {\n.reg .b64 %p;\n.reg .b32 %v;\n"
                          "mov.u64 %p, 0;\nmov.u32 %v, 1;\nst.global.u32 [%p], %v;\nret;\n}\n";

static void *find(void *library, const char *name)
{
    void *call = dlsym(library, name);
    if (!call) {
        fprintf(stderr, "no %s\n", name);
        exit(2);
    }
    return call;
}

static void must(int rc, const char *what)
{
    if (rc == 0)
        return;
    fprintf(stderr, "%s: CUDA error %d\n", what, rc);
    abort();
}

int main(int argc, char **argv)
{
    const char *rank = getenv("RANK"), *local = getenv("LOCAL_RANK"),
               *restarts = getenv("TORCHELASTIC_RESTART_COUNT");
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *context, *module, *kernel;
    int device;

    if (!cuda || !rank || !local || !restarts)
        return 2;
    must(((int (*)(unsigned))find(cuda, "cuInit"))(0), "cuInit");
    must(((int (*)(int *, int))find(cuda, "cuDeviceGet"))(&device, atoi(local)), "cuDeviceGet");
    must(((int (*)(void **, int))find(cuda, "cuDevicePrimaryCtxRetain"))(&context, device),
         "context");
    must(((int (*)(void *))find(cuda, "cuCtxSetCurrent"))(context), "cuCtxSetCurrent");
    usleep(argc > 1 ? (unsigned)atoi(argv[1]) * 1000u : 0);
    if (strcmp(restarts, "0") != 0)
        return 0;
    if (strcmp(rank, "1") != 0) {
        sleep(60);
        return 0;
    }
    must(((int (*)(void **, const void *))find(cuda, "cuModuleLoadData"))(&module, PTX), "module");
    must(((int (*)(void **, void *, const char *))find(cuda, "cuModuleGetFunction"))(&kernel,
                                                                                     module, "f"),
         "f");
    must(((int (*)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   void *, void **, void **))find(cuda, "cuLaunchKernel"))(kernel, 1, 1, 1, 1, 1, 1,
                                                                           0, NULL, NULL, NULL),
         "launch");
    must(((int (*)(void))find(cuda, "cuCtxSynchronize"))(), "the kernel");
    return 0;
}
