/* SPDX-License-Identifier: MIT */
/* NCCL's settings and where each comes from: environment, NCCL_CONF_FILE or else ~/.nccl.conf, /etc/nccl.conf (RCCL:
 * rccl.conf); the first that names a setting counts. Knows no setting's meaning. */
#ifndef LAUNCH_AGENT_NCCL_CONF_H
#define LAUNCH_AGENT_NCCL_CONF_H

#include <limits.h>
#include <stdbool.h>

#define NCCL_CONF_MAX 128

struct nccl_setting {
    char name[64], value[128]; /* fit for a terminal; blanks and all, as NCCL takes them */
    char where[160];           /* "environment", "/etc/nccl.conf:3" */
    bool from_file;
    bool beaten; /* another one of this name goes before it: it has no effect */
};

struct nccl_conf {
    struct nccl_conf_file {
        char path[PATH_MAX]; /* "": there is no home */
        int trouble; /* -ENOENT and the like: there is none; another -errno: it can't be read */
    } user, system;
    unsigned n; /* those beyond NCCL_CONF_MAX are left out */
    struct nccl_setting setting[NCCL_CONF_MAX];
};

/* Of env ("NAME=value", NULL-terminated) NCCL_*, RCCL_* and TORCH_NCCL_*; all of the files below sysroot. home: where
 * the user's file is; NULL: as NCCL has it, by the user database. */
void nccl_conf_read(struct nccl_conf *ret, const char *sysroot, char *const *env, const char *home,
                    bool rccl);

/* The one that counts; NULL: not set. */
const struct nccl_setting *nccl_conf_find(const struct nccl_conf *conf, const char *name);

#endif
