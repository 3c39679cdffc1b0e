/* SPDX-License-Identifier: MIT */
/* The ways to show a topology, one file each (topo_text.c, topo_json.c, ...), and what is said about it (topo_words.c).
 * None of them reads the machine. */
#ifndef LAUNCH_AGENT_TOPO_H
#define LAUNCH_AGENT_TOPO_H

#include "topology.h"

#include <stdio.h>

/* Matrix, GPUs, nodes, reading and what looks wrong, for a person. */
void topo_text(FILE *out, const struct topology *t, bool colour);

/* The matrix alone, with its legend, as `nvidia-smi topo -m` has it. */
void topo_matrix(FILE *out, const struct topology *t, bool colour);

/* The matrix of one kind of P2P, as `nvidia-smi topo -p2p` has it. */
void topo_p2p(FILE *out, const struct topology *t, enum nvml_p2p kind, bool colour);

/* Everything, for programs. Members are always there; null: not known. */
void topo_json(FILE *out, const struct topology *t);

/* What NCCL_TOPO_FILE reads. */
void topo_xml(FILE *out, const struct topology *t);

/* A picture for a runbook. */
void topo_svg(FILE *out, const struct topology *t);

/* For Graphviz. */
void topo_dot(FILE *out, const struct topology *t);

/* ---- what several of them need ---- */

/* What it means for a job, and what looks wrong: lines that end with a newline each. NULL: no memory. */
char *topo_reading(const struct topology *t);
char *topo_wrong(const struct topology *t);

/* Lines that tell what NVML could not be asked. */
void topo_nvml_trouble(FILE *out, const struct topology *t);

/* "OK", "CNS", ...; "U" for what is not known. And in words. */
const char *topo_p2p_cell(const struct topology *t, enum nvml_p2p kind, unsigned i, unsigned j);
const char *topo_p2p_words(const char *cell);

/* A set of GPUs, a bit for each: "GPU 2", "GPUs 0-3,6". */
struct topo_gpus {
    char text[160];
};
struct topo_gpus topo_name_gpus(uint64_t set);

/* "completed", "not started", ...; NULL: the GPU needs no fabric, or it is not known. */
const char *topo_fabric(const struct nvml_gpu *gpu);

/* "default", "prohibited", "exclusive process"; "?" for what is not known. */
const char *topo_compute_mode(int mode);

/* "gen5 x16"; "-": not told. */
void topo_link(struct pci_link link, char ret[16]);

/* ---- what the pictures share: topo_draw.c ---- */

/* Writes text for XML and SVG. */
void topo_put_xml(FILE *out, const char *text);

/* All GPUs, then all NICs. */
unsigned topo_devices(const struct topology *t);
const struct pci_device *topo_device(const struct topology *t, unsigned device);
bool topo_is_gpu(const struct topology *t, unsigned device);

/* Whether both hang below one bridge of one host bridge; a device at the host bridge itself shares it with nobody. */
bool topo_one_branch(const struct topology *t, unsigned a, unsigned b);

/* The device is the first one of its branch. */
bool topo_opens_branch(const struct topology *t, unsigned device);

/* The branch begins with a switch: several devices hang there, and not as functions of one card. */
bool topo_is_switch(const struct topology *t, unsigned device);

/* Whether the GPUs are drawn around one middle: NVSwitches, or a mesh of more than two. */
enum topo_middle { TOPO_NO_MIDDLE, TOPO_SWITCHES, TOPO_MESH };
enum topo_middle topo_middle(const struct topology *t);

/* "18 x 26.6 GB/s", "64.0 GB/s": what one GPU has to another. */
void topo_put_speed(const struct topology *t, unsigned i, unsigned j, char ret[40]);

/* "H100 80GB HBM3": the maker's name left out. */
const char *topo_short_name(const char *name);

#endif
