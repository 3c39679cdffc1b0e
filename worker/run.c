/* SPDX-License-Identifier: MIT */
/* Shared by main.c and runner.c; these three are the only files of worker/ that print. Owns
 * nothing, and must never look into a struct launch. */
#include "run.h"

#include "device.h"
#include "launch.h"

#include <stdio.h>

static int exit_code(struct launch *l, int result)
{
    if (result > 0 && result <= 255)
        launch_device_set_stage(l, STAGE_FAILED); /* so that nothing waits for the peers now */
    if (result >= 0 && result <= 255)
        return result;
    if (result == LAUNCH_STOP)
        return EXIT_SUCCESS; /* as it was asked to */
    if (result > 255)        /* exit() would keep the low 8 bits, and 256 would look like success */
        launch_fail(l, LAUNCH_INVALID, "launch_main returned %d, not 0..255", result);
    else if (!launch_error(l)[0])
        launch_fail(l, LAUNCH_FAILED, "launch_main returned %d", result);
    fprintf(stderr, "rank %d: %s\n", launch_rank(l), launch_error(l));
    launch_device_set_stage(l, STAGE_FAILED);
    return EXIT_FAILURE;
}

int launch_run_main(int (*entry)(struct launch *l, int argc, char **argv), int argc, char **argv)
{
    struct launch *l;
    if (launch_join(&l, 0) != LAUNCH_OK) {
        fprintf(stderr, "%s\n", launch_error(NULL));
        return EXIT_FAILURE;
    }
    int result;
    do
        result = entry(l, argc, argv);
    while (result == LAUNCH_AGAIN && launch_check(l) != LAUNCH_OK); /* STOP: so that it can save */
    int code = exit_code(l, result);
    launch_leave(l);
    return code;
}
