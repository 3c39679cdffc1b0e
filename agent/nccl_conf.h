/* SPDX-License-Identifier: MIT */
/* NCCL's settings and where each comes from: environment, NCCL_CONF_FILE or else ~/.nccl.conf, /etc/nccl.conf; the first
 * that names a setting counts. Knows no setting's meaning. */
#ifndef LAUNCH_AGENT_NCCL_CONF_H
#define LAUNCH_AGENT_NCCL_CONF_H

#include <limits.h>

#define NCCL_CONF_MAX 64

struct nccl_setting {
    char name[64], value[128]; /* fit for a terminal */
    char where[PATH_MAX + 16]; /* "the environment", "/etc/nccl.conf:3" */
};

struct nccl_conf {
    unsigned n; /* those beyond NCCL_CONF_MAX are left out */
    struct nccl_setting setting[NCCL_CONF_MAX];
};

/* NCCL_* and RCCL_* of env ("NAME=value", NULL-terminated) and of the files below sysroot. A file that can't be read is none. */
void nccl_conf_read(struct nccl_conf *ret, const char *sysroot, char *const *env);

/* NULL: not set. */
const struct nccl_setting *nccl_conf_find(const struct nccl_conf *conf, const char *name);

#endif
