/* SPDX-License-Identifier: MIT */
/* The checks of the host and of settings, and the findings as a whole. */
#include "../../agent/doctor/show.h"
#include "../../agent/json.h"
#include "doctor_rig.h"

static void shm_gone(void)
{
    d->shm.error = -ENOENT;
}

static void shm_small(void)
{
    d->shm.free_bytes = d->shm.total_bytes = 64 << 20;
}

static void shm_mode(void)
{
    d->shm.mode = 0755;
}

static void shm_closed(void)
{
    shm_mode();
    d->shm.writable = false;
}

#define SEGMENT "dev/shm/nccl-AbCdEf"

static void shm_mapped(void)
{
    put("7f0-7f1 rw-s 0 00:19 5 /dev/shm/nccl-AbCdEf\n", "proc/4711/maps");
}

static void shm_mapped_beside(void)
{
    put("x", "dev/shm/nccl-Zyx987");
    put("x", "dev/shm/nccl-Left00");
    put("7f0-7f1 rw-s 0 00:19 5 /dev/shm/nccl-AbCdEf\n7f2-7f3 rw-s 0 00:19 6 "
        "/dev/shm/nccl-Zyx987\n",
        "proc/4712/maps");
}

static void rdma(void)
{
    d->t->rdma_n = 1;
}

static void root_limits(void)
{
    d->is_root = true;
}

#define CGROUP "sys/fs/cgroup/"

static void small_memory(void)
{
    put("1073741824\n", CGROUP "memory.max");
    put("104857600\n", CGROUP "memory.current");
}

static void small_memory_above(void)
{
    small_memory();
    put("0::/kubepods/pod\n", "proc/self/cgroup");
    put("", CGROUP "kubepods/pod/cgroup.procs");
    put("max\n", CGROUP "kubepods/pod/memory.max");
}

static void small_memory_v1(void)
{
    put("4:memory:/\n", "proc/self/cgroup");
    put("", CGROUP "memory/cgroup.procs");
    put("1073741824\n", CGROUP "memory/memory.limit_in_bytes");
}

static void few_pids(void)
{
    put("100\n", CGROUP "pids.max");
    put("60\n", CGROUP "pids.current");
}

static void no_limit(void)
{
    put("max\n", CGROUP "memory.max");
    put("max\n", CGROUP "pids.max");
}

static void no_numa(void)
{
    d->numa_error = -EPERM;
}

#define CONF "etc/nccl.conf"

static void two_files(void)
{
    put("NCCL_ALGO=Tree\n", "home/me/.nccl.conf");
}

static void folder(void)
{
    put("", CONF "/x");
}

/* A cache of the loader with one library. */
static void one_nccl(void)
{
    char cache[200] = "glibc-ld.so.cache1.1";
    const unsigned count = 1, key = 72, value = 90;
    memcpy(cache + 20, &count, sizeof count);
    memcpy(cache + 48 + 4, &key, sizeof key);
    memcpy(cache + 48 + 8, &value, sizeof value);
    strcpy(cache + key, "libnccl.so.2");
    strcpy(cache + value, "/usr/lib/libnccl.so.2");
    put("", "etc/ld.so.cache");
    FILE *file = fopen(at("etc/ld.so.cache"), "w");
    fwrite(cache, 1, sizeof cache, file);
    fclose(file);
    put("", "usr/lib/libnccl.so.2.28.9");
    put_link("usr/lib/libnccl.so.2.28.9", "usr/lib/libnccl.so.2");
}

#define WHEEL "venv/lib/python3.12/site-packages/"

static void wheel(void)
{
    one_nccl();
    put("", "venv/bin/python3");
    chmod(at("venv/bin/python3"), 0755);
    put("", WHEEL "nvidia/nccl/lib/libnccl.so.2");
    put("", WHEEL "nvidia_nccl_cu12-2.27.5.dist-info/RECORD");
}

static void banner(void)
{
    one_nccl();
    put("NCCL version x\nNCCL version 2.19.3+cuda12.3\n", "opt/libnccl.so.2");
}

static void same_banner(void)
{
    one_nccl();
    put("NCCL version 2.28.9+cuda13.0\n", "opt/libnccl.so.2");
}

/* As many entries as the number says would be far beyond its end. */
#define BAD_CACHE                                                                                  \
    "glibc-ld.so.cache1.1\xff\xff\xff\xff................................................"
#define LIMITS_FILE "proc/self/limits"
#define BALANCING "proc/sys/kernel/numa_balancing"

static void lose_second(void)
{
    unput("proc/driver/nvidia/gpus/0000:1a:00.0/information");
}

static void one_gpu(void)
{
    d->t->list.n = 1;
}

static void no_nvml(void)
{
    d->t->nvml->usable = false;
}

