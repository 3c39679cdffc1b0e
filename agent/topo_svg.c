/* SPDX-License-Identifier: MIT */
/* The topology as a picture: packages and NUMA nodes side by side, below each its PCIe trees, NICs above GPUs, and the
 * links between GPUs at the bottom. Plain SVG 1.1, no script, no style sheet. */
#include "topo.h"

#include <stdarg.h>
#include <string.h>

#define MARGIN 24
#define PAD 12
#define COLUMN 138 /* a device and the gap behind it */
#define DEVICE 126
#define NIC_ROW 54
#define NIC_HEIGHT 44
#define GPU_HEIGHT 84
#define NODE_WIDTH_LEAST 232
#define PACKAGE_TOP 58
#define NODE_TOP (PACKAGE_TOP + 28)
#define BUS_Y (NODE_TOP + 74) /* where the CPU's lines fan out */
#define SWITCH_Y (NODE_TOP + 92)
#define DEVICES_TOP (NODE_TOP + 126)
#define ARC_ROW 22
#define LINK_SCALE 3 /* or NVLink would be too thick beside PCIe */

#define INK "#1f2a37"
#define GREY "#5b6776"
#define GREEN "#4f9a2f"
#define RED "#c62828"

struct picture {
    FILE *out;
    const struct topology *t;
    int x[GPU_MAX + TOPOLOGY_NICS_MAX]; /* left edge of each device */
    int nic_rows, gpu_top, bottom;      /* of the nodes' boxes */
};

/* ---- shapes ---- */

static void put_box(FILE *out, int x, int y, int width, int height, const char *fill,
                    const char *stroke, int round)
{
    fprintf(out,
            "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"%d\" fill=\"%s\" "
            "stroke=\"%s\"/>\n",
            x, y, width, height, round, fill, stroke);
}

/* style: attributes of <text>. What is longer than fits is cut by characters. */
static void PRINTF_LIKE(6, 7)
    put_text(FILE *out, int x, int y, const char *style, size_t fits, const char *format, ...)
{
    char text[PCI_CPUS_BYTES];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    if (strlen(text) > fits && fits > 3)
        memcpy(text + fits - 3, "...", 4);
    fprintf(out, "<text x=\"%d\" y=\"%d\" %s>", x, y, style);
    topo_put_xml(out, text);
    fputs("</text>\n", out);
}

#define BOLD "font-size=\"14\" font-weight=\"bold\" fill=\"" INK "\""
#define SMALL "font-size=\"11\" fill=\"" GREY "\""
#define MIDDLE "font-size=\"11\" text-anchor=\"middle\" fill=\"" INK "\""

/* As thick as it is fast: 1 for PCIe 3 x8, 5 for PCIe 5 x16. */
static double thickness(unsigned mbps)
{
    double wide = 1 + mbps / 16000.0;
    return wide < 10 ? wide : 10;
}

static void put_line(FILE *out, int x1, int y1, int x2, int y2, const char *colour, double wide)
{
    fprintf(out,
            "<path d=\"M%d %dV%dH%dV%d\" fill=\"none\" stroke=\"%s\" stroke-width=\"%.1f\"/>\n", x1,
            y1, y2 > BUS_Y ? BUS_Y : y2, x2, y2, colour, wide);
}

/* ---- sizes ---- */

/* Columns of the branch that this device opens: its GPUs side by side, the NICs above them. */
static int branch_columns(const struct topology *t, unsigned opener)
{
    int gpus = 0;
    for (unsigned d = 0; d < topo_devices(t); d++)
        gpus += topo_is_gpu(t, d) && topo_one_branch(t, opener, d);
    return gpus ? gpus : 1;
}

static int node_width(const struct topology *t, int node)
{
    int columns = 0;
    for (unsigned d = 0; d < topo_devices(t); d++)
        if (topo_device(t, d)->numa_node == node && topo_opens_branch(t, d))
            columns += branch_columns(t, d);
    int width = columns * COLUMN + 2 * PAD - (COLUMN - DEVICE);
    return width > NODE_WIDTH_LEAST ? width : NODE_WIDTH_LEAST;
}

/* Nodes without CPUs are told in their GPU; those drawn have CPUs or devices. */
static bool is_drawn(const struct topology *t, const struct topology_node *node)
{
    for (unsigned d = 0; d < topo_devices(t); d++)
        if (topo_device(t, d)->numa_node == node->id)
            return true;
    return node->cpus_n > 0;
}

