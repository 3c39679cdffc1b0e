/* SPDX-License-Identifier: MIT */
/* The topology for a person: tables, then words. */
#include "topo.h"

#include <string.h>

#define CELL_BYTES PCI_CPUS_BYTES
#define TABLE_COLUMNS_MAX (GPU_MAX + TOPOLOGY_NICS_MAX + 4)

/* A table is a function that gives its cells; row 0 and column 0 are the headings. */
struct table {
    const struct topology *t;
    unsigned rows, columns;
    void (*cell)(const struct table *table, unsigned row, unsigned column, char text[CELL_BYTES]);
    enum nvml_p2p kind;
    bool colour;
};

/* ---- printing ---- */

static const char *colour_of(const char *cell)
{
    static const char *const colours[][2] = {
        {"NV", "32"},  {"XGMI", "32"}, {"OK", "32"},  {"PIX", "36"}, {"PXB", "36"}, {"SYS", "33"},
        {"CNS", "31"}, {"GNS", "31"},  {"TNS", "31"}, {"DR", "31"},  {"NS", "33"},
    };
    for (size_t i = 0; i < ARRAY_LEN(colours); i++)
        if (strncmp(cell, colours[i][0], strlen(colours[i][0])) == 0 && strlen(cell) <= 4)
            return colours[i][1];
    return NULL;
}

static void put_cell(FILE *out, const char *text, int width, const char *colour)
{
    if (colour)
        fprintf(out, "\033[%sm%s\033[0m%*s", colour, text,
                width > (int)strlen(text) ? width - (int)strlen(text) : 0, "");
    else
        fprintf(out, "%-*s", width, text);
}

static void put_table(FILE *out, const struct table *table)
{
    int width[TABLE_COLUMNS_MAX] = {0};
    char text[CELL_BYTES];
    for (unsigned r = 0; r < table->rows; r++)
        for (unsigned c = 0; c < table->columns; c++) {
            table->cell(table, r, c, text);
            width[c] = (int)strlen(text) > width[c] ? (int)strlen(text) : width[c];
        }
    for (unsigned r = 0; r < table->rows; r++) {
        unsigned last = 0; /* no blanks at the end of a line */
        for (unsigned c = 0; c < table->columns; c++) {
            table->cell(table, r, c, text);
            last = *text ? c : last;
        }
        for (unsigned c = 0; c <= last; c++) {
            table->cell(table, r, c, text);
            const char *colour = !table->colour ? NULL : r == 0 || c == 0 ? "1" : colour_of(text);
            put_cell(out, text, c == last ? 0 : width[c] + 2, *text ? colour : NULL);
        }
        fputc('\n', out);
    }
}

/* ---- the matrix ---- */

static void put_device(const struct topology *t, unsigned device, char text[CELL_BYTES])
{
    bool gpu = device < t->list.n;
    snprintf(text, CELL_BYTES, "%s%u", gpu ? "GPU" : "NIC", gpu ? device : device - t->list.n);
}

static void matrix_cell(const struct table *table, unsigned row, unsigned column,
                        char text[CELL_BYTES])
{
    static const char *const headings[] = {"CPU Affinity", "NUMA Affinity", "GPU NUMA ID"};
    const struct topology *t = table->t;
    unsigned devices = t->list.n + t->rdma_n;
    *text = '\0';
    if (row == 0 && column > devices)
        snprintf(text, CELL_BYTES, "%s", headings[column - devices - 1]);
    else if (row == 0 && column > 0)
        put_device(t, column - 1, text);
    else if (row > 0 && column == 0)
        put_device(t, row - 1, text);
    else if (row > 0 && column <= devices)
        topology_cell(t, row - 1, column - 1, text);
    else if (row == 0 || row > t->list.n)
        return;
    else if (column == devices + 1)
        snprintf(text, CELL_BYTES, "%s", t->gpu[row - 1].cpus[0] ? t->gpu[row - 1].cpus : "N/A");
    else if (column == devices + 2)
        snprintf(text, CELL_BYTES, "%s", t->gpu[row - 1].nodes[0] ? t->gpu[row - 1].nodes : "N/A");
    else if (topology_nvml(t, row - 1) && topology_nvml(t, row - 1)->numa_id >= 0)
        snprintf(text, CELL_BYTES, "%d", topology_nvml(t, row - 1)->numa_id);
    else
        snprintf(text, CELL_BYTES, "N/A");
}

static bool matrix_has(const struct topology *t, const char *part)
{
    unsigned n = t->list.n + t->rdma_n;
    char cell[8];
    for (unsigned a = 0; a < n; a++)
        for (unsigned b = 0; b < n; b++) {
            topology_cell(t, a, b, cell);
            if (strncmp(cell, part, strlen(part)) == 0)
                return true;
        }
    return false;
}

