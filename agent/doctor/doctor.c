/* SPDX-License-Identifier: MIT */
/* See doctor.h. */
#include "doctor.h"

#include "../clean.h"
#include "../sysfile.h"
#include "checks.h"

#include <dirent.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

#define VENDOR_NVIDIA 0x10de
#define VENDOR_AMD 0x1002
#define CLASS_VGA 0x0300
#define CLASS_3D 0x0302
#define CLASS_DISPLAY 0x0380
#define CLASS_BRIDGE 0x0680 /* an NVSwitch is one, too */
#define CLASS_ACCELERATOR 0x1200

const struct check CHECKS[] = {
    {"gpus", "GPUs on the PCI bus, and their driver", 0, driver_check_gpus},
    {"driver", "the driver, and NVML of its version", ON_NVIDIA, driver_check_version},
    {"driver", "the amdgpu driver", ON_AMD, driver_check_amd},
    {"nodes", "device nodes and their permissions", ON_NVIDIA, driver_check_nodes},
    {"nodes", "device nodes and their permissions", ON_AMD, driver_check_amd_nodes},
    {"nvml", "whether NVML answers for every GPU", ON_NVIDIA, driver_check_nvml},
    {"visible", "CUDA_VISIBLE_DEVICES and its like", ON_GPUS, driver_check_visible},
    {"fabric", "NVSwitches and Fabric Manager", ON_NVIDIA, fabric_check_manager},
    {"nvlink", "NVLinks that are up", ON_NVIDIA, fabric_check_links},
    {"xid", "errors in the kernel's log", ON_NVIDIA, health_check_xid},
    {"ecc", "uncorrectable memory errors", ON_NVIDIA, health_check_ecc},
    {"rows", "memory rows and pages taken out of use", ON_NVIDIA, health_check_rows},
    {"recovery", "what the driver asks to be done", ON_NVIDIA, health_check_recovery},
    {"clocks", "clocks held back by heat or power", ON_NVIDIA, health_check_clocks},
    {"ecc-mode", "ECC the same on all", ON_NVIDIA, modes_check_ecc},
    {"mig", "MIG mode", ON_NVIDIA, modes_check_mig},
    {"compute", "compute mode", ON_NVIDIA, modes_check_compute},
    {"persistence", "persistence mode", ON_NVIDIA, modes_check_persistence},
    {"users", "programs that use the GPUs now", ON_NVIDIA, modes_check_users},
    {"p2p", "P2P between the pairs that should have it", ON_NVIDIA, fabric_check_p2p},
    {"acs", "bridges that send P2P through the CPU", ON_GPUS, bus_check_acs},
    {"iommu", "whether the IOMMU translates for the GPUs", ON_GPUS, bus_check_iommu},
    {"pcie", "lanes and speed of the GPUs' links", ON_GPUS, bus_check_link},
    {"shm", "/dev/shm", 0, host_check_shm},
    {"memlock", "the limit of locked memory", 0, host_check_memlock},
    {"nofile", "the limit of open files", 0, host_check_nofile},
    {"nproc", "the limit of processes and threads", 0, host_check_nproc},
    {"stack", "the limit of the stack", 0, host_check_stack},
    {"cgroup", "what the container may use", 0, host_check_cgroup},
    {"balancing", "NUMA balancing", 0, host_check_balancing},
    {"numa-calls", "whether programs may place memory", 0, host_check_numa_calls},
    {"nccl", "NCCL's variables and files", ON_NVIDIA | ON_HOST, settings_check_nccl},
    {"nccl", "RCCL's variables and files", ON_AMD, settings_check_nccl},
    {"rocm", "ROCm's variables", ON_AMD, settings_check_amd},
    {"libnccl", "copies of libnccl", 0, libraries_check_nccl},
};
const size_t CHECKS_N = ARRAY_LEN(CHECKS);

/* ---- the machine ---- */

static unsigned read_hex(const struct doctor *d, const char *address, const char *name)
{
    char text[32];
    if (sysfile_read(text, sizeof text, d->sysroot, "/sys/bus/pci/devices/%s/%s", address, name) <
        0)
        return 0;
    return (unsigned)strtoul(text, NULL, 16);
}

