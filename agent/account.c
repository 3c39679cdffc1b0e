/* SPDX-License-Identifier: MIT */
#include "account.h"

#include "clean.h"

#include <pwd.h>
#include <stdio.h>

const char *account_name(uid_t uid, char name[ACCOUNT_NAME_BYTES])
{
    const struct passwd *entry = getpwuid(uid);
    if (entry)
        clean(name, ACCOUNT_NAME_BYTES, entry->pw_name);
    else
        snprintf(name, ACCOUNT_NAME_BYTES, "%u", (unsigned)uid);
    return name;
}