static void put_legend(FILE *out, const struct topology *t)
{
    static const char *const rows[][3] = {
        {"NV", "NV#", "over # NVLinks"},
        {"XGMI", "XGMI", "over a link of AMD's Infinity Fabric"},
        {"PIX", "PIX", "over PCIe, one switch between them"},
        {"PXB", "PXB", "over PCIe, several switches, not the CPU"},
        {"PHB", "PHB", "over PCIe and the CPU's host bridge"},
        {"NODE", "NODE", "over PCIe and between host bridges of one NUMA node"},
        {"SYS", "SYS", "over PCIe and the link between NUMA nodes"},
    };
    fputc('\n', out);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (matrix_has(t, rows[i][0]))
            fprintf(out, "  %-4s  %s\n", rows[i][1], rows[i][2]);
    for (unsigned i = 0; i < t->nics_n; i++) {
        const struct topology_nic *nic = &t->nic[i];
        if (nic->rdma)
            fprintf(out, "  NIC%u  %s", i, nic->name);
        else
            fprintf(out, "  %s  no RDMA", nic->name);
        if (nic->rdma && nic->netdev[0])
            fprintf(out, " (%s)", nic->netdev);
        if (nic->mbits)
            fprintf(out, ", %g Gb/s", nic->mbits / 1000.0);
        fprintf(out, "%s\n", nic->down ? ", down" : "");
    }
}

/* ---- the other tables ---- */

static void p2p_cell(const struct table *table, unsigned row, unsigned column,
                     char text[CELL_BYTES])
{
    *text = '\0';
    if (row == 0 && column > 0)
        put_device(table->t, column - 1, text);
    else if (row > 0 && column == 0)
        put_device(table->t, row - 1, text);
    else if (row > 0)
        snprintf(text, CELL_BYTES, "%s", topo_p2p_cell(table->t, table->kind, row - 1, column - 1));
}

static const char *on_off(int mode)
{
    return mode < 0 ? "-" : mode ? "on" : "off";
}

static void put_nvlinks(const struct nvml_gpu *gpu, char text[CELL_BYTES])
{
    if (!gpu || gpu->links <= 0)
        snprintf(text, CELL_BYTES, "-");
    else if (gpu->link_mbps > 0)
        snprintf(text, CELL_BYTES, "%d x %.1f GB/s (v%d)", gpu->links, gpu->link_mbps / 1000.0,
                 gpu->link_version);
    else
        snprintf(text, CELL_BYTES, "%d", gpu->links);
}

static void put_pcie(const struct topology_gpu *gpu, char text[CELL_BYTES])
{
    char now[16], most[16];
    topo_link(gpu->now, now);
    topo_link(gpu->most, most);
    bool same = strcmp(now, most) == 0 || most[0] == '-';
    snprintf(text, CELL_BYTES, same ? "%s" : "%s of %s", now, most);
}

static void gpu_cell(const struct table *table, unsigned row, unsigned column,
                     char text[CELL_BYTES])
{
    static const char *const headings[] = {"GPU",    "model", "PCI", "PCIe",        "memory",
                                           "NVLink", "MIG",   "ECC", "compute mode"};
    const struct topology *t = table->t;
    if (row == 0) {
        snprintf(text, CELL_BYTES, "%s", headings[column]);
        return;
    }
    const struct topology_gpu *gpu = &t->gpu[row - 1];
    const struct nvml_gpu *told = topology_nvml(t, row - 1);
    snprintf(text, CELL_BYTES, "-");
    if (column == 0)
        snprintf(text, CELL_BYTES, "%u", row - 1);
    else if (column == 1 && gpu->name[0])
        snprintf(text, CELL_BYTES, "%s", gpu->name);
    else if (column == 2)
        snprintf(text, CELL_BYTES, "%s", t->list.gpu[row - 1].pci);
    else if (column == 3)
        put_pcie(gpu, text);
    else if (column == 4 && told && told->memory_bytes)
        snprintf(text, CELL_BYTES, "%.0f GiB", (double)told->memory_bytes / (1 << 30));
    else if (column == 5)
        put_nvlinks(told, text);
    else if (column > 5 && told)
        snprintf(text, CELL_BYTES, "%s",
                 column == 6   ? on_off(told->mig)
                 : column == 7 ? on_off(told->ecc)
                               : topo_compute_mode(told->compute_mode));
}

static void node_cell(const struct table *table, unsigned row, unsigned column,
                      char text[CELL_BYTES])
{
    static const char *const headings[] = {"NUMA node", "package", "memory", "CPUs"};
    if (row == 0) {
        snprintf(text, CELL_BYTES, "%s", headings[column]);
        return;
    }
    const struct topology_node *node = &table->t->node[row - 1];
    snprintf(text, CELL_BYTES, "-");
    if (column == 0)
        snprintf(text, CELL_BYTES, "%d", node->id);
    else if (column == 1 && node->package >= 0)
        snprintf(text, CELL_BYTES, "%d", node->package);
    else if (column == 2 && node->memory_bytes)
        snprintf(text, CELL_BYTES, "%.0f GiB", (double)node->memory_bytes / (1 << 30));
    else if (column == 3 && node->cpus[0])
        snprintf(text, CELL_BYTES, "%s", node->cpus);
}

