/* SPDX-License-Identifier: MIT */
#include "status.h"

#define NAME_CASE(n, name, text)                                                                   \
    case n:                                                                                        \
        return #name;
#define TEXT_CASE(n, name, text)                                                                   \
    case n:                                                                                        \
        return text;

const char *stage_name(unsigned stage)
{
    switch (stage) {
        STAGE_LIST(NAME_CASE)
    default:
        return "?";
    }
}

const char *stage_text(unsigned stage)
{
    switch (stage) {
        STAGE_LIST(TEXT_CASE)
    default:
        return "?";
    }
}

const char *reason_name(unsigned reason)
{
    switch (reason) {
        REASON_LIST(NAME_CASE)
    default:
        return "?";
    }
}

const char *reason_text(unsigned reason)
{
    switch (reason) {
        REASON_LIST(TEXT_CASE)
    default:
        return "?";
    }
}
