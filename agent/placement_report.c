/* SPDX-License-Identifier: MIT */
/* Where the ranks go, for people and for programs. */
#include "../config/fields.h"
#include "../proto/env.h"
#include "json.h"
#include "log.h"
#include "logdir.h"
#include "nic.h"
#include "placement.h"
#include "topology.h"

#include <stdio.h>
#include <string.h>

#define JSON_NAME "placement.json"
#define CELL_BYTES 64

enum column { RANK, GPU, BUS, UUID, CPUS, NODE, MEMORY, NIC, THREADS, COLUMNS_N };

static const char *const HEADS[COLUMNS_N] = {"rank", "GPU",    "bus id", "UUID",           "CPUs",
                                             "node", "memory", "NIC",    "OMP_NUM_THREADS"};

/* A row of the table, or its heads. */
struct row {
    char cell[COLUMNS_N][CELL_BYTES];
};

static const char *word(const char *setting, unsigned value)
{
    return field_find(setting, strlen(setting))->choices[value];
}

static const struct gpu *gpu_of(const struct place *place, const struct plan *plan)
{
    return place->gpu < 0 ? NULL : &plan->gpus.gpu[place->gpu];
}

static const struct bitset *cpus_of(const struct placement *p, const struct place *place)
{
    return bitset_empty(&place->cpus) ? &p->allowed : &place->cpus;
}

/* The user's own value goes before ours. */
static const char *threads_of(const struct place *place, char text[CELL_BYTES])
{
    const char *own = getenv(ENV_OMP);
    if (own)
        snprintf(text, CELL_BYTES, "%s", own);
    else
        snprintf(text, CELL_BYTES, "%u", place->threads);
    return text;
}

/* The PCI part of the picture: no NVML. NULL: no memory. */
static struct topology *read_nics(const struct plan *plan, const char *sysroot)
{
    struct topology *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->list = plan->gpus;
    for (unsigned i = 0; i < plan->gpus.n; i++)
        pci_read(&t->gpu[i].pci, sysroot, plan->gpus.gpu[i].pci);
    nic_read_all(t, sysroot);
    if (t->rdma_n == 0)
        t->rdma_n = t->nics_n; /* any will have to do */
    return t;
}

static void fill_row(struct row *row, const struct placement *p, uint32_t rank,
                     const struct plan *plan, const struct topology *nics)
{
    const struct place *place = &p->places[rank];
    const struct gpu *gpu = gpu_of(place, plan);
    for (unsigned i = 0; i < COLUMNS_N; i++)
        snprintf(row->cell[i], CELL_BYTES, "-");
    snprintf(row->cell[RANK], CELL_BYTES, "%u", rank);
    if (gpu) {
        snprintf(row->cell[GPU], CELL_BYTES, "%d", place->gpu);
        snprintf(row->cell[BUS], CELL_BYTES, "%s", gpu->pci);
        if (gpu->uuid[0])
            snprintf(row->cell[UUID], CELL_BYTES, "%s", gpu->uuid);
        int nic = nics ? topology_nearest_nic(nics, (unsigned)place->gpu) : -1;
        if (nic >= 0)
            snprintf(row->cell[NIC], CELL_BYTES, "%s", nics->nic[nic].name);
    }
    bitset_text(cpus_of(p, place), row->cell[CPUS], CELL_BYTES);
    snprintf(row->cell[NODE], CELL_BYTES, "%d", place->node);
    if (bitset_empty(&place->memory)) {
        snprintf(row->cell[MEMORY], CELL_BYTES, "local");
    } else {
        int n = snprintf(row->cell[MEMORY], CELL_BYTES, "%s ", word("mem-policy", p->mem_policy));
        bitset_text(&place->memory, row->cell[MEMORY] + n, CELL_BYTES - (size_t)n);
    }
    threads_of(place, row->cell[THREADS]);
}

