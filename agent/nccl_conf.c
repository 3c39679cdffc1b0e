/* SPDX-License-Identifier: MIT */
#include "nccl_conf.h"

#include "clean.h"
#include "sysfile.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>

#define FILE_BYTES 32768

/* "NAME=value" up to its end. */
static void take(struct nccl_conf *conf, const char *text, const char *where)
{
    const char *equals = strchr(text, '=');
    struct nccl_setting setting;
    if (!equals || (strncmp(text, "NCCL_", 5) != 0 && strncmp(text, "RCCL_", 5) != 0) ||
        (size_t)(equals - text) >= sizeof setting.name || conf->n == NCCL_CONF_MAX)
        return;
    snprintf(setting.name, sizeof setting.name, "%.*s", (int)(equals - text), text);
    clean(setting.name, sizeof setting.name, setting.name);
    clean(setting.value, sizeof setting.value, equals + 1);
    snprintf(setting.where, sizeof setting.where, "%s", where);
    if (!nccl_conf_find(conf, setting.name))
        conf->setting[conf->n++] = setting;
}

static void take_file(struct nccl_conf *conf, const char *sysroot, const char *path)
{
    char text[FILE_BYTES], where[sizeof conf->setting[0].where], *rest;
    ssize_t n = sysfile_read(text, sizeof text, sysroot, "%s", path);
    unsigned line = 0;
    for (char *at = text; n > 0 && at; at = rest) {
        rest = strchr(at, '\n');
        if (rest)
            *rest++ = '\0';
        at[strcspn(at, "\r")] = '\0';
        snprintf(where, sizeof where, "%s:%u", path, ++line);
        take(conf, at, where);
    }
}

void nccl_conf_read(struct nccl_conf *ret, const char *sysroot, char *const *env)
{
    char path[PATH_MAX];
    ret->n = 0;
    for (; env && *env; env++)
        take(ret, *env, "the environment");
    const struct nccl_setting *given = nccl_conf_find(ret, "NCCL_CONF_FILE");
    const struct passwd *user = getpwuid(getuid());
    if (given)
        snprintf(path, sizeof path, "%s", given->value);
    else
        snprintf(path, sizeof path, "%s/.nccl.conf", user ? user->pw_dir : "");
    take_file(ret, sysroot, path);
    take_file(ret, sysroot, "/etc/nccl.conf");
}

const struct nccl_setting *nccl_conf_find(const struct nccl_conf *conf, const char *name)
{
    for (unsigned i = 0; i < conf->n; i++)
        if (strcmp(conf->setting[i].name, name) == 0)
            return &conf->setting[i];
    return NULL;
}
