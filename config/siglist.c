/* SPDX-License-Identifier: MIT */
#include "siglist.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Second names, which the C library does not give back. */
static const struct {
    const char *name;
    int sig;
} ALIASES[] = {{"CLD", SIGCHLD}, {"IO", SIGIO}, {"IOT", SIGIOT}, {"POLL", SIGPOLL}};

static bool is(const char *name, size_t n, const char *known)
{
    return strlen(known) == n && memcmp(name, known, n) == 0;
}

static int real_time(const char *name, size_t n)
{
    if (is(name, n, "RTMIN"))
        return SIGRTMIN;
    if (is(name, n, "RTMAX"))
        return SIGRTMAX;
    for (int sig = SIGRTMIN; sig <= SIGRTMAX; sig++) {
        char known[16];
        snprintf(known, sizeof known, "RTMIN+%d", sig - SIGRTMIN);
        if (is(name, n, known))
            return sig;
        snprintf(known, sizeof known, "RTMAX-%d", SIGRTMAX - sig);
        if (is(name, n, known))
            return sig;
    }
    return 0;
}

int siglist_number(const char *name, size_t n)
{
    if (n > 3 && memcmp(name, "SIG", 3) == 0) {
        name += 3;
        n -= 3;
    }
    for (int sig = 1; sig < 32; sig++) {
        const char *known = sigabbrev_np(sig);
        if (known && is(name, n, known))
            return sig;
    }
    for (size_t i = 0; i < ARRAY_LEN(ALIASES); i++)
        if (is(name, n, ALIASES[i].name))
            return ALIASES[i].sig;
    return real_time(name, n);
}

static bool can_be_had(int sig)
{
    switch (sig) {
    case SIGKILL:
    case SIGSTOP:
    case SIGCHLD:
    case SIGPIPE:
    case SIGTSTP:
    case SIGCONT:
        return false;
    default:
        return sig > 0;
    }
}

int siglist_parse(struct siglist *ret, const char *text)
{
    struct siglist list = {0};
    bool more = strcmp(text, "none") != 0;
    while (more) {
        text += strspn(text, " ");
        size_t word = strcspn(text, ","), n = word;
        while (n > 0 && text[n - 1] == ' ')
            n--;
        int sig = siglist_number(text, n);
        if (!can_be_had(sig))
            return -EINVAL;
        if (!siglist_has(&list, sig))
            list.sig[list.n++] = (uint8_t)sig;
        more = text[word] == ',';
        text += word + more;
    }
    *ret = list;
    return 0;
}

bool siglist_has(const struct siglist *list, int sig)
{
    for (unsigned i = 0; i < list->n; i++)
        if (list->sig[i] == sig)
            return true;
    return false;
}

uint64_t siglist_bits(const struct siglist *list)
{
    uint64_t bits = 0;
    for (unsigned i = 0; i < list->n; i++)
        bits |= 1ull << (list->sig[i] - 1);
    return bits;
}

void siglist_drop(struct siglist *list, int sig)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < list->n; i++)
        if (list->sig[i] != sig)
            list->sig[kept++] = list->sig[i];
    list->n = (uint8_t)kept;
}

const char *siglist_text(const struct siglist *list, char text[SIGLIST_TEXT_BYTES])
{
    size_t used = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < list->n; i++) {
        const char *name = sigabbrev_np(list->sig[i]);
        const char *comma = i ? "," : "";
        size_t room = SIGLIST_TEXT_BYTES - used;
        int n = name ? snprintf(text + used, room, "%sSIG%s", comma, name)
                     : snprintf(text + used, room, "%sSIGRTMIN+%d", comma, list->sig[i] - SIGRTMIN);
        used += (size_t)n;
    }
    return text;
}
