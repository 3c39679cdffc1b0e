/* SPDX-License-Identifier: MIT */
/* What CUDA_VISIBLE_DEVICES and its kin leave of the GPU list. The rules are CUDA's (tried with
 * driver 580: blanks around an entry, a comma at the end and hex digits of either case are fine;
 * a repeated entry is an error there too), with one difference: where CUDA would silently go on
 * with fewer GPUs because of a typing mistake, we refuse. Must never read the environment or the
 * machine. */
#include "gpu.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define DIGITS "0123456789"
#define HEX_AND_DASH "0123456789abcdefABCDEF-"
#define UUID_LENGTH 36

const char *gpu_visible_variable(enum gpu_vendor vendor)
{
    return vendor == GPU_AMD ? "HIP_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES";
}

const char *gpu_collectives(enum gpu_vendor vendor)
{
    return vendor == GPU_AMD ? "RCCL" : "NCCL";
}

enum form { FORM_JUNK, FORM_NOTHING, FORM_INDEX, FORM_UUID, FORM_MIG };

static bool is_number(const char *text)
{
    return *text && !text[strspn(text, DIGITS)];
}

/* A UUID or the start of one. */
static bool is_uuid_part(const char *text)
{
    size_t n = strlen(text);
    return n > 0 && n <= UUID_LENGTH && strspn(text, HEX_AND_DASH) == n;
}

/* <uuid>/<GPU instance>/<compute instance>, as drivers before R470 named MIG devices. */
static bool is_old_mig(const char *text)
{
    size_t uuid = strspn(text, HEX_AND_DASH);
    if (uuid != UUID_LENGTH || text[uuid] != '/')
        return false;
    const char *gi = text + uuid + 1;
    size_t gi_digits = strspn(gi, DIGITS);
    return gi_digits > 0 && gi[gi_digits] == '/' && is_number(gi + gi_digits + 1);
}

static enum form form_of(const char *entry)
{
    static const char *const no_gpu[] = {"none", "void", "nodevfiles"};
    if (is_number(entry))
        return FORM_INDEX;
    if (*entry == '-' && is_number(entry + 1))
        return FORM_NOTHING;
    for (size_t i = 0; i < ARRAY_LEN(no_gpu); i++)
        if (strcasecmp(entry, no_gpu[i]) == 0)
            return FORM_NOTHING;
    if (strncmp(entry, "MIG-GPU-", 8) == 0)
        return is_old_mig(entry + 8) ? FORM_MIG : FORM_JUNK;
    if (strncmp(entry, "MIG-", 4) == 0)
        return is_uuid_part(entry + 4) ? FORM_MIG : FORM_JUNK;
    if (strncmp(entry, "GPU-", 4) == 0)
        return is_uuid_part(entry + 4) ? FORM_UUID : FORM_JUNK;
    return FORM_JUNK;
}

/* Finds the entry's place in the list, -1: a device that the list does not know by that name.
 * False: it names no device, or more than one. */
static bool resolve(const struct gpu_list *list, enum form form, const char *entry, int *ret_index)
{
    *ret_index = -1;
    if (form == FORM_MIG)
        return list->n > 0; /* which instances there are is not told without NVML */
    if (form == FORM_INDEX) {
        const char *digits = entry + strspn(entry, "0");
        unsigned long index = strlen(digits) > 4 ? GPU_MAX : strtoul(entry, NULL, 10);
        *ret_index = index < list->n ? (int)index : -1;
        return index < list->n;
    }
    bool untold = false;
    unsigned matches = 0;
    for (unsigned i = 0; i < list->n; i++) {
        untold |= !list->gpu[i].uuid[0];
        if (strncasecmp(list->gpu[i].uuid, entry, strlen(entry)) == 0) {
            *ret_index = (int)i;
            matches++;
        }
    }
    return matches == 1 || (matches == 0 && untold);
}

static bool already_in(const struct gpu_set *set, const char *entry, int index)
{
    for (unsigned i = 0; i < set->n; i++)
        if ((index >= 0 && set->index[i] == index) || strcasecmp(set->entry[i], entry) == 0)
            return true;
    return false;
}

static int add(struct gpu_set *set, const char *entry, int index)
{
    if (set->n == GPU_MAX)
        return -E2BIG;
    snprintf(set->entry[set->n], sizeof set->entry[0], "%s", entry);
    set->index[set->n++] = index;
    return 0;
}

/* What a person may be shown of an environment variable. */
static const char *printable(char *shown, size_t bytes, const char *text, size_t n)
{
    size_t used = 0;
    for (; used < n && used + 1 < bytes; used++)
        shown[used] = isascii(text[used]) && isprint((unsigned char)text[used]) ? text[used] : '?';
    shown[used] = '\0';
    return shown;
}

/* Takes one entry of the list. 1: go on, 0: CUDA stops reading here, negative: error. */
static int choose_one(struct gpu_set *set, const struct gpu_list *list, const char *variable,
                      const char *text, size_t n, struct err *err)
{
    char entry[GPU_NAME_BYTES], shown[GPU_NAME_BYTES];
    int index;
    printable(shown, sizeof shown, text, n);
    if (n == 0)
        return err_set(err, -EINVAL, "%s: an entry is empty", variable);
    bool fits = n < sizeof entry && !memchr(text, '\0', n);
    snprintf(entry, sizeof entry, "%.*s", fits ? (int)n : 0, text);
    enum form form = form_of(entry);
    if (form == FORM_JUNK)
        return err_set(err, -EINVAL, "%s: \"%s\" is neither an index nor a GPU-... or MIG-... name",
                       variable, shown);
    if (form == FORM_NOTHING || !resolve(list, form, entry, &index)) {
        memcpy(set->stopped_at, entry, sizeof entry);
        return 0;
    }
    if (already_in(set, entry, index))
        return err_set(err, -EINVAL, "%s: \"%s\" names a GPU that is already in the list", variable,
                       shown);
    int rc = add(set, entry, index);
    return rc < 0 ? err_set(err, rc, "%s: more than %d entries", variable, GPU_MAX) : 1;
}

static int choose_listed(struct gpu_set *set, const struct gpu_list *list, const char *variable,
                         const char *visible, struct err *err)
{
    const char *text = visible;
    for (;;) {
        text += strspn(text, " \t");
        size_t n = strcspn(text, ","), trimmed = n;
        while (trimmed && (text[trimmed - 1] == ' ' || text[trimmed - 1] == '\t'))
            trimmed--;
        /* An empty value, or nothing behind the last comma, hides no GPU that somebody named. */
        if (trimmed == 0 && !text[n])
            return 0;
        int rc = choose_one(set, list, variable, text, trimmed, err);
        if (rc <= 0)
            return rc;
        if (!text[n])
            return 0;
        text += n + 1;
    }
}

int gpu_set_choose(struct gpu_set *set, const struct gpu_list *list, const char *variable,
                   const char *visible, struct err *err)
{
    struct gpu_set chosen = {.given = visible != NULL};
    int rc = 0;
    if (visible) {
        rc = choose_listed(&chosen, list, variable, visible, err);
    } else {
        for (unsigned i = 0; i < list->n && rc == 0; i++) {
            char index[16];
            snprintf(index, sizeof index, "%u", i);
            rc = add(&chosen, index, (int)i);
        }
    }
    if (rc < 0)
        return rc;
    *set = chosen;
    return 0;
}