/* AMD's graphics in a processor have no ROCm driver, and want none: cards with a picture count only if that is there. */
static void count_device(struct doctor *d, const char *address)
{
    unsigned vendor = read_hex(d, address, "vendor");
    if (vendor != VENDOR_NVIDIA && vendor != VENDOR_AMD)
        return;
    unsigned class_code = read_hex(d, address, "class") >> 8;
    bool amd = class_code == CLASS_DISPLAY || class_code == CLASS_ACCELERATOR;
    bool gpu = vendor == VENDOR_AMD ? amd : class_code == CLASS_VGA || class_code == CLASS_3D;
    if (vendor == VENDOR_NVIDIA && class_code == CLASS_BRIDGE)
        d->pci.switches_n++;
    if (!gpu)
        return;
    if (d->pci.gpus_n == GPU_MAX)
        return;
    struct doctor_pci_gpu *found = &d->pci.gpu[d->pci.gpus_n++];
    found->vendor = vendor == VENDOR_AMD ? GPU_AMD : GPU_NVIDIA;
    snprintf(found->address, sizeof found->address, "%.*s", PCI_ADDRESS_BYTES - 1, address);
    char module[64];
    doctor_module(d, address, module);
    found->lent = strcmp(module, "vfio-pci") == 0;
}

static int by_address(const void *a, const void *b)
{
    return strcmp(((const struct doctor_pci_gpu *)a)->address,
                  ((const struct doctor_pci_gpu *)b)->address);
}

static void read_bus(struct doctor *d)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/sys/bus/pci/devices", d->sysroot);
    DIR *dir = opendir(path);
    struct dirent *entry;
    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            count_device(d, entry->d_name);
    if (dir)
        closedir(dir);
    qsort(d->pci.gpu, d->pci.gpus_n, sizeof d->pci.gpu[0], by_address);
}

/* What has a driver counts before what has none, NVIDIA before AMD. None, where all are lent: whatever modules are loaded, there
 * is nothing for them to do. */
static enum gpu_vendor vendor_of(const struct doctor *d)
{
    enum gpu_vendor found = d->t->driver[0] ? GPU_NVIDIA : GPU_NONE;
    unsigned lent = 0;
    if (d->t->list.vendor != GPU_NONE)
        return d->t->list.vendor;
    for (unsigned i = 0; i < d->pci.gpus_n; i++)
        if (d->pci.gpu[i].lent)
            lent++;
        else if (found != GPU_NVIDIA)
            found = d->pci.gpu[i].vendor;
    return lent && lent == d->pci.gpus_n ? GPU_NONE : found;
}

static void read_shm(struct doctor *d)
{
    char path[PATH_MAX];
    struct stat st;
    struct statvfs fs;
    snprintf(path, sizeof path, "%s/dev/shm", d->sysroot);
    if (stat(path, &st) < 0 || statvfs(path, &fs) < 0) {
        d->shm.error = -errno;
        return;
    }
    d->shm = (struct doctor_shm){.mode = st.st_mode & 07777,
                                 .writable = access(path, W_OK | X_OK) == 0,
                                 .total_bytes = (uint64_t)fs.f_blocks * fs.f_frsize,
                                 .free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize};
}

int doctor_open(struct doctor **ret, const char *sysroot, char *const *environment,
                unsigned nvml_limit_ms, struct err *err)
{
    struct doctor *d = calloc(1, sizeof *d);
    if (!d)
        return err_set_errno(err, -ENOMEM, "doctor");
    d->sysroot = sysroot;
    d->environment = environment;
    unsigned want =
        NVML_MATRIX | NVML_REST | NVML_HEALTH | NVML_P2P(P2P_READ) | NVML_P2P(P2P_WRITE);
    int rc = topology_read(&d->t, sysroot, want, nvml_limit_ms, err);
    if (rc < 0) {
        doctor_close(d);
        return rc;
    }
    const struct passwd *user = getpwuid(getuid()); /* as NCCL does, which ignores HOME */
    d->home = user ? user->pw_dir : NULL;
    d->is_root = geteuid() == 0;
    d->numa_error = syscall(SYS_get_mempolicy, NULL, NULL, 0, NULL, 0) < 0 ? -errno : 0;
    read_bus(d);
    d->vendor = vendor_of(d);
    read_shm(d);
    *ret = d;
    return 0;
}

void doctor_close(struct doctor *d)
{
    if (d)
        topology_free(d->t);
    free(d);
}

/* ---- looking ---- */

static void look(struct doctor *d, const struct check *check)
{
    d->check = check;
    check->look(d);
    d->check = NULL;
}

