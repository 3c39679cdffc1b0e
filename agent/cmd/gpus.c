/* SPDX-License-Identifier: MIT */
#include "gpus.h"

#include "../../config/fields.h"
#include "../../proto/env.h"
#include "../../proto/status.h"
#include "../holdings.h"
#include "../log.h"
#include "commands.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define LEASE_DIR "--lease-dir="

struct request {
    bool json, help;
    const char *dir;
};

static int parse(struct request *r, int argc, char **argv)
{
    const char *dir = getenv("LAUNCH_LEASE_DIR");
    *r = (struct request){.dir = dir && *dir ? dir : NULL};
    for (int i = 1; i < argc; i++) {
        char shown[FIELD_QUOTE_BYTES];
        if (strcmp(argv[i], "--json") == 0) {
            r->json = true;
        } else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            r->help = true;
        } else if (strncmp(argv[i], LEASE_DIR, strlen(LEASE_DIR)) == 0) {
            r->dir = argv[i] + strlen(LEASE_DIR);
        } else {
            log_error("gpus: '%s': the options are --json and " LEASE_DIR "DIR",
                      field_quote(argv[i], strlen(argv[i]), shown));
            return EXIT_CODE_USAGE;
        }
    }
    return EXIT_CODE_OK;
}

static int show(const struct request *r, struct units *u, struct err *err)
{
    const char *sysroot = getenv(ENV_SYSROOT);
    struct gpu_list gpus;
    struct gpu_users users;
    if (!sysroot)
        sysroot = "";
    int rc = gpu_list_read(&gpus, sysroot, err);
    if (rc == 0)
        rc = units_open(u, r->dir, sysroot, &gpus, NULL, err);
    if (rc == 0)
        rc = units_open_all(u, err);
    if (rc < 0)
        return rc;
    bool told = gpu_users_read(&users, sysroot, &gpus) == 0;
    if (r->json)
        holdings_print_json(stdout, u, &gpus, told ? &users : NULL);
    else if (gpus.n == 0)
        printf("no GPU that this process may use\n");
    else
        holdings_print(stdout, u, &gpus, told ? &users : NULL, "");
    return 0;
}

int cmd_gpus(int argc, char **argv)
{
    struct request request;
    struct units units = {0};
    struct err err;
    int exit_code = parse(&request, argc, argv);
    if (exit_code)
        return exit_code;
    if (request.help) {
        command_help(stdout, command_find(argv[0]));
        return EXIT_CODE_OK;
    }
    if (show(&request, &units, &err) < 0) {
        log_error("gpus: %s", err.text);
        exit_code = EXIT_CODE_USAGE;
    }
    units_close(&units);
    return exit_code;
}
