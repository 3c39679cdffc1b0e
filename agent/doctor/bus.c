/* SPDX-License-Identifier: MIT */
/* PCI Express between the GPUs: what redirects, translates or slows down. */
#include "checks.h"

#include "../sysfile.h"
#include "../topo.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define CONFIG_BYTES 4096
#define CONFIG_PLAIN 256 /* what there is without extended capabilities */
#define CONFIG_PUBLIC 64 /* what everybody may read */
#define CAPABILITY_ACS 0x000d
#define ACS_REDIRECTS 0x000c /* request and completion redirect */
#define STEPS_MAX 32

/* ---- ACS ---- */

enum acs { ACS_NONE = -1, ACS_HIDDEN = -2 };

/* The control word of the bridge, or of enum acs. The list of capabilities is the device's: input. */
static int acs_control(const struct doctor *d, const char *address)
{
    char text[CONFIG_BYTES + 1];
    const unsigned char *config = (const unsigned char *)text;
    ssize_t n =
        sysfile_read(text, sizeof text, d->sysroot, "/sys/bus/pci/devices/%s/config", address);
    if (n <= CONFIG_PUBLIC)
        return ACS_HIDDEN;
    for (size_t at = CONFIG_PLAIN, i = 0;
         i < STEPS_MAX && at >= CONFIG_PLAIN && at + 8 <= (size_t)n; i++) {
        unsigned header = config[at] | (unsigned)config[at + 1] << 8 |
                          (unsigned)config[at + 2] << 16 | (unsigned)config[at + 3] << 24;
        if ((header & 0xffff) == CAPABILITY_ACS)
            return config[at + 6] | config[at + 7] << 8;
        at = header >> 20 & 0xffc;
    }
    return ACS_NONE;
}

struct bridges {
    struct doctor_list redirect, hidden;
    unsigned n;
    char seen[GPU_MAX * 4][PCI_ADDRESS_BYTES]; /* bridges above several GPUs are told once */
};

static void look_at_bridge(const struct doctor *d, struct bridges *b, const char *address)
{
    for (unsigned i = 0; i < b->n; i++)
        if (strcmp(b->seen[i], address) == 0)
            return;
    if (b->n == ARRAY_LEN(b->seen))
        return;
    memcpy(b->seen[b->n++], address, PCI_ADDRESS_BYTES);
    int control = acs_control(d, address);
    if (control == ACS_HIDDEN)
        doctor_list_add(&b->hidden, "%s", address);
    else if (control > 0 && control & ACS_REDIRECTS)
        doctor_list_add(&b->redirect, "%s (0x%04x)", address, (unsigned)control);
}

static void look_above(const struct doctor *d, struct bridges *b, const struct pci_device *gpu)
{
    const char *step[STEPS_MAX];
    size_t bytes[STEPS_MAX];
    char address[PCI_ADDRESS_BYTES];
    unsigned n = pci_steps(gpu, step, bytes, STEPS_MAX);
    /* The first is the host bridge, the last the GPU. */
    for (unsigned k = 1; k + 1 < n; k++) {
        snprintf(address, sizeof address, "%.*s", (int)bytes[k], step[k]);
        look_at_bridge(d, b, address);
    }
}

void bus_check_acs(struct doctor *d)
{
    if (d->t->list.n == 0) {
        doctor_blind(d, "there is no GPU that this process may use");
        return;
    }
    if (d->t->list.n == 1) {
        doctor_ok(d, "one GPU: there is no P2P to redirect");
        return;
    }
    struct bridges bridges = {0}, *b = &bridges;
    for (unsigned i = 0; i < d->t->list.n; i++)
        look_above(d, b, &d->t->gpu[i].pci);
    if (b->redirect.n)
        doctor_find(
            d, VERDICT_WARNING,
            "P2P over PCIe goes up to the CPU: slow, and with a translating IOMMU the first "
            "collective may hang or give wrong sums",
            "switch ACS off in the BIOS, or at each boot as root: setpci -s BRIDGE "
            "ECAP_ACS+6.w=0000; a virtual machine that was given GPUs needs it",
            "ACS control of bridges above GPUs (their config in /sys): %s", b->redirect.text);
    if (b->hidden.n)
        doctor_blind(d,
                     "ACS of %u bridges above GPUs (%.12s is one): only root sees that part of "
                     "their config in /sys (sudo launch doctor)",
                     b->hidden.n, b->hidden.text);
    if (!b->redirect.n && !b->hidden.n)
        doctor_ok(d, "of %u bridges above GPUs none redirects (their config in /sys)", b->n);
}