static int nic_rows(const struct topology *t)
{
    int most = 0;
    for (unsigned d = 0; d < topo_devices(t); d++) {
        int nics = 0, columns = branch_columns(t, d);
        for (unsigned other = 0; other < topo_devices(t); other++)
            nics += !topo_is_gpu(t, other) && topo_one_branch(t, d, other);
        int rows = (nics + columns - 1) / columns;
        most = rows > most ? rows : most;
    }
    return most;
}

/* ---- devices ---- */

static bool is_hurt(const struct topology *t, unsigned device)
{
    if (!topo_is_gpu(t, device))
        return t->nic[device - t->list.n].down;
    const struct topology_gpu *gpu = &t->gpu[device];
    return (gpu->now.width && gpu->now.width < gpu->most.width) ||
           (t->nvml && t->nvml->gpu[device].error[0]);
}

static void put_gpu(const struct picture *p, unsigned i)
{
    const struct topology *t = p->t;
    const struct nvml_gpu *told = topology_nvml(t, i);
    int x = p->x[i], y = p->gpu_top;
    char link[16];
    topo_link(t->gpu[i].now, link);
    put_box(p->out, x, y, DEVICE, GPU_HEIGHT, "#dff3d6", is_hurt(t, i) ? RED : GREEN, 6);
    put_text(p->out, x + 8, y + 19, BOLD, 99, "GPU %u", i);
    put_text(p->out, x + 8, y + 36, SMALL, 19, "%s", topo_short_name(t->gpu[i].name));
    put_text(p->out, x + 8, y + 52, SMALL, 19, "%s", t->list.gpu[i].pci);
    if (told && told->numa_id >= 0)
        put_text(p->out, x + 8, y + 68, SMALL, 19, "memory: node %d", told->numa_id);
    else if (link[0] != '-')
        put_text(p->out, x + 8, y + 68, SMALL, 19, "PCIe %s", link);
}

static void put_nic(const struct picture *p, unsigned device, int y)
{
    const struct topology_nic *nic = &p->t->nic[device - p->t->list.n];
    int x = p->x[device];
    put_box(p->out, x, y, DEVICE, NIC_HEIGHT, "#fdeed3", is_hurt(p->t, device) ? RED : "#c98a1b",
            6);
    put_text(p->out, x + 8, y + 18, "font-size=\"12\" font-weight=\"bold\" fill=\"" INK "\"", 17,
             "%s", nic->name);
    if (nic->mbits)
        put_text(p->out, x + 8, y + 34, SMALL, 19, "%g Gb/s%s", nic->mbits / 1000.0,
                 nic->down ? ", down" : "");
    else
        put_text(p->out, x + 8, y + 34, SMALL, 19, "%s", nic->pci.address);
}

static unsigned speed_of(const struct topology *t, unsigned device)
{
    return pci_mbps(topo_is_gpu(t, device) ? t->gpu[device].now : topo_device(t, device)->now);
}

/* The branch that `opener` opens, from x on; cpu_x: where the CPU's line comes from. */
static void put_branch(struct picture *p, unsigned opener, int x, int cpu_x)
{
    const struct topology *t = p->t;
    int columns = branch_columns(t, opener), gpus = 0, nics = 0;
    int width = columns * COLUMN - (COLUMN - DEVICE), middle = x + width / 2;
    bool has_switch = topo_is_switch(t, opener);
    for (unsigned d = 0; d < topo_devices(t); d++) {
        if (!topo_one_branch(t, opener, d))
            continue;
        bool gpu = topo_is_gpu(t, d);
        int place = gpu ? gpus++ : nics++;
        int y = gpu ? p->gpu_top : DEVICES_TOP + place / columns * NIC_ROW;
        p->x[d] = x + place % columns * COLUMN;
        /* The line runs behind what it passes. */
        if (has_switch)
            fprintf(p->out, "<path d=\"M%d %dV%d\" stroke=\"%s\" stroke-width=\"%.1f\"/>\n",
                    p->x[d] + DEVICE / 2, SWITCH_Y, y, GREY, thickness(speed_of(t, d)));
        else
            put_line(p->out, cpu_x, BUS_Y - 8, p->x[d] + DEVICE / 2, y, GREY,
                     thickness(speed_of(t, d)));
    }
    if (has_switch) {
        put_line(p->out, cpu_x, BUS_Y - 8, middle, SWITCH_Y, GREY, thickness(speed_of(t, opener)));
        put_box(p->out, x, SWITCH_Y, width, 22, "#e3e8ef", GREY, 4);
        put_text(p->out, middle, SWITCH_Y + 15, MIDDLE, 99, "PCIe switch");
    }
    nics = 0;
    for (unsigned d = 0; d < topo_devices(t); d++) {
        if (!topo_one_branch(t, opener, d))
            continue;
        if (topo_is_gpu(t, d))
            put_gpu(p, d);
        else
            put_nic(p, d, DEVICES_TOP + nics++ / columns * NIC_ROW);
    }
}

