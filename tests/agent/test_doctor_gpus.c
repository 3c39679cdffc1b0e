/* SPDX-License-Identifier: MIT */
/* The checks of GPUs, their driver and their bus. */
#include "doctor_rig.h"

static void nouveau(void)
{
    unput("proc/driver/nvidia/version");
    for (unsigned i = 0; i < GPUS; i++) {
        char name[96];
        snprintf(name, sizeof name, "proc/driver/nvidia/gpus/%s/information", pci[i]);
        unput(name);
        snprintf(name, sizeof name, "sys/bus/pci/devices/%s/driver", pci[i]);
        put_link("sys/bus/pci/drivers/nouveau", name);
    }
}

static void third_undriven(void)
{
    put_device("0000:1b:00.0", "0x10de\n", "0x030000\n", 16);
}

static void third_lent(void)
{
    third_undriven();
    put_link("sys/bus/pci/drivers/vfio-pci", "sys/bus/pci/devices/0000:1b:00.0/driver");
}

/* Nothing of the driver's is there; loaded: but for its modules. */
static void all_lent(void)
{
    unput("proc/driver/nvidia/version");
    for (unsigned i = 0; i < GPUS; i++) {
        char name[96];
        snprintf(name, sizeof name, "dev/nvidia%u", i);
        unput(name);
        snprintf(name, sizeof name, "proc/driver/nvidia/gpus/%s/information", pci[i]);
        unput(name);
        snprintf(name, sizeof name, "sys/bus/pci/devices/%s/driver", pci[i]);
        put_link("sys/bus/pci/drivers/vfio-pci", name);
    }
}

static void all_lent_but_loaded(void)
{
    all_lent();
    put("NVRM version: 580.159.04\n", "proc/driver/nvidia/version");
}

static void third_amd(void)
{
    put_device("0000:1b:00.0", "0x1002\n", "0x120000\n", 16);
}

static void other_library(void)
{
    strcpy(d->t->nvml->library, "/usr/lib/libnvidia-ml.so.570.1.2");
}

static void same_library(void)
{
    strcpy(d->t->nvml->library, "/usr/lib/libnvidia-ml.so.580.159.04");
}

static void uvm_later(void)
{
    put("", "usr/bin/nvidia-modprobe");
    chmod(at("usr/bin/nvidia-modprobe"), 0755);
}

static void no_nodes(void)
{
    unput("dev/nvidia0");
    unput("dev/nvidia1");
}

static void no_nvml(void)
{
    d->t->nvml->usable = false;
    strcpy(d->t->nvml->why, "it did not answer within 10 s");
}

static void lost_gpu(void)
{
    strcpy(gpu(1)->error, "GPU is lost");
}

static void no_fabric(void)
{
    for (unsigned i = 0; i < GPUS; i++) {
        gpu(i)->fabric = 0;
        gpu(i)->switched = false;
        gpu(i)->links = 0;
    }
}

static void one_gpu(void)
{
    d->t->list.n = 1;
}

static void one_unlinked(void)
{
    no_fabric();
    one_gpu();
}

static void l40s(void)
{
    no_fabric();
    for (unsigned i = 0; i < GPUS; i++)
        strcpy(d->t->gpu[i].name, "NVIDIA L40S");
}

static void p2p_off(void)
{
    gpu(0)->p2p[P2P_WRITE][1] = 4;
}

static void near_p2p(void)
{
    p2p_off();
    d->t->links[0][1] = 0;
}

static void far_p2p(void)
{
    near_p2p();
    gpu(0)->level[1] = 50;
}

static void untold_p2p(void)
{
    gpu(0)->p2p[P2P_READ][1] = -1;
}

static void no_ecc(void)
{
    for (unsigned i = 0; i < GPUS; i++)
        gpu(i)->ecc = gpu(i)->health.ecc_pending = 0;
}

static void hot(void)
{
    gpu(1)->health.slowed = NVML_SLOWED_HEAT;
    gpu(1)->health.celsius = 91;
}

