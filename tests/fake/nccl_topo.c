/* SPDX-License-Identifier: MIT */
/* The fake NCCL's topology: what it knows of its GPU, from NCCL_TOPO_FILE or else by asking NVML, and NCCL_TOPO_DUMP_FILE, in the form
 * and with the failures of 2.28: a file that can't be opened is none, one that is broken is an error.
 *
 *   FAKE_NCCL_TOPO=1              tells on stderr from where it knows
 *   FAKE_NCCL_TOPO_TORN=1         what it writes has no end */
#include "nccl_comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define END "</system>\n"

/* Whether the file has that GPU. */
static ncclResult_t load(const char *bus_id, bool *ret)
{
    char text[4096] = "";
    const char *path = getenv("NCCL_TOPO_FILE");
    FILE *file = path ? fopen(path, "re") : NULL;
    *ret = false;
    if (!file)
        return ncclSuccess;
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    if (strncmp(text, "<system version=\"1\">", 20) != 0 || n < 30 ||
        strcmp(text + n - strlen(END), END) != 0)
        return fake_nccl_fail(ncclInternalError, "XML Parse : expected </system>");
    *ret = strstr(text, bus_id) != NULL;
    return ncclSuccess;
}

static void dump(const char *bus_id)
{
    const char *path = getenv("NCCL_TOPO_DUMP_FILE");
    FILE *file = path ? fopen(path, "we") : NULL;
    if (!file)
        return;
    fprintf(file, "<system version=\"1\">\n  <gpu busid=\"%s\"/>\n", bus_id);
    fputs(getenv("FAKE_NCCL_TOPO_TORN") ? "" : END, file);
    fclose(file);
}

ncclResult_t fake_nccl_topology(const struct ncclComm *c, const char *bus_id)
{
    bool known;
    ncclResult_t e = load(bus_id, &known);
    if (e == ncclSuccess && c->rank == 0)
        dump(bus_id);
    if (getenv("FAKE_NCCL_TOPO"))
        fprintf(stderr, "fake: rank %d of %d knows GPU %s from %s\n", c->rank, c->nranks, bus_id,
                known ? "a file" : "NVML");
    return e;
}