static void no_switch(void)
{
    for (unsigned i = 0; i < GPUS; i++) {
        gpu(i)->switched = false;
        gpu(i)->fabric = 0;
    }
}

/* Seen on the bus, whatever NVML tells. */
static void switch_alone(void)
{
    put_device("0000:1b:00.0", "0x10de\n", "0x068000\n", 16);
}

static void no_p2p(void)
{
    gpu(0)->p2p[P2P_READ][1] = gpu(1)->p2p[P2P_READ][0] = 4;
}

static void untold_p2p(void)
{
    gpu(0)->p2p[P2P_READ][1] = -1;
}

/* clang-format off: a row a line */
static const struct row ROWS[] = {
    ROW("gpus", VERDICT_OK, "2 that this process may use"),
    {"gpus", VERDICT_BROKEN, "none that this process may use",
     NO_FILE("proc/driver/nvidia/gpus/0000:19:00.0/information"), .before = lose_second},
    ROW("shm", VERDICT_OK, "16384 of 16384 MiB are free, mode 1777"),
    ROW("shm", VERDICT_OK, "mode 1777", FILE_(SEGMENT, "x"), .before = shm_mapped),
    ROW("shm", VERDICT_WARNING, "64 of 64 MiB are free, 256 are wanted", .after = shm_small),
    {"shm", VERDICT_WARNING, "1 file of NCCL that no process seen from here has mapped",
     FILE_(SEGMENT, "x")},
    {"shm", VERDICT_WARNING,
     "1 file of NCCL that no process seen from here has mapped, 0 MiB: nccl-Left00",
     FILE_(SEGMENT, "x"), .before = shm_mapped_beside},
    ROW("shm", VERDICT_WARNING, "mode 0755, not 1777", .after = shm_mode),
    ROW("shm", VERDICT_BROKEN, "mode 0755: this user", .after = shm_closed),
    ROW("shm", VERDICT_BROKEN, "/dev/shm: No such file", .after = shm_gone),
    ROW("memlock", VERDICT_OK, "8388608, at most 8388608 bytes; no RDMA NIC"),
    ROW("memlock", VERDICT_WARNING, "there are 1 RDMA NICs", .after = rdma),
    ROW("memlock", VERDICT_BLIND, "does not tell \"Max locked memory\"", NO_FILE(LIMITS_FILE)),
    ROW("nofile", VERDICT_OK, "1024, at most 1048576; NCCL raises"),
    {"nofile", VERDICT_WARNING, "open files: 1024, at most 1024",
     FILE_(LIMITS_FILE,
           "Max open files            1024                 1024                 files     \n")},
    ROW("nofile", VERDICT_BLIND, "does not tell", FILE_(LIMITS_FILE, "Max open files\n")),
    ROW("nproc", VERDICT_OK, "96365, at most 96365"),
    ROW("nproc", VERDICT_OK, "root has none", .after = root_limits),
    {"nproc", VERDICT_WARNING, "processes: 100, at most 100; 512 are wanted",
     FILE_(LIMITS_FILE,
           "Max processes             100                  100                  processes \n")},
    ROW("nproc", VERDICT_BLIND, "does not tell", NO_FILE(LIMITS_FILE)),
    ROW("stack", VERDICT_OK, "8388608, at most unlimited"),
    {"stack", VERDICT_WARNING, "stack: unlimited",
     FILE_(LIMITS_FILE,
           "Max stack size            unlimited            unlimited            bytes     \n")},
    ROW("stack", VERDICT_BLIND, "does not tell", NO_FILE(LIMITS_FILE)),
    ROW("cgroup", VERDICT_OK, "no tight limit"),
    ROW("cgroup", VERDICT_OK, "no tight limit", .before = no_limit),
    {"cgroup", VERDICT_WARNING, "/sys/fs/cgroup: 924 MiB of memory are left",
     .before = small_memory},
    {"cgroup", VERDICT_WARNING, "/sys/fs/cgroup: 924 MiB of memory are left",
     .before = small_memory_above},
    {"cgroup", VERDICT_WARNING, "/sys/fs/cgroup/memory: 1024 MiB of memory are left",
     .before = small_memory_v1},
    {"cgroup", VERDICT_WARNING, "/sys/fs/cgroup: 40 processes and threads are left",
     .before = few_pids},
    {"cgroup", VERDICT_WARNING, "gives 1 CPUs to 2 GPUs",
     FILE_(CGROUP "cpu.max", "50000 100000\n")},
    ROW("balancing", VERDICT_OK, "numa_balancing: 0, with 2 nodes"),
    ROW("balancing", VERDICT_OK, "this kernel has none", NO_FILE(BALANCING)),
    ROW("balancing", VERDICT_WARNING, "numa_balancing: 1, with 2 nodes", FILE_(BALANCING, "1\n")),
    ROW("balancing", VERDICT_BLIND, "numa_balancing: Invalid argument", FILE_(BALANCING, "x\n")),
    ROW("numa-calls", VERDICT_OK, "is allowed"),
    ROW("numa-calls", VERDICT_WARNING, "get_mempolicy(): Operation not permitted",
        .after = no_numa),
    ROW("nccl", VERDICT_OK, "nothing is set: no NCCL_ in the environment, no /home/me/.nccl.conf"),
    ROW("nccl", VERDICT_OK, "NCCL_P2P_DISABLE=0 (environment)", VARIABLE("NCCL_P2P_DISABLE=0")),
    ROW("nccl", VERDICT_OK, "nothing is set", VARIABLE("CUDA_HOME=/x")),
    ROW("nccl", VERDICT_WARNING, "NCCL_P2P_DISABLE=1 (environment)",
        VARIABLE("NCCL_P2P_DISABLE=1")),
    ROW("nccl", VERDICT_WARNING, "NCCL_NVLS_ENABLE=0 (environment)",
        VARIABLE("NCCL_NVLS_ENABLE=0")),
    {"nccl", VERDICT_OK, "NCCL_NVLS_ENABLE=0 (environment; changes nothing: there is no NVSwitch)",
     VARIABLE("NCCL_NVLS_ENABLE=0"), .after = no_switch},
    {"nccl", VERDICT_OK, "NCCL_NVLS_ENABLE=0 (environment; changes nothing: there is one GPU)",
     VARIABLE("NCCL_NVLS_ENABLE=0"), .after = one_gpu},
    {"nccl", VERDICT_WARNING, "NCCL_NVLS_ENABLE=0", VARIABLE("NCCL_NVLS_ENABLE=0"),
     .before = switch_alone, .after = no_switch},
    {"nccl", VERDICT_WARNING, "NCCL_NVLS_ENABLE=0", VARIABLE("NCCL_NVLS_ENABLE=0"),
     .after = no_nvml},
    {"nccl", VERDICT_OK,
     "NCCL_P2P_DISABLE=1 (environment; changes nothing: no pair of GPUs has P2P)",
     VARIABLE("NCCL_P2P_DISABLE=1"), .after = no_p2p},
    ROW("nccl", VERDICT_WARNING, "NCCL_P2P_DISABLE=1", VARIABLE("NCCL_P2P_DISABLE=1"),
        .after = untold_p2p),
    {"nccl", VERDICT_OK, "NCCL_ALGO=Ring (environment; changes nothing: there is one GPU)",
     VARIABLE("NCCL_ALGO=Ring"), .after = one_gpu},
    ROW("nccl", VERDICT_WARNING, "NCCL_CHECK_POINTERS=1", VARIABLE("NCCL_CHECK_POINTERS=1"),
        .after = one_gpu),
    {"nccl", VERDICT_WARNING, "CUDA_LAUNCH_BLOCKING=1 (environment)",
     VARIABLE("CUDA_LAUNCH_BLOCKING=1")},
    {"nccl", VERDICT_BROKEN, "no /sys/class/net/eth7", VARIABLE("NCCL_SOCKET_IFNAME==eth7"),
     FILE_("sys/class/net/lo", "")},
    {"nccl", VERDICT_OK, "NCCL_SOCKET_IFNAME==lo", VARIABLE("NCCL_SOCKET_IFNAME==lo"),
     FILE_("sys/class/net/lo", "")},
    {"nccl", VERDICT_WARNING, "NCCL_TOPO_FILE=/no/such.xml",
     VARIABLE("NCCL_TOPO_FILE=/no/such.xml")},
    {"nccl", VERDICT_WARNING, "NCCL_ALGO=Tree (/home/me/.nccl.conf:1)",
     FILE_(CONF, "# no\nNCCL_ALGO=Ring\n"), .before = two_files},
    {"nccl", VERDICT_WARNING, "NCCL_ALGO=Ring (/etc/nccl.conf:2)",
     FILE_(CONF, "# no\nNCCL_ALGO=Ring\n")},
    {"nccl", VERDICT_WARNING, "NCCL_NTHREADS=8 (environment)", FILE_(CONF, "NCCL_NTHREADS=9\n"),
     VARIABLE("NCCL_NTHREADS=8")},
    {"nccl", VERDICT_WARNING, "/etc/nccl.conf:1: \"NCCL_DEBUG = WARN\"",
     FILE_(CONF, "NCCL_DEBUG = WARN\nno setting\n")},
    {"nccl", VERDICT_WARNING, "NCCL_CONF_FILE=/no/such.conf can't be read",
     VARIABLE("NCCL_CONF_FILE=/no/such.conf")},
    ROW("nccl", VERDICT_WARNING, "/etc/nccl.conf: ", .before = folder),
    ROW("libnccl", VERDICT_OK, "no libnccl.so.2 in"),
    ROW("libnccl", VERDICT_OK, "no libnccl.so.2 in", FILE_("etc/ld.so.cache", BAD_CACHE)),
    {"libnccl", VERDICT_OK, "/usr/lib/libnccl.so.2.28.9: 2.28.9 (/etc/ld.so.cache)",
     .before = one_nccl},
    {"libnccl", VERDICT_OK, "/opt/libnccl.so.2: 2.28.9 (LD_LIBRARY_PATH), /usr",
     VARIABLE("LD_LIBRARY_PATH=/opt"), .before = same_banner},
    {"libnccl", VERDICT_WARNING, "/opt/libnccl.so.2: 2.19.3 (LD_LIBRARY_PATH), /usr",
     VARIABLE("LD_LIBRARY_PATH=:/opt"), .before = banner},
    {"libnccl", VERDICT_WARNING, "nvidia/nccl/lib/libnccl.so.2: 2.27.5 (python3)",
     VARIABLE("PATH=/nowhere:/venv/bin"), .before = wheel},
};
/* clang-format on */

