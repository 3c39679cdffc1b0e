/* SPDX-License-Identifier: MIT */
#include "../../agent/nccl_topo.h"
#include "../harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define NOTHING "<system version=\"1\">\n</system>\n"
#define FOUND "<system version=\"1\">\n  <cpu numaid=\"0\"/>\n</system>\n"

static struct nccl_topo topo;
static struct job_spec spec;
static struct gpu_list gpus;
static struct gpu_set set;

/* Of two GPUs with two standbys, on a server that has nothing for NCCL. */
static void begin(char *variable)
{
    char *env[] = {variable, NULL};
    spec = (struct job_spec){.standby = STANDBY_NCCL};
    gpus = (struct gpu_list){.vendor = GPU_NVIDIA, .n = 2};
    set = (struct gpu_set){.n = 2};
    nccl_topo_init(&topo, &spec, &gpus, &set, 2, test_dir(), env);
}

static const char *text_of(const char *path)
{
    static char text[256];
    AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

static const char *read_by(uint32_t rank)
{
    char path[NCCL_TOPO_PATH_BYTES];
    return text_of(nccl_topo_file(&topo, rank, path));
}

static void standby_writes(uint32_t standby, uint32_t rank, const char *text)
{
    char path[NCCL_TOPO_PATH_BYTES];
    AUTO_FD fd = open(nccl_topo_draft(&topo, standby, path), O_WRONLY | O_TRUNC | O_CLOEXEC);
    CHECK_INT(write(fd, text, strlen(text)), ==, (ssize_t)strlen(text));
    nccl_topo_found(&topo, standby, rank);
}

TEST(what_a_standby_finds_is_what_ranks_of_its_gpu_read)
{
    begin(NULL);
    standby_writes(1, 1, FOUND);
    CHECK_STR(read_by(1), NOTHING); /* not before a generation begins */
    nccl_topo_tell(&topo, true);
    CHECK_STR(read_by(1), FOUND);
    CHECK_STR(read_by(3), FOUND); /* shares it */
    CHECK_STR(read_by(0), NOTHING);
    nccl_topo_tell(&topo, false);
    CHECK_STR(read_by(1), NOTHING);
    nccl_topo_finish(&topo);
}

TEST(a_rank_is_told_of_its_own_gpu)
{
    begin(NULL);
    CHECK(!nccl_topo_knows(&topo, 1, 1));
    standby_writes(0, 1, FOUND);
    CHECK(nccl_topo_knows(&topo, 1, 1));
    CHECK(nccl_topo_knows(&topo, 1, 3));
    CHECK(!nccl_topo_knows(&topo, 1, 0)); /* it reads the file of another */
    CHECK(!nccl_topo_knows(&topo, 0, 0));
    CHECK(!nccl_topo_knows(NULL, 1, 1));
    nccl_topo_finish(&topo);
}

TEST(whoever_reads_the_former_one_reads_all_of_it)
{
    char path[NCCL_TOPO_PATH_BYTES], text[8] = "";
    begin(NULL);
    standby_writes(0, 0, FOUND);
    nccl_topo_tell(&topo, true);
    AUTO_FD fd = open(nccl_topo_file(&topo, 0, path), O_RDONLY | O_CLOEXEC);
    standby_writes(1, 0, "<system version=\"1\">\n  <other/>\n</system>\n");
    nccl_topo_tell(&topo, true);
    CHECK_INT(pread(fd, text, 7, 23), ==, 7);
    CHECK_STR(text, "<cpu nu");
    CHECK_HAS(read_by(0), "<other/>");
    nccl_topo_finish(&topo);
}

static void check_constant(const char *text)
{
    char path[NCCL_TOPO_PATH_BYTES];
    AUTO_FD fd = open(nccl_topo_file(&topo, 0, path), O_RDWR | O_CLOEXEC);
    CHECK_INT(pwrite(fd, "x", 1, 0), ==, -1);
    CHECK_INT(ftruncate(fd, 3), ==, -1);
    CHECK_STR(read_by(0), text);
}

TEST(nobody_changes_it_afterwards)
{
    begin(NULL);
    check_constant(NOTHING);
    standby_writes(0, 0, FOUND);
    nccl_topo_tell(&topo, true);
    check_constant(FOUND);
    nccl_topo_finish(&topo);
}

/* Of 900 CPUs and more NCCL writes those of a node into 254 characters, and fails when it reads as many. */
TEST(a_value_that_is_too_long_for_nccl_is_not_read)
{
    char text[1024], mask[300];
    for (int n = 250; n < 260; n++) {
        begin(NULL);
        memset(mask, 'f', sizeof mask);
        mask[n] = '\0';
        snprintf(text, sizeof text,
                 "<system version=\"1\">\n  <cpu a=\"%s\" b=\"%s\"/>\n</system>\n",
                 n % 2 ? "0" : mask, n % 2 ? mask : "0");
        standby_writes(0, 0, text);
        CHECK_INT(nccl_topo_knows(&topo, 0, 0), ==, n < 254);
        nccl_topo_finish(&topo);
    }
}

TEST(what_is_not_whole_is_not_read)
{
    char *big = calloc(1, 2 * 1024 * 1024);
    memset(big, ' ', 2 * 1024 * 1024 - 1);
    memcpy(big, "<system>", 8);
    memcpy(big + 2 * 1024 * 1024 - 11, "</system>\n", 10);
    const char *const texts[] = {
        "", "<system version=\"1\">\n  <cpu", "</system>\n", "<system", "x</system>\n", big};
    begin(NULL);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        standby_writes(1, 0, texts[i]);
        CHECK(!nccl_topo_knows(&topo, 0, 0));
    }
    standby_writes(1, 0, FOUND);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        standby_writes(1, 0, texts[i]);
    nccl_topo_found(&topo, 1, 0); /* again: nothing new */
    nccl_topo_tell(&topo, true);
    CHECK_STR(read_by(0), FOUND);
    free(big);
    nccl_topo_finish(&topo);
}