/* ---- nodes and packages ---- */

static void put_node(struct picture *p, const struct topology_node *node, int x)
{
    const struct topology *t = p->t;
    int width = node_width(t, node->id), cpu_x = x + PAD + DEVICE / 2;
    size_t fits = (size_t)(width - 2 * PAD - 16) / 7;
    put_box(p->out, x, NODE_TOP, width, p->bottom - NODE_TOP, "#f4f7fb", "#9fb3cc", 8);
    put_box(p->out, x + PAD, NODE_TOP + 10, width - 2 * PAD, 56, "#d9e6f7", "#6f93c4", 6);
    if (node->id < 0)
        put_text(p->out, x + PAD + 8, NODE_TOP + 29, BOLD, fits, "NUMA node not told");
    else
        put_text(p->out, x + PAD + 8, NODE_TOP + 29, BOLD, fits, "NUMA node %d", node->id);
    if (node->memory_bytes)
        put_text(p->out, x + width - PAD - 8, NODE_TOP + 29,
                 "font-size=\"11\" text-anchor=\"end\" fill=\"" GREY "\"", 99, "%.0f GiB",
                 (double)node->memory_bytes / (1 << 30));
    if (node->cpus[0])
        put_text(p->out, x + PAD + 8, NODE_TOP + 47, SMALL, fits, "CPUs %s", node->cpus);
    int at = x + PAD;
    for (unsigned d = 0; d < topo_devices(t); d++) {
        if (topo_device(t, d)->numa_node != node->id || !topo_opens_branch(t, d))
            continue;
        put_branch(p, d, at, cpu_x);
        at += branch_columns(t, d) * COLUMN;
    }
}

/* Draws one package's nodes (-1: those of no package) from x on; returns the width. `p` may be NULL: only measures. */
static int put_package(struct picture *p, const struct topology *t, int package, int x)
{
    int at = x + PAD;
    for (int pass = p ? 0 : 1; pass < 2; pass++) { /* the box, then what is in it */
        if (pass == 1 && p && at > x + PAD) {
            put_box(p->out, x, PACKAGE_TOP, at - x, p->bottom + PAD - PACKAGE_TOP, "#ffffff",
                    "#42566f", 10);
            if (package >= 0)
                put_text(p->out, x + PAD, PACKAGE_TOP + 19, BOLD, 99, "Package %d", package);
        }
        at = x + PAD;
        for (unsigned i = 0; i < t->nodes_n; i++) {
            if (t->node[i].package != package || !is_drawn(t, &t->node[i]))
                continue;
            if (pass == 1 && p)
                put_node(p, &t->node[i], at);
            at += node_width(t, t->node[i].id) + PAD;
        }
    }
    return at > x + PAD ? at - x : 0;
}

static int put_packages(struct picture *p, const struct topology *t)
{
    static const struct topology_node untold = {.id = -1, .package = -1};
    int x = MARGIN;
    for (int package = 0; package < TOPOLOGY_NODES_MAX; package++) {
        int width = put_package(p, t, package, x);
        x += width ? width + PAD : 0;
    }
    int width = put_package(p, t, -1, x);
    x += width ? width + PAD : 0;
    if (is_drawn(t, &untold)) {
        if (p)
            put_node(p, &untold, x);
        x += node_width(t, -1) + PAD;
    }
    return x - PAD + MARGIN;
}

/* ---- links ---- */