static void used(void)
{
    gpu(1)->users_n = 1;
    gpu(1)->user[0] = (struct nvml_user){.pid = 4711, .bytes = 3ull << 30, .name = "python"};
}

#define PORT "sys/bus/pci/devices/0000:17:00.0/config"

static void acs_on(void)
{
    put_config(PORT, 0x1d, 512);
}

static void acs_hidden(void)
{
    put_config(PORT, 0x1d, 64);
}

static void acs_plain(void)
{
    put_config(PORT, 0x1d, 256);
}

#define GROUP "sys/kernel/iommu_groups/7/type"
#define TYPE "sys/bus/pci/devices/0000:19:00.0/iommu_group/type"

static void iommu_translates(void)
{
    put("identity\n", GROUP);
    put("DMA-FQ\n", TYPE);
    put("quiet intel_iommu=on\n", "proc/cmdline");
}

static void iommu_untold(void)
{
    put("identity\n", GROUP);
    unput(TYPE);
}

static void no_width(void)
{
    for (unsigned i = 0; i < GPUS; i++)
        d->t->gpu[i].now.width = 0;
}

static void width_by_nvml(void)
{
    no_width();
    gpu(1)->health.now_width = 4;
    gpu(1)->health.now_gen = 3;
}

#define LINK "sys/bus/pci/devices/0000:1a:00.0/current_link_"
#define XID(n) "4,8,5000000,-;NVRM: Xid (PCI:0000:1a:00): " n ", pid=4711, name=python, text\n"
#define KMSG "dev/kmsg"
#define PARAMS "proc/driver/nvidia/params"
#define LINKS_OFF "ResmanDebugLevel: 4294967295\nNvLinkDisable: 1\nRmProfilingAdminOnly: 1\n"
#define LINKS_ON "NvLinkDisable: 0\n"
#define DRIVER "proc/driver/nvidia/version"
#define SILENT(check) ROW(check, VERDICT_BLIND, "NVML tells nothing", .after = no_nvml)