/* Columns as wide as their widest cell; the last one needs no width. */
static void print_table(FILE *out, const struct row *rows, uint32_t n)
{
    int width[COLUMNS_N] = {0};
    for (uint32_t r = 0; r < n; r++)
        for (unsigned c = 0; c < COLUMNS_N - 1; c++)
            if ((int)strlen(rows[r].cell[c]) > width[c])
                width[c] = (int)strlen(rows[r].cell[c]);
    for (uint32_t r = 0; r < n; r++) {
        fputs("launch:  ", out);
        for (unsigned c = 0; c < COLUMNS_N; c++)
            fprintf(out, " %-*s%s", width[c], rows[r].cell[c], c < COLUMNS_N - 1 ? " " : "\n");
    }
}

static char *make_table(const struct placement *p, const struct row *rows, size_t *ret_n)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, ret_n);
    if (!out)
        return NULL;
    fprintf(out, "launch: placement of %u rank%s: --affinity=%s --mem-policy=%s\n", p->n,
            p->n == 1 ? "" : "s", word("affinity", p->affinity), word("mem-policy", p->mem_policy));
    print_table(out, rows, p->n + 1);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

static void put_rank(FILE *out, const struct placement *p, uint32_t rank, const struct plan *plan,
                     const char *nic)
{
    const struct place *place = &p->places[rank];
    const struct gpu *gpu = gpu_of(place, plan);
    char cpus[8 * BITSET_MAX], memory[8 * CELL_BYTES], threads[CELL_BYTES];
    struct json_members m = {.out = out, .before = rank ? ",\n    {" : "\n    {", .between = ", "};
    json_number(&m, "rank", true, rank);
    json_number(&m, "gpu", gpu != NULL, place->gpu);
    json_text(&m, "bus_id", gpu ? gpu->pci : NULL);
    json_text(&m, "uuid", gpu ? gpu->uuid : NULL);
    json_text(&m, "cpus", bitset_text(cpus_of(p, place), cpus, sizeof cpus));
    json_bool(&m, "bound", !bitset_empty(&place->cpus));
    json_number(&m, "node", true, place->node);
    json_text(&m, "memory", bitset_text(&place->memory, memory, sizeof memory));
    json_text(&m, "nic", strcmp(nic, "-") == 0 ? NULL : nic);
    json_text(&m, "omp_num_threads", threads_of(place, threads));
    fputc('}', out);
}

static char *make_json(const struct placement *p, const struct plan *plan, const struct row *rows,
                       size_t *ret_n)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, ret_n);
    if (!out)
        return NULL;
    fprintf(out, "{\n  \"version\": 1,\n  \"affinity\": \"%s\",\n  \"mem_policy\": \"%s\",\n",
            word("affinity", p->affinity), word("mem-policy", p->mem_policy));
    fputs("  \"ranks\": [", out);
    for (uint32_t rank = 0; rank < p->n; rank++)
        put_rank(out, p, rank, plan, rows[rank + 1].cell[NIC]);
    fputs("\n  ]\n}\n", out);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

void placement_report(const struct placement *p, const struct plan *plan, const char *sysroot,
                      int dir_fd)
{
    size_t table_n, json_n;
    AUTO_FREE struct row *rows = calloc(p->n + 1, sizeof *rows);
    if (!rows)
        return;
    for (unsigned c = 0; c < COLUMNS_N; c++)
        snprintf(rows[0].cell[c], CELL_BYTES, "%s", HEADS[c]);
    struct topology *nics = read_nics(plan, sysroot);
    for (uint32_t rank = 0; rank < p->n; rank++)
        fill_row(&rows[rank + 1], p, rank, plan, nics);
    topology_free(nics);
    AUTO_FREE char *table = make_table(p, rows, &table_n);
    if (table)
        log_block(table, table_n);
    if (dir_fd < 0)
        return;
    AUTO_FREE char *json = make_json(p, plan, rows, &json_n);
    int rc = json ? logdir_write_file(dir_fd, JSON_NAME, json, json_n) : -ENOMEM;
    if (rc < 0)
        log_warn("%s: %s", JSON_NAME, strerror(-rc));
}