static void put_middle(const struct picture *p, enum topo_middle middle, int width)
{
    const struct topology *t = p->t;
    int y = p->bottom + PAD + 34, left = width, right = 0;
    char speed[40];
    topo_put_speed(t, 0, 1, speed);
    for (unsigned i = 0; i < t->list.n; i++) {
        int x = p->x[i] + DEVICE / 2;
        left = p->x[i] < left ? p->x[i] : left;
        right = p->x[i] + DEVICE > right ? p->x[i] + DEVICE : right;
        unsigned peer = i ? 0 : 1;
        unsigned mbps = t->links[i][peer] * t->link_mbps[i][peer];
        fprintf(p->out, "<path d=\"M%d %dV%d\" stroke=\"" GREEN "\" stroke-width=\"%.1f\"/>\n", x,
                p->gpu_top + GPU_HEIGHT, y,
                thickness((middle == TOPO_SWITCHES ? mbps : mbps * (t->list.n - 1)) / LINK_SCALE));
    }
    put_box(p->out, left, y, right - left, 42, "#c9e8ba", GREEN, 6);
    put_text(p->out, (left + right) / 2, y + 18,
             "font-size=\"13\" font-weight=\"bold\" text-anchor=\"middle\" fill=\"" INK "\"", 99,
             "%s",
             middle == TOPO_SWITCHES     ? "NVSwitch"
             : t->list.vendor == GPU_AMD ? "xGMI"
                                         : "NVLink");
    put_text(p->out, (left + right) / 2, y + 34, MIDDLE, 99, "%s %s, each way", speed,
             middle == TOPO_SWITCHES ? "per GPU" : "per pair");
}

/* A bracket below each pair, each on a level of its own. Returns how many there are. */
static int put_pairs(const struct picture *p, const struct topology *t)
{
    int level = 0;
    char speed[40];
    for (unsigned i = 0; i < t->list.n; i++)
        for (unsigned j = i + 1; j < t->list.n; j++) {
            if (!t->links[i][j])
                continue;
            int y = p ? p->bottom + PAD + 28 + level * ARC_ROW : 0;
            level++;
            if (!p)
                continue;
            int a = p->x[i] + DEVICE / 2 + 6, b = p->x[j] + DEVICE / 2 - 6,
                top = p->gpu_top + GPU_HEIGHT;
            topo_put_speed(t, i, j, speed);
            fprintf(p->out,
                    "<path d=\"M%d %dV%dH%dV%d\" fill=\"none\" stroke=\"" GREEN
                    "\" stroke-width=\"%.1f\"/>\n",
                    a, top, y, b, top, thickness(t->links[i][j] * t->link_mbps[i][j] / LINK_SCALE));
            put_text(p->out, (a + b) / 2, y - 6, MIDDLE, 99, "NVLink %s", speed);
        }
    return level;
}

void topo_svg(FILE *out, const struct topology *t)
{
    struct picture p = {.out = out, .t = t, .nic_rows = nic_rows(t)};
    enum topo_middle middle = topo_middle(t);
    p.gpu_top = DEVICES_TOP + p.nic_rows * NIC_ROW;
    p.bottom = p.gpu_top + (t->list.n ? GPU_HEIGHT + PAD : 0);
    int width = put_packages(NULL, t);
    int links = middle != TOPO_NO_MIDDLE ? 84 : put_pairs(NULL, t) * ARC_ROW + 18;
    int height = p.bottom + PAD + links + 46;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d "
            "%d\" "
            "font-family=\"Helvetica, Arial, sans-serif\">\n",
            width, height, width, height);
    fprintf(out, "<title>%u GPUs, %u NICs, %u CPUs</title>\n", t->list.n, t->nics_n, t->cpus_n);
    put_box(out, 0, 0, width, height, "#ffffff", "none", 0);
    if (t->list.n)
        put_text(out, MARGIN, 36, "font-size=\"18\" font-weight=\"bold\" fill=\"" INK "\"",
                 (size_t)(width - 2 * MARGIN) / 9, "%u x %s", t->list.n, t->gpu[0].name);
    else
        put_text(out, MARGIN, 36, "font-size=\"18\" font-weight=\"bold\" fill=\"" INK "\"",
                 (size_t)(width - 2 * MARGIN) / 9, "%u CPUs, no GPU", t->cpus_n);
    put_packages(&p, t);
    if (middle != TOPO_NO_MIDDLE)
        put_middle(&p, middle, width);
    else
        put_pairs(&p, t);
    put_text(out, MARGIN, height - 30, SMALL, 99,
             "Thicker is faster. Grey: PCIe; green: NVLink, xGMI.");
    put_text(out, MARGIN, height - 14, SMALL, 99, "Red frame: something is wrong with it.");
    fputs("</svg>\n", out);
}