/* clang-format off: a row a line */
static const struct row ROWS[] = {
    ROW("driver", VERDICT_OK, "580.159.04; /usr/lib/libnvidia-ml.so.580", .after = same_library),
    ROW("driver", VERDICT_OK, "/proc/driver/nvidia/version: 580.159.04"),
    {"driver", VERDICT_BROKEN, "580.159.04, but /usr/lib/libnvidia-ml.so.570.1.2",
     .after = other_library},
    ROW("driver", VERDICT_BROKEN, "the driver is not loaded", NO_FILE(DRIVER)),
    ROW("nodes", VERDICT_OK, "/dev/nvidia-uvm and the GPUs'"),
    ROW("nodes", VERDICT_OK, "not there yet", NO_FILE("dev/nvidia-uvm"), .before = uvm_later),
    ROW("nodes", VERDICT_BROKEN, "/dev/nvidia-uvm is not there, nor", NO_FILE("dev/nvidia-uvm")),
    ROW("nodes", VERDICT_BROKEN, "not there: /dev/nvidia0, /dev/nvidia1", .before = no_nodes),
    ROW("nodes", VERDICT_BLIND, "the driver is not loaded", NO_FILE(DRIVER)),
    ROW("nvml", VERDICT_OK, "answers for GPUs 0-1"),
    ROW("nvml", VERDICT_BROKEN, "did not answer within 10 s", .after = no_nvml),
    ROW("nvml", VERDICT_BROKEN, "GPU 1 (0000:1a:00.0): NVML: GPU is lost", .after = lost_gpu),
    ROW("nvml", VERDICT_BLIND, "no GPU that this process", .before = no_nodes),
    ROW("fabric", VERDICT_OK, "GPUs 0-1: the fabric is set up"),
    ROW("fabric", VERDICT_OK, "no Fabric Manager is needed", .after = no_fabric),
    {"fabric", VERDICT_BROKEN, "GPUs 0-1: NVML's fabric state is not started",
     NVML(BOTH, fabric, 1)},
    {"fabric", VERDICT_BROKEN, "GPU 1: NVML's fabric state is completed with an error",
     NVML(GPU1, fabric_status, 15)},
    ROW("fabric", VERDICT_WARNING, "GPU 1: NVML's fabric health", NVML(GPU1, fabric_health, 1)),
    ROW("fabric", VERDICT_BLIND, "does not tell the fabric's state", NVML(BOTH, fabric, -1)),
    SILENT("fabric"),
    ROW("nvlink", VERDICT_OK, "18 up on every GPU"),
    ROW("nvlink", VERDICT_OK, "joined by PCIe", .after = no_fabric),
    ROW("nvlink", VERDICT_OK, "none up, and one GPU needs none", .after = one_unlinked),
    {"nvlink", VERDICT_OK, "told so, /proc/driver/nvidia/params has NvLinkDisable: 1",
     FILE_(PARAMS, LINKS_OFF), .after = one_unlinked},
    {"nvlink", VERDICT_WARNING, "told so, /proc/driver/nvidia/params has NvLinkDisable: 1",
     FILE_(PARAMS, LINKS_OFF), .after = no_fabric},
    {"nvlink", VERDICT_OK, "joined by PCIe; /proc/driver/nvidia/params has NvLinkDisable: 1",
     FILE_(PARAMS, LINKS_OFF), .after = l40s},
    ROW("nvlink", VERDICT_OK, "joined by PCIe", FILE_(PARAMS, LINKS_ON), .after = no_fabric),
    ROW("nvlink", VERDICT_OK, "18 up on every GPU", FILE_(PARAMS, LINKS_ON)),
    {"nvlink", VERDICT_WARNING, "GPU 1: NVML has 16 NVLinks up, others have 18",
     NVML(GPU1, links, 16)},
    SILENT("nvlink"),
    ROW("p2p", VERDICT_OK, "1 of 1 pairs"),
    ROW("p2p", VERDICT_OK, "one GPU", .after = one_gpu),
    ROW("p2p", VERDICT_OK, "0 of 1 pairs have it (NVML); NCCL by default would not",
        .after = far_p2p),
    ROW("p2p", VERDICT_BROKEN, "0-1 DR", .after = p2p_off),
    ROW("p2p", VERDICT_WARNING, "behind one PCIe switch: 0-1 DR", .after = near_p2p),
    ROW("p2p", VERDICT_BLIND, "of 0-1", .after = untold_p2p),
    SILENT("p2p"),
    ROW("xid", VERDICT_OK, "no Xid"),
    {"xid", VERDICT_OK, "31 of 0000:1a:00 (2 times), 13 of",
     FILE_(KMSG, XID("31") XID("31") XID("13"))},
    {"xid", VERDICT_WARNING, "Xid 94 (a contained memory error) of GPU 0000:1a:00, 1 times",
     FILE_(KMSG, XID("94"))},
    {"xid", VERDICT_WARNING, "Xid 79 (the GPU has fallen off the bus) of GPU 0000:1a:00",
     FILE_(KMSG, XID("79"))},
    {"xid", VERDICT_BROKEN, "Xid 79", FILE_(KMSG, XID("79")), NVML(GPU1, health.recovery, 1)},
    ROW("xid", VERDICT_BROKEN, "Xid 79", FILE_(KMSG, XID("79")), NVML(GPU1, health.recovery, -1)),
    ROW("xid", VERDICT_BLIND, "/dev/kmsg: No such file", NO_FILE(KMSG)),
    ROW("ecc", VERDICT_OK, "no uncorrectable error"),
    ROW("ecc", VERDICT_WARNING, "GPU 1: 3 uncorrectable memory errors",
        NVML(GPU1, health.ecc_now, 3)),
    ROW("ecc", VERDICT_BLIND, "does not tell", NVML(BOTH, health.ecc_now, -1)),
    ROW("rows", VERDICT_OK, "nothing pending, nothing failed"),
    ROW("rows", VERDICT_OK, "before on GPU 0", NVML(GPU0, health.rows_lost, 2)),
    ROW("rows", VERDICT_WARNING, "GPU 0: NVML: memory rows", NVML(GPU0, health.rows_pending, 1)),
    {"rows", VERDICT_WARNING, "GPU 1: NVML: memory rows or pages",
     NVML(GPU1, health.pages_pending, 1)},
    {"rows", VERDICT_BROKEN, "GPU 0: NVML: a memory row could not",
     NVML(GPU0, health.rows_failed, 1)},
    ROW("rows", VERDICT_BLIND, "tells nothing of rows", NVML(BOTH, health.rows_failed, -1)),
    ROW("recovery", VERDICT_OK, "none"),
    {"recovery", VERDICT_BROKEN, "GPU 1: NVML: recovery action 1 (the GPU is to be reset)",
     NVML(GPU1, health.recovery, 1)},
    {"recovery", VERDICT_BROKEN, "GPU 1: NVML: recovery action 77",
     NVML(GPU1, health.recovery, 77)},
    ROW("recovery", VERDICT_BLIND, "driver 570", NVML(BOTH, health.recovery, -1)),
    ROW("clocks", VERDICT_OK, "neither heat"),
    ROW("clocks", VERDICT_OK, "neither heat", NVML(GPU1, health.slowed, 5)),
    ROW("clocks", VERDICT_WARNING, "GPU 1: NVML: clocks held back by heat (0x40); 91 C",
        .after = hot),
    {"clocks", VERDICT_WARNING, "by an external power brake (0x88)",
     NVML(GPU1, health.slowed, 0x88)},
    ROW("clocks", VERDICT_BLIND, "does not tell", NVML(BOTH, health.slowed, -1)),
    ROW("ecc-mode", VERDICT_OK, "on (NVML)"),
    ROW("ecc-mode", VERDICT_OK, "off on all", .after = no_ecc),
    ROW("ecc-mode", VERDICT_WARNING, "GPU 1: NVML: ECC is off", NVML(GPU1, ecc, 0)),
    {"ecc-mode", VERDICT_WARNING, "GPU 1: NVML: another ECC mode",
     NVML(GPU1, health.ecc_pending, 0)},
    SILENT("ecc-mode"),
    ROW("mig", VERDICT_OK, "off"),
    ROW("mig", VERDICT_WARNING, "GPU 0: NVML: MIG is on", NVML(GPU0, mig, 1)),
    ROW("mig", VERDICT_WARNING, "GPU 0: NVML: another MIG mode", NVML(GPU0, health.mig_pending, 1)),
    SILENT("mig"),
    ROW("compute", VERDICT_OK, "default"),
    {"compute", VERDICT_WARNING, "GPU 0: NVML: compute mode is exclusive",
     NVML(GPU0, compute_mode, 3)},
    {"compute", VERDICT_BROKEN, "GPU 0: NVML: compute mode is prohibited",
     NVML(GPU0, compute_mode, 2)},
    ROW("compute", VERDICT_BLIND, "does not tell", NVML(BOTH, compute_mode, -1)),
    ROW("persistence", VERDICT_OK, "on (NVML)"),
    {"persistence", VERDICT_WARNING, "GPUs 0-1: NVML: persistence mode is off",
     NVML(BOTH, persistence, 0)},
    ROW("persistence", VERDICT_BLIND, "does not tell", NVML(BOTH, persistence, -1)),
    ROW("users", VERDICT_OK, "nobody"),
    ROW("users", VERDICT_WARNING, "GPU 1: NVML: pid 4711 (python), 3072 MiB", .after = used),
    {"users", VERDICT_WARNING, "GPU 1: NVML: 71680 MiB are in use by nobody",
     NVML(GPU1, health.used_bytes, 70ll << 30)},
    SILENT("users"),
};

