/* SPDX-License-Identifier: MIT */
/* main() for jobs that only define launch_main(). An object of its own: a program with a main()
 * of its own leaves it in the archive. */
#include "launch.h"
#include "run.h"

#include <stdio.h>
#include <stdlib.h>

/* Weak: the shared liblaunch holds this file too, and is also linked by programs without
 * launch_main(). */
#pragma weak launch_main

LAUNCH_API int main(int argc, char **argv);

int main(int argc, char **argv)
{
    if (!launch_main) {
        fprintf(stderr, "%s: neither main() nor launch_main() is defined\n",
                argc ? argv[0] : "job");
        return EXIT_FAILURE;
    }
    return launch_run_main(launch_main, argc, argv);
}