static bool is_on(void)
{
    char path[NCCL_TOPO_PATH_BYTES];
    bool on = nccl_topo_file(&topo, 0, path) != NULL;
    CHECK((nccl_topo_draft(&topo, 0, path) != NULL) == on);
    nccl_topo_found(&topo, 0, 0);
    nccl_topo_tell(&topo, true);
    nccl_topo_finish(&topo);
    return on;
}

TEST(a_file_of_the_users_or_of_the_servers_stays_nccls)
{
    static char file[] = "NCCL_TOPO_FILE=/azure.xml", dump[] = "NCCL_TOPO_DUMP_FILE=/tmp/x",
                other[] = "NCCL_ALGO=Ring";
    begin(other);
    CHECK(is_on());
    begin(file);
    CHECK(!is_on());
    begin(dump);
    CHECK(!is_on());
    test_write("etc/nccl.conf", "NCCL_TOPO_FILE=/azure.xml\n");
    begin(NULL);
    CHECK(!is_on());
    test_write("etc/nccl.conf", "");
    test_write("var/run/nvidia-topologyd/virtualTopology.xml", FOUND);
    begin(NULL);
    CHECK(!is_on());
}

TEST(other_jobs_have_none)
{
    char *none[] = {NULL};
    begin(NULL);
    nccl_topo_finish(&topo);
    spec.standby = STANDBY_CUDA;
    nccl_topo_init(&topo, &spec, &gpus, &set, 2, test_dir(), none);
    CHECK(!is_on());
    spec.standby = STANDBY_NCCL;
    gpus.vendor = GPU_AMD;
    nccl_topo_init(&topo, &spec, &gpus, &set, 2, test_dir(), none);
    CHECK(!is_on());
    gpus.vendor = GPU_NVIDIA;
    set.n = 0;
    nccl_topo_init(&topo, &spec, &gpus, &set, 2, test_dir(), none);
    CHECK(!is_on());
    CHECK(!nccl_topo_file(NULL, 0, NULL) && !nccl_topo_draft(NULL, 0, NULL));
}