TEST(each_check_of_the_host_says_what_it_sees_and_judges_it)
{
    look_at_all(ROWS, ARRAY_LEN(ROWS));
    check_covered(0, ROWS, ARRAY_LEN(ROWS));
    check_covered(ON_NVIDIA | ON_HOST, ROWS, ARRAY_LEN(ROWS));
}

/* ---- the whole ---- */

static char *show(bool json)
{
    static char *text;
    size_t n;
    free(text);
    FILE *out = open_memstream(&text, &n);
    if (json)
        show_json(out, d);
    else
        show_text(out, d, false);
    fclose(out);
    return text;
}

TEST(a_machine_that_is_well_is_told_to_be_so)
{
    look(&(struct row){.check = "no such check"});
    CHECK_INT(d->n, ==, 0);
    doctor_look(d);
    CHECK_INT(doctor_verdict(d), ==, VERDICT_OK);
    CHECK_INT(doctor_count(d, VERDICT_OK), ==, d->n);
    CHECK_HAS(show(false), "2 x NVIDIA H100, driver 580.159.04\n");
    CHECK_HAS(show(false), "\nok: ");
}

TEST(the_worst_finding_is_the_verdict_and_json_has_all_of_them)
{
    struct json_value all, member;
    look(&(struct row){.check = "mig", NVML(GPU0, mig, 1)});
    CHECK_INT(doctor_verdict(d), ==, VERDICT_WARNING);
    gpu(0)->compute_mode = 2;
    doctor_look_at(d, "visible");
    doctor_look_at(d, "compute");
    CHECK_INT(doctor_verdict(d), ==, VERDICT_BROKEN);
    const char *text = show(true);
    CHECK_INT(json_parse(&all, text, strlen(text)), ==, 0);
    CHECK(json_member(&all, "verdict", &member) && strncmp(member.at, "\"broken\"", member.n) == 0);
    CHECK(json_member(&all, "broken", &member) && *member.at == '1');
    CHECK(json_member(&all, "findings", &member) && member.type == JSON_ARRAY);
    CHECK_HAS(text, "{\"check\": \"visible\", \"about\": ");
    CHECK_HAS(text, "\"consequence\": null, \"fix\": null}");
}

