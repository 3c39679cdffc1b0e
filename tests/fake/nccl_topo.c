/* SPDX-License-Identifier: MIT */
/* The fake NCCL's topology: what it knows of its GPU, from NCCL_TOPO_FILE or else by asking NVML, and NCCL_TOPO_DUMP_FILE, in the form
 * and with the failures of 2.28: a file that can't be opened is none, one that is broken is an error, and parts of the server that
 * one rank has from a file and another has found are not the same ones.
 *
 *   FAKE_NCCL_TOPO=1              tells on stderr from where it knows, and of a server that has its parts twice
 *   FAKE_NCCL_TOPO_TORN=1         what it writes has no end */
#include "nccl_comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

ncclResult_t fake_nccl_topology(struct ncclComm *c)
{
    struct seat *mine = &c->m->seat[c->rank];
    ncclResult_t e = load(mine->bus_id, &mine->from_file);
    if (e == ncclSuccess && c->rank == 0)
        dump(mine->bus_id);
    if (getenv("FAKE_NCCL_TOPO"))
        fprintf(stderr, "fake: rank %d of %d knows GPU %s from %s\n", c->rank, c->nranks,
                mine->bus_id, mine->from_file ? "a file" : "NVML");
    return e;
}

void fake_nccl_fuse(const struct ncclComm *c)
{
    const struct seat *mine = &c->m->seat[c->rank], *other = mine;
    for (int r = 0; r < c->nranks; r++)
        if (c->m->seat[r].host == mine->host && c->m->seat[r].from_file != mine->from_file)
            other = &c->m->seat[r];
    if (other != mine && getenv("FAKE_NCCL_TOPO"))
        fprintf(stderr, "fake: rank %d of %d sees every CPU twice\n", c->rank, c->nranks);
}