static const struct row GPU_ROWS[] = {
    ROW("visible", VERDICT_OK, "is not set"),
    ROW("visible", VERDICT_OK, "CUDA_VISIBLE_DEVICES=1: 1 of 2",
        VARIABLE("CUDA_VISIBLE_DEVICES=1")),
    ROW("visible", VERDICT_WARNING, "1 GPUs, up to \"7\"", VARIABLE("CUDA_VISIBLE_DEVICES=0,7")),
    ROW("visible", VERDICT_BROKEN, "0 GPUs, up to \"9\"", VARIABLE("CUDA_VISIBLE_DEVICES=9")),
    ROW("visible", VERDICT_BROKEN, "CUDA_VISIBLE_DEVICES", VARIABLE("CUDA_VISIBLE_DEVICES=0,0")),
    ROW("acs", VERDICT_OK, "of 4 bridges above GPUs none redirects"),
    ROW("acs", VERDICT_OK, "of 4 bridges", .before = acs_plain),
    ROW("acs", VERDICT_OK, "one GPU", .after = one_gpu),
    ROW("acs", VERDICT_WARNING, "0000:17:00.0 (0x001d)", .before = acs_on),
    {"acs", VERDICT_BLIND, "1 bridges above GPUs (0000:17:00.0 is one): only root",
     .before = acs_hidden},
    ROW("iommu", VERDICT_OK, "iommu_groups is empty"),
    ROW("iommu", VERDICT_OK, "it does not translate", FILE_(GROUP, "identity\n")),
    {"iommu", VERDICT_WARNING, "GPU 0 DMA-FQ; /proc/cmdline: intel_iommu=on",
     .before = iommu_translates},
    ROW("iommu", VERDICT_BLIND, "no iommu_group/type of GPU 0", .before = iommu_untold),
    ROW("pcie", VERDICT_OK, "gen5 x16, all that"),
    {"pcie", VERDICT_OK, "1 run below gen5 x16, as idle GPUs do",
     FILE_(LINK "speed", "2.5 GT/s PCIe\n")},
    {"pcie", VERDICT_WARNING, "GPU 1 (0000:1a:00.0): PCIe gen5 x8 of gen5 x16",
     FILE_(LINK "width", "8\n")},
    {"pcie", VERDICT_WARNING, "GPU 1 (0000:1a:00.0): PCIe gen3 x4 of gen5 x16",
     .after = width_by_nvml},
    ROW("pcie", VERDICT_BLIND, "neither /sys nor NVML", .after = no_width),
};

