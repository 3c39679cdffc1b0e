/* SPDX-License-Identifier: MIT */
/* A made-up machine that is well: two H100 behind a PCIe switch, with NVLink. Each row of a table changes it in one place
 * and tells what a check shall say then. */
#ifndef LAUNCH_TESTS_AGENT_DOCTOR_RIG_H
#define LAUNCH_TESTS_AGENT_DOCTOR_RIG_H

#include "../../agent/doctor/doctor.h"
#include "../../agent/sysfile.h"
#include "../../agent/doctor/show.h"
#include "../../agent/json.h"
#include "../harness.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define GPUS 2
#define SWITCH "sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/"

static struct doctor *d;
static struct err err;
static char root[PATH_MAX / 2];
static unsigned roots;
static const char *environment[16];
static const char *const pci[GPUS] = {"0000:19:00.0", "0000:1a:00.0"};

/* Writes a file of the machine. */
static void put(const char *content, const char *format, ...)
{
    char path[PATH_MAX] = "";
    va_list ap;
    int n = snprintf(path, sizeof path, "%u/", roots);
    va_start(ap, format);
    vsnprintf(path + n, sizeof path - (size_t)n, format, ap);
    va_end(ap);
    test_write(path, content);
}

static const char *at(const char *name)
{
    static char path[2 * PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

static void unput(const char *name)
{
    CHECK_INT(unlink(at(name)), ==, 0);
}

static void put_link(const char *target, const char *name)
{
    char path[2 * PATH_MAX];
    put("", "%s", name); /* makes its parents */
    unput(name);
    snprintf(path, sizeof path, "%s/%s", root, target);
    CHECK_INT(symlink(path, at(name)), ==, 0);
}

/* The config space of a bridge whose ACS control is that; n: how much of it may be seen. */
static void put_config(const char *path, unsigned control, size_t n)
{
    unsigned char config[512] = {0};
    config[0x100] = 0x01; /* AER first, then ACS at 0x140 */
    config[0x102] = 0x02;
    config[0x103] = 0x14;
    config[0x140] = 0x0d;
    config[0x142] = 0x01;
    config[0x146] = (unsigned char)control;
    put("", "%s", path);
    FILE *file = fopen(at(path), "w");
    fwrite(config, 1, n, file);
    fclose(file);
}

static void put_device(const char *name, const char *vendor, const char *class_code, unsigned width)
{
    char path[PATH_MAX], link[PATH_MAX], text[16];
    snprintf(path, sizeof path, SWITCH "0000:17:0%u.0/%s", name[6] == 'a', name);
    put(vendor, "%s/vendor", path);
    put(class_code, "%s/class", path);
    put("32.0 GT/s PCIe\n", "%s/current_link_speed", path);
    put("32.0 GT/s PCIe\n", "%s/max_link_speed", path);
    snprintf(text, sizeof text, "%u\n", width);
    put(text, "%s/current_link_width", path);
    put("16\n", "%s/max_link_width", path);
    put("identity\n", "%s/iommu_group/type", path);
    snprintf(link, sizeof link, "sys/bus/pci/devices/%s", name);
    put_link(path, link);
}

static const char LIMITS[] =
    "Limit                     Soft Limit           Hard Limit           Units     \n"
    "Max stack size            8388608              unlimited            bytes     \n"
    "Max processes             96365                96365                processes \n"
    "Max open files            1024                 1048576              files     \n"
    "Max locked memory         8388608              8388608              bytes     \n";

/* A machine without a GPU that is well. */
static void put_host(void)
{
    roots++;
    snprintf(root, sizeof root, "%s/%u", test_dir(), roots);
    put(LIMITS, "proc/self/limits");
    put("0::/\n", "proc/self/cgroup");
    put("", "sys/fs/cgroup/cgroup.procs");
    put("root=/dev/vda quiet\n", "proc/cmdline");
    put("0\n", "proc/sys/kernel/numa_balancing");
    put("0-1\n", "sys/devices/system/node/online");
    put("0-3\n", "sys/devices/system/node/node0/cpulist");
    put("4-7\n", "sys/devices/system/node/node1/cpulist");
    put("", "dev/shm/other");
    chmod(at("dev/shm"), 01777);
    memset(environment, 0, sizeof environment);
}

static void put_gpus(void)
{
    char text[256];
    put("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Release Build\n",
        "proc/driver/nvidia/version");
    put("", "dev/nvidiactl");
    put("", "dev/nvidia-uvm");
    put("", "dev/kmsg");
    for (unsigned i = 0; i < GPUS; i++) {
        snprintf(text, sizeof text, "Model: \t NVIDIA H100\nDevice Minor: \t %u\n", i);
        put(text, "proc/driver/nvidia/gpus/%s/information", pci[i]);
        put("", "dev/nvidia%u", i);
        put_device(pci[i], "0x10de\n", "0x030200\n", 16);
    }
    static const char *const bridges[] = {"0000:15:01.0", "0000:16:00.0", "0000:17:00.0",
                                          "0000:17:0a.0"};
    for (size_t i = 0; i < ARRAY_LEN(bridges); i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "sys/bus/pci/devices/%s/config", bridges[i]);
        put_config(path, 0, 512);
    }
    /* The second GPU's port. */
    put_config("sys/bus/pci/devices/0000:17:01.0/config", 0, 512);
}

static void tell(void)
{
    struct nvml_facts *facts = d->t->nvml;
    if (!facts)
        return;
    facts->usable = true;
    for (unsigned i = 0; i < GPUS; i++) {
        struct nvml_gpu *gpu = &facts->gpu[i];
        gpu->mig = gpu->compute_mode = gpu->fabric_status = gpu->fabric_health = 0;
        gpu->ecc = gpu->persistence = 1;
        gpu->fabric = 3;
        gpu->links = 18;
        gpu->switched = true;
        gpu->memory_bytes = 80ull << 30;
        gpu->level[!i] = 10;
        gpu->p2p[P2P_READ][!i] = gpu->p2p[P2P_WRITE][!i] = 0;
        d->t->links[i][!i] = 18;
        gpu->health = (struct nvml_health){.pages_pending = -1, .ecc_pending = 1};
    }
}

static void open_it(void)
{
    CHECK_INT(doctor_open(&d, root, (char *const *)environment, 10000, &err), ==, 0);
    d->is_root = false;
    d->numa_error = 0;
    d->home = "/home/me";
    d->shm.free_bytes = d->shm.total_bytes = 1ull << 34;
    tell();
}

static struct nvml_gpu *gpu(unsigned i)
{
    return &d->t->nvml->gpu[i];
}

struct row {
    const char *check;
    enum verdict verdict; /* of the first finding */
    const char *evidence; /* a part of it */
    /* What is changed. A member of what NVML tells, of a set of GPUs: */
    struct {
        unsigned gpus;
        size_t at, bytes;
        long long value;
    } nvml;
    const char *file, *content; /* content NULL: it is not there */
    const char *variable;       /* of the environment */
    void (*before)(void);       /* the machine is read */
    void (*after)(void);
};
#define ROW(name, what, words, ...)                                                                \
    {                                                                                              \
        .check = (name), .verdict = (what), .evidence = (words), __VA_ARGS__                       \
    }
#define NVML(set, member, to)                                                                      \
    .nvml = {set, offsetof(struct nvml_gpu, member), sizeof(((struct nvml_gpu *)0)->member), to}
#define GPU0 1u
#define GPU1 2u
#define BOTH 3u
#define FILE_(name, text) .file = (name), .content = (text)
#define NO_FILE(name) .file = (name)
#define VARIABLE(text) .variable = (text)

/* What the row's file was; -1 bytes: not there. */
static char was[4096];
static ssize_t was_bytes;

static void change_file(const struct row *row)
{
    was_bytes = sysfile_read(was, sizeof was, root, "/%s", row->file);
    if (row->content)
        put(row->content, "%s", row->file);
    else
        unput(row->file);
}

static void put_back_file(const struct row *row)
{
    if (was_bytes >= 0)
        put(was, "%s", row->file);
    else
        unput(row->file);
}

static const struct finding *look(const struct row *row)
{
    static bool pristine; /* many files take their time: who changes one only puts it back */
    doctor_close(d);
    if (!pristine) {
        put_host();
        put_gpus();
    }
    pristine = !row->before;
    if (row->file)
        change_file(row);
    if (row->before)
        row->before();
    environment[0] = row->variable;
    open_it();
    for (unsigned i = 0; i < GPUS; i++)
        if (row->nvml.gpus & 1u << i) /* little endian */
            memcpy((char *)gpu(i) + row->nvml.at, &row->nvml.value, row->nvml.bytes);
    if (row->after)
        row->after();
    doctor_look_at(d, row->check);
    if (pristine && row->file)
        put_back_file(row);
    return &d->finding[0];
}

static void look_at_all(const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct finding *f = look(&rows[i]);
        if (d->n == 0 || f->verdict != rows[i].verdict || !strstr(f->evidence, rows[i].evidence))
            test_fail(__FILE__, __LINE__, "row %zu, %s: %s: %s, not %s: %s", i, rows[i].check,
                      d->n ? verdict_name(f->verdict) : "nothing", d->n ? f->evidence : "",
                      verdict_name(rows[i].verdict), rows[i].evidence);
        bool bad = f->verdict == VERDICT_WARNING || f->verdict == VERDICT_BROKEN;
        CHECK_INT(f->consequence != NULL, ==, bad);
        CHECK_INT(f->fix != NULL, ==, bad);
    }
}

/* Whether some row is for what is well, and some for what is not. */
static bool is_covered(const char *check, const struct row *rows, size_t n)
{
    bool well = false, bad = false;
    for (size_t i = 0; i < n; i++) {
        bool mine = strcmp(rows[i].check, check) == 0;
        well |= mine && rows[i].verdict == VERDICT_OK;
        bad |= mine && (rows[i].verdict == VERDICT_WARNING || rows[i].verdict == VERDICT_BROKEN);
    }
    return well && bad;
}

/* Every check that is for `on` machines has them. */
static void check_covered(unsigned on, const struct row *rows, size_t n)
{
    for (size_t k = 0; k < CHECKS_N; k++)
        if (CHECKS[k].on == on && !is_covered(CHECKS[k].name, rows, n))
            test_fail(__FILE__, __LINE__, "%s has no rows", CHECKS[k].name);
}

#endif
