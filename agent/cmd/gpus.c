/* SPDX-License-Identifier: MIT */
#include "gpus.h"

#include "../../config/fields.h"
#include "../../proto/env.h"
#include "../../proto/status.h"
#include "../bitset.h"
#include "../holdings.h"
#include "../log.h"
#include "../quarantine.h"
#include "words.h"

#include <stdio.h>
#include <string.h>

/* list: NULL: all. */
static int choose(struct bitset *ret, const char *list, unsigned n, struct err *err)
{
    char shown[FIELD_QUOTE_BYTES];
    *ret = (struct bitset){0};
    for (unsigned i = 0; !list && i < n; i++)
        bitset_add(ret, (int)i);
    if (!list ||
        (bitset_parse(ret, list) && !bitset_empty(ret) && bitset_next(ret, (int)n - 1) < 0))
        return 0;
    field_quote(list, strlen(list), shown);
    if (n == 0)
        return err_set(err, -EINVAL, "--clear=%s: there is no GPU that this process may use",
                       shown);
    return err_set(
        err, -EINVAL,
        "--clear must name GPUs of this server, which has %u, as in 2 or 0-1,3, not '%s'", n,
        shown);
}

static int clear(const char *list, const struct units *u, unsigned n, struct err *err)
{
    struct bitset which;
    struct quarantine q;
    int rc = choose(&which, list, n, err), cleared = 0;
    for (int i = -1; rc == 0 && (i = bitset_next(&which, i)) >= 0;) {
        if (!quarantine_of(u, (unsigned)i, &q))
            continue;
        rc = quarantine_erase(u->fd[i]);
        if (rc < 0)
            return err_set_errno(err, rc, "lock file %s/%s", u->dir.path, u->name[i]);
        printf("GPU %d is out of quarantine: %s\n", i, q.reason);
        cleared++;
    }
    if (rc == 0 && !cleared)
        printf("no GPU%s was in quarantine\n", list ? " of these" : "");
    return rc;
}

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
    if (rc < 0 || words->given & WORD_CLEAR)
        return rc < 0 ? rc : clear(words->clear, u, gpus.n, err);
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
    int exit_code = words_parse(&words, argc, argv, WORD_JSON | WORD_LEASE_DIR | WORD_CLEAR);
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
