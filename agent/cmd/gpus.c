/* SPDX-License-Identifier: MIT */
#include "gpus.h"

#include "../../proto/env.h"
#include "../../proto/status.h"
#include "../holdings.h"
#include "../log.h"
#include "words.h"

#include <stdio.h>

static int show(const struct words *words, struct units *u, struct err *err)
{
    const char *sysroot = getenv(ENV_SYSROOT), *dir = getenv("LAUNCH_LEASE_DIR");
    struct gpu_list gpus;
    struct gpu_users users;
    if (!sysroot)
        sysroot = "";
    if (words->lease_dir)
        dir = words->lease_dir;
    int rc = gpu_list_read(&gpus, sysroot, err);
    if (rc == 0)
        rc = units_open(u, dir && *dir ? dir : NULL, sysroot, &gpus, NULL, err);
    if (rc == 0)
        rc = units_open_all(u, err);
    if (rc < 0)
        return rc;
    bool told = gpu_users_read(&users, sysroot, &gpus) == 0;
    if (words->given & WORD_JSON)
        holdings_print_json(stdout, u, &gpus, told ? &users : NULL);
    else if (gpus.n == 0)
        printf("no GPU that this process may use\n");
    else
        holdings_print(stdout, u, &gpus, told ? &users : NULL, "");
    return 0;
}

int cmd_gpus(int argc, char **argv)
{
    struct words words;
    struct units units = {0};
    struct err err;
    int exit_code = words_parse(&words, argc, argv, WORD_JSON | WORD_LEASE_DIR);
    if (exit_code >= 0)
        return exit_code;
    exit_code = EXIT_CODE_OK;
    if (show(&words, &units, &err) < 0) {
        log_error("gpus: %s", err.text);
        exit_code = EXIT_CODE_USAGE;
    }
    units_close(&units);
    return exit_code;
}
