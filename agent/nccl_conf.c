/* SPDX-License-Identifier: MIT */
#include "nccl_conf.h"

#include "../proto/base.h"
#include "clean.h"
#include "sysfile.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>

#define FILE_BYTES 32768

static bool is_of_nccl(const char *text)
{
    static const char *const prefixes[] = {"NCCL_", "RCCL_", "TORCH_NCCL_"};
    for (size_t i = 0; i < ARRAY_LEN(prefixes); i++)
        if (strncmp(text, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

/* "NAME=value" up to its end. */
static void take(struct nccl_conf *conf, const char *text, const char *where, bool from_file)
{
    const char *equals = strchr(text, '=');
    if (!equals || (size_t)(equals - text) >= sizeof conf->setting[0].name ||
        conf->n == NCCL_CONF_MAX)
        return;
    struct nccl_setting *setting = &conf->setting[conf->n];
    snprintf(setting->name, sizeof setting->name, "%.*s", (int)(equals - text), text);
    clean(setting->name, sizeof setting->name, setting->name);
    clean(setting->value, sizeof setting->value, equals + 1);
    snprintf(setting->where, sizeof setting->where, "%s", where);
    setting->from_file = from_file;
    setting->beaten = nccl_conf_find(conf, setting->name) != NULL;
    conf->n++;
}

static void take_file(struct nccl_conf *conf, const char *sysroot, struct nccl_conf_file *file)
{
    char text[FILE_BYTES], where[sizeof conf->setting[0].where], *rest;
    ssize_t n = sysfile_read(text, sizeof text, sysroot, "%s", file->path);
    unsigned line = 0;
    file->trouble = n < 0 ? (int)n : 0;
    for (char *at = text; n > 0 && at; at = rest) {
        rest = strchr(at, '\n');
        if (rest)
            *rest++ = '\0';
        at[strcspn(at, "\r")] = '\0';
        snprintf(where, sizeof where, "%.140s:%u", file->path, ++line);
        if (at[0] != '#')
            take(conf, at, where, true);
    }
}

void nccl_conf_read(struct nccl_conf *ret, const char *sysroot, char *const *env, const char *home,
                    bool rccl)
{
    const char *library = rccl ? "rccl" : "nccl";
    const struct passwd *user = home ? NULL : getpwuid(getuid());
    *ret = (struct nccl_conf){0};
    for (; env && *env; env++)
        if (is_of_nccl(*env))
            take(ret, *env, "environment", false);
    const struct nccl_setting *given = nccl_conf_find(ret, "NCCL_CONF_FILE");
    if (given && given->value[0])
        snprintf(ret->user.path, sizeof ret->user.path, "%s", given->value);
    else if (home || user)
        snprintf(ret->user.path, sizeof ret->user.path, "%s/.%s.conf", home ? home : user->pw_dir,
                 library);
    if (ret->user.path[0])
        take_file(ret, sysroot, &ret->user);
    snprintf(ret->system.path, sizeof ret->system.path, "/etc/%s.conf", library);
    take_file(ret, sysroot, &ret->system);
}

const struct nccl_setting *nccl_conf_find(const struct nccl_conf *conf, const char *name)
{
    for (unsigned i = 0; i < conf->n; i++)
        if (!conf->setting[i].beaten && strcmp(conf->setting[i].name, name) == 0)
            return &conf->setting[i];
    return NULL;
}
