/* SPDX-License-Identifier: MIT */
/* See pci.h. */
#include "pci.h"

#include "sysfile.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define DEVICES "/sys/bus/pci/devices"
#define HEX "0123456789abcdef"
#define STEPS_MAX 32

/* "domain:bus:device.function" in a component of n bytes. */
static bool is_address(const char *text, size_t n)
{
    static const char shape[] = ":xx:xx.x";
    size_t domain = strspn(text, HEX), rest = sizeof shape - 1;
    if (domain < 4 || n != domain + rest || n >= PCI_ADDRESS_BYTES)
        return false;
    for (size_t i = 0; i < rest; i++)
        if (shape[i] == 'x' ? !strchr(HEX, text[domain + i]) : text[domain + i] != shape[i])
            return false;
    return true;
}

bool pci_address_in(const char *path, char ret_address[PCI_ADDRESS_BYTES], const char **ret_rest)
{
    bool found = false;
    for (const char *at = path; at; at = strchr(at, '/')) {
        at += *at == '/';
        size_t n = strcspn(at, "/");
        if (!is_address(at, n))
            continue;
        memcpy(ret_address, at, n);
        ret_address[n] = '\0';
        *ret_rest = at + n;
        found = true;
    }
    return found;
}

static unsigned read_number(const char *sysroot, const char *address, const char *name, int base)
{
    char text[32], *end;
    if (sysfile_read(text, sizeof text, sysroot, DEVICES "/%s/%s", address, name) < 0)
        return 0;
    errno = 0;
    unsigned long value = strtoul(text, &end, base);
    return errno || end == text || value > UINT_MAX ? 0 : (unsigned)value;
}

/* "16.0 GT/s PCIe": the generation that has this speed. */
static unsigned read_gen(const char *sysroot, const char *address, const char *name)
{
    static const unsigned halves[] = {5, 10, 16, 32, 64, 128}; /* of GT/s */
    char text[64];
    if (sysfile_read(text, sizeof text, sysroot, DEVICES "/%s/%s", address, name) < 0)
        return 0;
    unsigned whole = 0, half = 0;
    if (sscanf(text, "%3u.%1u", &whole, &half) < 1)
        return 0;
    for (unsigned i = 0; i < ARRAY_LEN(halves); i++)
        if (halves[i] == 2 * whole + (half == 5))
            return i + 1;
    return 0;
}

static void read_link(struct pci_link *link, const char *sysroot, const char *address,
                      const char *speed, const char *width)
{
    link->gen = read_gen(sysroot, address, speed);
    link->width = read_number(sysroot, address, width, 10);
    if (link->width > 32) /* 255: the link is down or not told */
        link->width = 0;
}

/* Where the device hangs: its real path from the host bridge on. */
static void read_path(struct pci_device *device, const char *sysroot)
{
    char path[PATH_MAX], real[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s" DEVICES "/%s", sysroot, device->address);
    if (n < 0 || (size_t)n >= sizeof path || !realpath(path, real))
        return;
    for (const char *at = real; (at = strstr(at, "/pci")); at++) {
        const char *colon = at + 4 + strspn(at + 4, HEX);
        if (colon == at + 4 || *colon != ':')
            continue;
        n = snprintf(device->path, sizeof device->path, "%s", at + 1);
        if ((size_t)n >= sizeof device->path)
            device->path[0] = '\0';
        return;
    }
}

void pci_read_place(struct pci_device *device, const char *sysroot, const char *address)
{
    *device = (struct pci_device){.numa_node = -1};
    snprintf(device->address, sizeof device->address, "%s", address);
    read_path(device, sysroot);
}

int pci_numa_node(const char *sysroot, const char *address)
{
    long long node;
    int rc = sysfile_number(&node, sysroot, DEVICES "/%s/numa_node", address);
    return rc < 0 || node < 0 || node > SHRT_MAX ? -1 : (int)node;
}

void pci_read(struct pci_device *device, const char *sysroot, const char *address)
{
    pci_read_place(device, sysroot, address);
    device->numa_node = pci_numa_node(sysroot, address);
    if (sysfile_read(device->cpus, sizeof device->cpus, sysroot, DEVICES "/%s/local_cpulist",
                     address) < 0)
        device->cpus[0] = '\0';
    device->cpus[strspn(device->cpus, "0123456789,-")] = '\0';
    read_link(&device->now, sysroot, address, "current_link_speed", "current_link_width");
    read_link(&device->most, sysroot, address, "max_link_speed", "max_link_width");
    device->class_code = read_number(sysroot, address, "class", 16);
    device->vendor = read_number(sysroot, address, "vendor", 16);
    device->device = read_number(sysroot, address, "device", 16);
    device->subsystem_vendor = read_number(sysroot, address, "subsystem_vendor", 16);
    device->subsystem_device = read_number(sysroot, address, "subsystem_device", 16);
}

unsigned pci_steps(const struct pci_device *device, const char *step[], size_t bytes[],
                   unsigned max)
{
    unsigned n = 0;
    for (const char *at = device->path; *at && n < max; n++) {
        step[n] = at;
        bytes[n] = strcspn(at, "/");
        at += bytes[n] + (at[bytes[n]] == '/');
    }
    return n;
}

static unsigned equal_steps(const struct pci_device *a, const struct pci_device *b,
                            unsigned *ret_longer)
{
    const char *x[STEPS_MAX], *y[STEPS_MAX];
    size_t x_bytes[STEPS_MAX], y_bytes[STEPS_MAX];
    unsigned x_n = pci_steps(a, x, x_bytes, STEPS_MAX), y_n = pci_steps(b, y, y_bytes, STEPS_MAX);
    unsigned n = x_n < y_n ? x_n : y_n;
    *ret_longer = x_n < y_n ? y_n : x_n;
    for (unsigned i = 0; i < n; i++)
        if (x_bytes[i] != y_bytes[i] || memcmp(x[i], y[i], x_bytes[i]) != 0)
            return i;
    return n;
}

/* A switch shows as an upstream port and the downstream ports below it: two devices under one switch have all but the
 * last two steps (their port, themselves) in common. If one is below a further switch, there are two between them. */
enum pci_near pci_near(const struct pci_device *a, const struct pci_device *b)
{
    if (strcmp(a->address, b->address) == 0)
        return PCI_SELF;
    unsigned longer, equal = equal_steps(a, b, &longer);
    if (equal == 0)
        return a->numa_node >= 0 && a->numa_node == b->numa_node ? PCI_NODE : PCI_SYS;
    if (equal == 1)
        return PCI_PHB;
    return equal + 2 >= longer ? PCI_PIX : PCI_PXB;
}

unsigned pci_mbps(struct pci_link link)
{
    /* A lane after its coding: 8b/10b, from generation 3 on 128b/130b. */
    static const unsigned lane[] = {0, 250, 500, 985, 1969, 3938, 7563};
    return link.gen < ARRAY_LEN(lane) ? lane[link.gen] * link.width : 0;
}

const char *pci_near_name(enum pci_near near)
{
    static const char *const names[PCI_NEAR_N] = {"X", "PIX", "PXB", "PHB", "NODE", "SYS"};
    return near < PCI_NEAR_N ? names[near] : "?";
}