static const struct row BUS_ROWS[] = {
    ROW("gpus", VERDICT_OK, "2 that this process may use"),
    ROW("gpus", VERDICT_OK, "2 that this process may use", .before = third_amd),
    ROW("gpus", VERDICT_OK, "(vfio-pci): 0000:1b:00.0", .before = third_lent),
    ROW("gpus", VERDICT_OK,
        "all are given to virtual machines (vfio-pci): 0000:19:00.0, 0000:1a:00.0",
        .before = all_lent),
    ROW("gpus", VERDICT_OK, "all are given to virtual machines", .before = all_lent_but_loaded),
    ROW("gpus", VERDICT_BROKEN, "0000:19:00.0 has nouveau", .before = nouveau),
    ROW("gpus", VERDICT_BROKEN, "0000:1b:00.0 has no driver", .before = third_undriven),
    ROW("gpus", VERDICT_BROKEN, "2 GPUs on the PCI bus, none", .before = no_nodes),
};
/* clang-format on */

TEST(each_check_of_nvidia_says_what_it_sees_and_judges_it)
{
    look_at_all(ROWS, ARRAY_LEN(ROWS));
    check_covered(ON_NVIDIA, ROWS, ARRAY_LEN(ROWS));
}

TEST(each_check_of_any_gpu_says_what_it_sees_and_judges_it)
{
    look_at_all(GPU_ROWS, ARRAY_LEN(GPU_ROWS));
    check_covered(ON_GPUS, GPU_ROWS, ARRAY_LEN(GPU_ROWS));
    look_at_all(BUS_ROWS, ARRAY_LEN(BUS_ROWS));
}