/* ---- IOMMU ---- */

static bool has_groups(const struct doctor *d)
{
    char path[PATH_MAX];
    bool any = false;
    snprintf(path, sizeof path, "%s/sys/kernel/iommu_groups", d->sysroot);
    DIR *dir = opendir(path);
    struct dirent *entry;
    while (dir && !any && (entry = readdir(dir)))
        any = entry->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return any;
}

/* "iommu=pt intel_iommu=on" of the kernel's command line. */
static void read_cmdline(const struct doctor *d, struct doctor_list *list)
{
    char text[4096], *rest;
    if (sysfile_read(text, sizeof text, d->sysroot, "/proc/cmdline") < 0)
        return;
    for (char *word = strtok_r(text, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest))
        if (strncmp(word, "iommu", 5) == 0 || strncmp(word, "intel_iommu", 11) == 0 ||
            strncmp(word, "amd_iommu", 9) == 0)
            doctor_list_add(list, "%s", word);
}

void bus_check_iommu(struct doctor *d)
{
    struct doctor_list cmdline = {0}, translated = {0}, untold = {0};
    char type[32];
    read_cmdline(d, &cmdline);
    const char *words = cmdline.n ? cmdline.text : "no word about it";
    if (!has_groups(d)) {
        doctor_ok(d, "off: /sys/kernel/iommu_groups is empty; /proc/cmdline: %s", words);
        return;
    }
    for (unsigned i = 0; i < d->t->list.n; i++) {
        if (sysfile_read(type, sizeof type, d->sysroot, "/sys/bus/pci/devices/%s/iommu_group/type",
                         d->t->list.gpu[i].pci) < 0)
            doctor_list_add(&untold, "GPU %u", i);
        else if (strncmp(type, "identity", 8) != 0)
            doctor_list_add(&translated, "GPU %u %.*s", i, (int)strcspn(type, "\n"), type);
    }
    if (translated.n)
        doctor_find(d, VERDICT_WARNING,
                    d->vendor == GPU_AMD ? "RCCL warns of it: unstable, or hangs"
                                         : "P2P over PCIe is slow, hangs or gives wrong sums",
                    "add iommu=pt to the kernel's command line and reboot (or switch the IOMMU off "
                    "in the BIOS)",
                    "/sys/bus/pci/devices/*/iommu_group/type: %s; /proc/cmdline: %s",
                    translated.text, words);
    else if (untold.n)
        doctor_blind(d, "no iommu_group/type of %s; /proc/cmdline: %s", untold.text, words);
    else
        doctor_ok(
            d, "it does not translate for the GPUs (iommu_group/type: identity); /proc/cmdline: %s",
            words);
}

/* ---- the link ---- */

/* In a virtual machine /sys shows no width, and NVML does. */
static struct pci_link link_now(const struct doctor *d, unsigned i)
{
    struct pci_link now = d->t->gpu[i].now;
    const struct nvml_gpu *gpu = topology_nvml(d->t, i);
    if (!now.width && gpu && gpu->health.now_width > 0 && gpu->health.now_gen > 0)
        now = (struct pci_link){(unsigned)gpu->health.now_gen, (unsigned)gpu->health.now_width};
    return now;
}

void bus_check_link(struct doctor *d)
{
    unsigned untold = 0, narrow = 0, slow = 0;
    char now_text[16], most_text[16];
    for (unsigned i = 0; i < d->t->list.n; i++) {
        struct pci_link now = link_now(d, i), most = d->t->gpu[i].most;
        untold += !now.width || !most.width;
        slow += now.width && now.gen < most.gen;
        if (!now.width || now.width >= most.width)
            continue;
        narrow++;
        topo_link(now, now_text);
        topo_link(most, most_text);
        doctor_find(d, VERDICT_WARNING, "all that goes to and from this GPU over PCIe is slower",
                    "look at the slot, the riser and the seating; idling lowers the generation, "
                    "never the lanes",
                    "GPU %u (%s): PCIe %s of %s (current_link_width in /sys, or NVML)", i,
                    d->t->list.gpu[i].pci, now_text, most_text);
    }
    if (d->t->list.n == 0 || untold == d->t->list.n) {
        doctor_blind(d, "neither /sys nor NVML tells the links of the GPUs");
        return;
    }
    topo_link(d->t->gpu[0].most, most_text);
    if (!narrow && slow)
        doctor_ok(d,
                  "all lanes are there; %u run below %s, as idle GPUs do: only a look under load "
                  "tells more",
                  slow, most_text);
    else if (!narrow)
        doctor_ok(d, "%s, all that the GPUs can", most_text);
}