TEST(a_machine_without_a_gpu_gets_the_checks_of_the_host)
{
    put_host();
    open_it();
    doctor_look(d);
    CHECK_INT(d->vendor, ==, GPU_NONE);
    CHECK_INT(doctor_count(d, VERDICT_OK), ==, d->n);
    CHECK_HAS(d->finding[0].evidence, "no NVIDIA or AMD GPU");
    CHECK_HAS(show(false), "No GPU here");
    for (unsigned i = 0; i < d->n; i++)
        CHECK(!d->finding[i].check->on || d->finding[i].check->on & ON_HOST);
}

TEST(what_files_and_variables_say_can_not_steer_a_terminal)
{
    put_host();
    environment[0] = "NCCL_ALGO=\x1b[31mINFO\xff";
    open_it();
    doctor_look_at(d, "nccl");
    CHECK_HAS(d->finding[0].evidence, "NCCL_ALGO=?[31mINFO?");
}

TEST(more_findings_than_fit_are_left_out)
{
    put_host();
    open_it();
    for (unsigned i = 0; i <= FINDINGS_MAX; i++)
        doctor_look_at(d, "stack");
    CHECK_INT(d->n, ==, FINDINGS_MAX);
}

TEST(a_list_that_is_too_long_ends_in_dots)
{
    struct doctor_list list = {0};
    for (unsigned i = 0; i < 500; i++)
        doctor_list_add(&list, "GPU %u", i);
    CHECK_INT(list.n, ==, 500);
    CHECK(strlen(list.text) < sizeof list.text);
    CHECK_STR(list.text + strlen(list.text) - 4, " ...");
}