TEST(a_host_whose_gpus_are_all_lent_to_virtual_machines_is_not_broken)
{
    void (*const hosts[])(void) = {all_lent, all_lent_but_loaded};
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        put_host();
        put_gpus();
        hosts[i]();
        open_it();
        doctor_look(d);
        for (unsigned k = 0; k < d->n; k++)
            if (d->finding[k].verdict == VERDICT_BROKEN)
                test_fail(__FILE__, __LINE__, "%s: %s", d->finding[k].check->name,
                          d->finding[k].evidence);
        CHECK_INT(d->vendor, ==, GPU_NONE);
        doctor_close(d);
        d = NULL;
    }
}

/* ---- AMD ---- */

static void put_amd(void)
{
    put_host();
    put("6.12.12\n", "sys/module/amdgpu/version");
    put("0\n", "sys/class/kfd/kfd/topology/nodes/0/gpu_id");
    put("simd_count 0\n", "sys/class/kfd/kfd/topology/nodes/0/properties");
    put("1000\n", "sys/class/kfd/kfd/topology/nodes/1/gpu_id");
    put("simd_count 1216\nlocation_id 256\ndomain 0\ndrm_render_minor 128\n",
        "sys/class/kfd/kfd/topology/nodes/1/properties");
    put("", "dev/kfd");
    put("", "dev/dri/renderD128");
    put_device("0000:01:00.0", "0x1002\n", "0x120000\n", 16);
}

static const struct finding *look_amd(const char *check)
{
    doctor_close(d);
    open_it();
    doctor_look_at(d, check);
    CHECK_INT(d->vendor, ==, GPU_AMD);
    return &d->finding[0];
}

TEST(amd_has_its_driver_nodes_and_variables_looked_at)
{
    put_amd();
    CHECK_HAS(look_amd("gpus")->evidence, "1 that this process may use");
    CHECK_HAS(look_amd("driver")->evidence, "amdgpu/version: 6.12.12");
    CHECK_HAS(look_amd("nodes")->evidence, "/dev/kfd and 1 of /dev/dri/renderD* may be opened");
    CHECK_HAS(look_amd("rocm")->evidence, "is not set");
    environment[0] = "ROCR_VISIBLE_DEVICES=0";
    environment[1] = "HIP_VISIBLE_DEVICES=1";
    CHECK_INT(look_amd("rocm")->verdict, ==, VERDICT_WARNING);
    CHECK_HAS(d->finding[0].evidence, "ROCR_VISIBLE_DEVICES=0 and HIP_VISIBLE_DEVICES=1");
    environment[0] = "HSA_ENABLE_SDMA=0";
    CHECK_INT(look_amd("rocm")->verdict, ==, VERDICT_WARNING);
    unput("dev/kfd");
    CHECK_INT(look_amd("nodes")->verdict, ==, VERDICT_BROKEN);
    CHECK_HAS(d->finding[0].evidence, "not there: /dev/kfd");
    unput("sys/module/amdgpu/version");
    CHECK_HAS(look_amd("driver")->evidence, "the kernel's own");
    CHECK_INT(rmdir(at("sys/module/amdgpu")), ==, 0);
    CHECK_INT(look_amd("driver")->verdict, ==, VERDICT_BROKEN);
}

TEST(what_is_said_of_nccl_is_said_of_rccl_where_the_gpus_are_amd_s)
{
    put_amd();
    CHECK_STR(look_amd("nccl")->check->about, "RCCL's variables and files");
    CHECK_HAS(d->finding[0].evidence, "no /etc/rccl.conf");
    environment[0] = "NCCL_TOPO_FILE=/no/such.xml";
    CHECK_HAS(look_amd("nccl")->consequence, "RCCL looks for the topology itself");
    d->n = 0;
    d->shm.error = -ENOENT;
    doctor_look_at(d, "shm");
    CHECK_HAS(d->finding[0].consequence, "RCCL and PyTorch's");
    doctor_close(d);
    open_it();
    doctor_look(d);
    for (unsigned i = 0; i < d->n; i++) /* names of variables and libraries are the same */
        if (d->finding[i].consequence && strstr(d->finding[i].consequence, "NCCL "))
            test_fail(__FILE__, __LINE__, "%s: %s", d->finding[i].check->name,
                      d->finding[i].consequence);
}
