/* SPDX-License-Identifier: MIT */
/* launch-run JOB.so [ARGUMENT...]: runs the launch_main() of a shared object. Not for people:
 * `launch ./job.so` starts it. Link it dynamically with liblaunch (or export its symbols), for
 * the job must see the same one. */
#include "launch.h"
#include "run.h"

#include "../proto/status.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* A job is a path, never a name to be searched for. Returns the handle or NULL; dlerror() has
 * the reason. */
static void *load(const char *job)
{
    char path[4096];
    const char *c = job;
    while (*c && *c != '/')
        c++;
    if (snprintf(path, sizeof path, "%s%s", *c ? "" : "./", job) >= (int)sizeof path)
        return dlopen(job, RTLD_NOW | RTLD_GLOBAL);
    return dlopen(path, RTLD_NOW | RTLD_GLOBAL);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: launch-run JOB.so [ARGUMENT...]\n");
        return EXIT_CODE_USAGE;
    }
    void *job = load(argv[1]);
    if (!job) {
        fprintf(stderr, "launch-run: %s\n", dlerror());
        return EXIT_CODE_NOT_FOUND;
    }
    int (*entry)(struct launch *, int, char **);
    *(void **)&entry = dlsym(job, "launch_main");
    if (!entry) {
        fprintf(stderr, "launch-run: %s has no launch_main()\n", argv[1]);
        return EXIT_CODE_NOT_EXECUTABLE;
    }
    /* The job is never unloaded: its threads and exit handlers may outlive us. */
    return launch_run_main(entry, argc - 1, argv + 1);
}