void doctor_look(struct doctor *d)
{
    unsigned here = d->vendor == GPU_NVIDIA ? ON_NVIDIA : d->vendor == GPU_AMD ? ON_AMD : ON_HOST;
    for (size_t i = 0; i < CHECKS_N; i++)
        if (!CHECKS[i].on || CHECKS[i].on & here)
            look(d, &CHECKS[i]);
}

void doctor_look_at(struct doctor *d, const char *name)
{
    unsigned here = d->vendor == GPU_AMD ? ON_AMD : ON_NVIDIA;
    for (size_t i = 0; i < CHECKS_N; i++)
        if ((!CHECKS[i].on || CHECKS[i].on & here) && strcmp(CHECKS[i].name, name) == 0)
            look(d, &CHECKS[i]);
}

unsigned doctor_count(const struct doctor *d, enum verdict verdict)
{
    unsigned n = 0;
    for (unsigned i = 0; i < d->n; i++)
        n += d->finding[i].verdict == verdict;
    return n;
}

enum verdict doctor_verdict(const struct doctor *d)
{
    return doctor_count(d, VERDICT_BROKEN)    ? VERDICT_BROKEN
           : doctor_count(d, VERDICT_WARNING) ? VERDICT_WARNING
                                              : VERDICT_OK;
}

const char *verdict_name(enum verdict verdict)
{
    static const char *const names[VERDICTS_N] = {"ok", "warning", "broken", "could not look"};
    return names[verdict];
}

/* ---- findings ---- */

static void add(struct doctor *d, enum verdict verdict, const char *consequence, const char *fix,
                const char *format, va_list ap)
{
    if (d->n == FINDINGS_MAX)
        return;
    struct finding *f = &d->finding[d->n++];
    *f = (struct finding){
        .check = d->check, .verdict = verdict, .consequence = consequence, .fix = fix};
    vsnprintf(f->evidence, sizeof f->evidence, format, ap);
    clean(f->evidence, sizeof f->evidence, f->evidence); /* it quotes files and variables */
}

void doctor_ok(struct doctor *d, const char *evidence, ...)
{
    va_list ap;
    va_start(ap, evidence);
    add(d, VERDICT_OK, NULL, NULL, evidence, ap);
    va_end(ap);
}

void doctor_blind(struct doctor *d, const char *why, ...)
{
    va_list ap;
    va_start(ap, why);
    add(d, VERDICT_BLIND, NULL, NULL, why, ap);
    va_end(ap);
}

void doctor_find(struct doctor *d, enum verdict verdict, const char *consequence, const char *fix,
                 const char *evidence, ...)
{
    va_list ap;
    va_start(ap, evidence);
    add(d, verdict, consequence, fix, evidence, ap);
    va_end(ap);
}

/* ---- what several checks need ---- */

void doctor_module(const struct doctor *d, const char *address, char ret[64])
{
    char path[PATH_MAX], target[PATH_MAX];
    snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%s/driver", d->sysroot, address);
    ssize_t n = readlink(path, target, sizeof target - 1);
    target[n > 0 ? n : 0] = '\0';
    const char *slash = strrchr(target, '/');
    snprintf(ret, 64, "%.63s", slash ? slash + 1 : target);
}

const char *doctor_variable(const struct doctor *d, const char *name)
{
    size_t n = strlen(name);
    for (char *const *e = d->environment; e && *e; e++)
        if (strncmp(*e, name, n) == 0 && (*e)[n] == '=')
            return *e + n + 1;
    return NULL;
}

bool doctor_lacks_nvml(struct doctor *d)
{
    for (unsigned i = 0; i < d->t->list.n; i++)
        if (topology_nvml(d->t, i))
            return false;
    doctor_blind(d, "NVML tells nothing of the GPUs");
    return true;
}

void doctor_list_add(struct doctor_list *list, const char *format, ...)
{
    char word[sizeof list->text];
    size_t used = strlen(list->text);
    va_list ap;
    va_start(ap, format);
    vsnprintf(word, sizeof word, format, ap);
    va_end(ap);
    bool cut = used >= 4 && strcmp(list->text + used - 4, " ...") == 0;
    list->n++;
    if (cut)
        return;
    if (used + strlen(word) + 8 > sizeof list->text)
        snprintf(word, sizeof word, "...");
    snprintf(list->text + used, sizeof list->text - used, "%s%s",
             used == 0                  ? ""
             : strcmp(word, "...") == 0 ? " "
                                        : ", ",
             word);
}