/* ---- lines ---- */

static void put_users(FILE *out, const struct topology *t)
{
    for (unsigned i = 0; i < t->list.n; i++) {
        const struct nvml_gpu *gpu = topology_nvml(t, i);
        for (unsigned k = 0; gpu && k < gpu->users_n && k < NVML_USERS_MAX; k++) {
            const struct nvml_user *user = &gpu->user[k];
            fprintf(out, "GPU %u is used by pid %d%s%s%s", i, (int)user->pid,
                    user->name[0] ? " (" : "", user->name, user->name[0] ? ")" : "");
            if (user->bytes < UINT64_MAX / 2)
                fprintf(out, ", %llu MiB", (unsigned long long)(user->bytes >> 20));
            fputc('\n', out);
        }
    }
}

static void put_driver(FILE *out, const struct topology *t)
{
    unsigned of = 0, done = 0;
    for (unsigned i = 0; i < t->list.n; i++) {
        const struct nvml_gpu *gpu = topology_nvml(t, i);
        const char *fabric = gpu ? topo_fabric(gpu) : NULL;
        of += fabric != NULL;
        done += fabric && strcmp(fabric, "completed") == 0;
    }
    if (t->driver[0])
        fprintf(out, "NVIDIA driver %s", t->driver);
    if (t->driver[0] && of)
        fprintf(out, ", fabric set up on %u of %u GPUs", done, of);
    if (t->driver[0])
        fputc('\n', out);
}

/* Each line behind an indent. */
static void put_lines(FILE *out, const char *heading, char *text, const char *colour)
{
    if (text && *text) {
        fputc('\n', out);
        put_cell(out, heading, 0, colour);
        fputc('\n', out);
        for (const char *line = text; *line;) {
            size_t n = strcspn(line, "\n");
            fprintf(out, "  %.*s\n", (int)n, line);
            line += n + (line[n] == '\n');
        }
    }
    free(text);
}

void topo_p2p(FILE *out, const struct topology *t, enum nvml_p2p kind, bool colour)
{
    static const char *const cells[] = {"OK", "CNS", "GNS", "TNS", "DR", "NS", "U"};
    put_table(out, &(struct table){.t = t,
                                   .rows = t->list.n + 1,
                                   .columns = t->list.n + 1,
                                   .cell = p2p_cell,
                                   .kind = kind,
                                   .colour = colour});
    fputc('\n', out);
    for (size_t k = 0; k < ARRAY_LEN(cells); k++) {
        bool seen = false;
        for (unsigned i = 0; i < t->list.n; i++)
            for (unsigned j = 0; j < t->list.n; j++)
                seen |= strcmp(topo_p2p_cell(t, kind, i, j), cells[k]) == 0;
        if (seen)
            fprintf(out, "  %-3s  %s\n", cells[k], topo_p2p_words(cells[k]));
    }
}

static void put_matrix(FILE *out, const struct topology *t, bool colour)
{
    put_table(out, &(struct table){.t = t,
                                   .rows = t->list.n + t->rdma_n + 1,
                                   .columns = t->list.n + t->rdma_n + 4,
                                   .cell = matrix_cell,
                                   .colour = colour});
    put_legend(out, t);
}

void topo_matrix(FILE *out, const struct topology *t, bool colour)
{
    put_matrix(out, t, colour);
    if (t->nvml || t->list.n > 1) /* else /sys knew as much */
        topo_nvml_trouble(out, t);
}

void topo_text(FILE *out, const struct topology *t, bool colour)
{
    struct table table = {.t = t, .colour = colour};
    if (t->list.n) {
        put_matrix(out, t, colour);
        table.rows = t->list.n + 1;
        table.columns = t->list.vendor == GPU_NVIDIA ? 9 : 4;
        table.cell = gpu_cell;
        fputc('\n', out);
        put_table(out, &table);
        put_users(out, t);
        put_driver(out, t);
        fputc('\n', out);
    }
    table.rows = t->nodes_n + 1;
    table.columns = 4;
    table.cell = node_cell;
    put_table(out, &table);
    fprintf(out, "%u CPUs%s%s in %u package%s\n", t->cpus_n, t->cpu_name[0] ? ", " : "",
            t->cpu_name, t->packages_n, t->packages_n == 1 ? "" : "s");
    put_lines(out, "What it means", topo_reading(t), colour ? "1" : NULL);
    put_lines(out, "What looks wrong", topo_wrong(t), colour ? "1;31" : NULL);
}
