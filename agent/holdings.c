/* SPDX-License-Identifier: MIT */
#include "holdings.h"

#include "account.h"
#include "json.h"
#include "quarantine.h"
#include "tree.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define TIME_BYTES 40
static const char *time_text(int64_t at, char text[TIME_BYTES])
{
    struct tm tm;
    time_t seconds = (time_t)at;
    if (!localtime_r(&seconds, &tm) || !strftime(text, TIME_BYTES, "%F %T", &tm))
        snprintf(text, TIME_BYTES, "?");
    return text;
}

const char *holdings_who(const struct holder *who, char text[HOLDINGS_WHO_BYTES])
{
    char name[ACCOUNT_NAME_BYTES], since[TIME_BYTES];
    snprintf(text, HOLDINGS_WHO_BYTES, "run %s (%s, user %s, pid %d, since %s)", who->run,
             who->program, account_name(who->uid, name), (int)who->pid,
             time_text(who->started, since));
    return text;
}

/* Of a process, -1: it is gone, or not to be seen from here. */
static int64_t uid_of(pid_t pid)
{
    char path[32];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    return stat(path, &st) == 0 ? (int64_t)st.st_uid : -1;
}

const char *holdings_user(const struct gpu_user *user, char text[HOLDINGS_WHO_BYTES])
{
    char comm[16], name[ACCOUNT_NAME_BYTES] = "?";
    int64_t uid = uid_of(user->pid);
    tree_name(user->pid, comm);
    if (uid >= 0)
        account_name((uid_t)uid, name);
    snprintf(text, HOLDINGS_WHO_BYTES, "%s (pid %d, user %s, %" PRIu64 " MiB)", comm,
             (int)user->pid, name, user->bytes >> 20);
    return text;
}

static const char *state_word(int state)
{
    return state == HOLDER_EXCLUSIVE ? "leased" : state == HOLDER_SHARED ? "shared" : "free";
}

/* "0", or the name of a MIG instance. */
static void unit_name(const struct units *u, unsigned unit, const struct gpu_list *gpus, char *ret,
                      size_t bytes)
{
    if (unit < gpus->n)
        snprintf(ret, bytes, "%u", unit);
    else
        snprintf(ret, bytes, "%s", u->name[unit] + strlen("launch-"));
}

static const char *describe_bad(const struct quarantine *q, char text[HOLDINGS_WHO_BYTES])
{
    char since[TIME_BYTES];
    snprintf(text, HOLDINGS_WHO_BYTES, "in quarantine since %s: %s (run %s)",
             time_text(q->since, since), q->reason, q->run);
    return text;
}

static void print_unit(FILE *out, const struct units *u, unsigned unit, const struct gpu_list *gpus,
                       const struct gpu_users *users, const char *before)
{
    char name[UNITS_NAME_BYTES], text[HOLDINGS_WHO_BYTES];
    struct holder who;
    struct quarantine bad;
    int state = holder_state(u->fd[unit]);
    const char *word = state_word(state);
    unsigned lines = 0, page = 0;
    unit_name(u, unit, gpus, name, sizeof name);
    while (holder_next(u->fd[unit], &page, &who))
        fprintf(out, "%s%-4s %-7s %s\n", before, lines++ ? "" : name, word,
                holdings_who(&who, text));
    if (state != HOLDER_FREE && lines == 0)
        fprintf(out, "%s%-4s %-7s ?\n", before, lines++ ? "" : name, word);
    for (unsigned i = 0; users && i < users->n; i++)
        if (users->user[i].gpu == unit)
            fprintf(out, "%s%-4s %-7s %s\n", before, lines++ ? "" : name, "used by",
                    holdings_user(&users->user[i], text));
    if (quarantine_of(u, unit, &bad))
        fprintf(out, "%s%-4s %-7s %s\n", before, lines++ ? "" : name, "faulty",
                describe_bad(&bad, text));
    if (lines == 0)
        fprintf(out, "%s%-4s %s\n", before, name, word);
}

void holdings_print(FILE *out, const struct units *u, const struct gpu_list *gpus,
                    const struct gpu_users *users, const char *before)
{
    struct holder who;
    char text[HOLDINGS_WHO_BYTES];
    unsigned page = 0;
    fprintf(out, "%sGPU  state   held by\n", before);
    for (unsigned i = 0; i < u->n; i++)
        print_unit(out, u, i, gpus, users, before);
    while (holder_next(u->queue, &page, &who))
        fprintf(out, "%swaiting for %u: %s\n", before, who.wants, holdings_who(&who, text));
}

/* ---- JSON ---- */

static void put_holders(FILE *out, int fd, bool waiting)
{
    struct holder who;
    char name[ACCOUNT_NAME_BYTES];
    unsigned page = 0;
    bool first = true;
    fputc('[', out);
    while (holder_next(fd, &page, &who)) {
        fprintf(out, "%s{\"pid\": %d", first ? "" : ", ", (int)who.pid);
        json_put_member(out, "run", who.run);
        json_put_member(out, "program", who.program);
        json_put_member(out, "user", account_name(who.uid, name));
        if (waiting)
            fprintf(out, ", \"wants\": %u", who.wants);
        fprintf(out, ", \"started\": %" PRId64 "}", who.started);
        first = false;
    }
    fputc(']', out);
}

static void put_processes(FILE *out, const struct gpu_users *users, unsigned gpu)
{
    bool first = true;
    fprintf(out, ", \"processes\": ");
    if (!users) {
        fputs("null", out); /* nobody could tell */
        return;
    }
    fputc('[', out);
    for (unsigned i = 0; i < users->n; i++) {
        char comm[16];
        if (users->user[i].gpu != gpu)
            continue;
        tree_name(users->user[i].pid, comm);
        fprintf(out, "%s{\"pid\": %d, \"uid\": %" PRId64 ", \"bytes\": %" PRIu64, first ? "" : ", ",
                (int)users->user[i].pid, uid_of(users->user[i].pid), users->user[i].bytes);
        json_put_member(out, "name", comm);
        fputc('}', out);
        first = false;
    }
    fputc(']', out);
}

static void put_quarantine(FILE *out, const struct quarantine *q)
{
    fputs(", \"quarantine\": ", out);
    if (!q) {
        fputs("null", out);
        return;
    }
    fprintf(out, "{\"since\": %" PRId64, q->since);
    json_put_member(out, "reason", q->reason);
    json_put_member(out, "run", q->run);
    fputc('}', out);
}

void holdings_print_json(FILE *out, const struct units *u, const struct gpu_list *gpus,
                         const struct gpu_users *users)
{
    fputs("{\"gpus\": [", out);
    for (unsigned i = 0; i < u->n; i++) {
        struct quarantine q;
        bool bad = quarantine_of(u, i, &q);
        int state = holder_state(u->fd[i]);
        fprintf(out, "%s\n  {\"index\": %u", i ? "," : "", i);
        json_put_member(out, "pci", gpus->gpu[i].pci);
        json_put_member(out, "uuid", gpus->gpu[i].uuid);
        json_put_member(out, "state",
                        bad && state == HOLDER_FREE ? "quarantined" : state_word(state));
        put_quarantine(out, bad ? &q : NULL);
        fputs(", \"holders\": ", out);
        put_holders(out, u->fd[i], false);
        put_processes(out, users, i);
        fputc('}', out);
    }
    fputs("\n], \"waiting\": ", out);
    put_holders(out, u->queue, true);
    fputs("}\n", out);
}
