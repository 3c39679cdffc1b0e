/* SPDX-License-Identifier: MIT */
#include "place.h"

#include <stdio.h>
#include <string.h>

/* One that a node's cores are divided among: a GPU of the server, or a rank. */
struct seat {
    int node;
    unsigned position; /* among the seats of its node */
};

struct work {
    const struct place_question *q;
    bool by_gpu; /* seats are GPUs, else ranks */
    struct seat *seat;
    unsigned seats_n;
    struct bitset left;   /* CPUs that are allowed and of whose core no other job has a thread */
    struct bitset usable; /* CPUs that are divided: those left, or, by GPU, all that are allowed */
    unsigned cores_n;     /* usable ones, in the order of their nodes and then of their CPUs: */
    int ordinal[BITSET_MAX]; /* of the core a CPU belongs to; -1: not usable */
    int node[BITSET_MAX];    /* of a core, by its ordinal */
    struct {
        unsigned first, cores; /* ordinals of its cores */
        unsigned seats;
    } of_node[BITSET_MAX];
};

unsigned place_details(enum affinity affinity)
{
    switch (affinity) {
    case AFFINITY_NONE:
    case AFFINITY_NODE:
        return 0;
    case AFFINITY_SOCKET:
        return MACHINE_PACKAGES;
    case AFFINITY_CORE_COMPLEX:
        return MACHINE_CACHES;
    default:
        return MACHINE_CORES;
    }
}

/* ---- Cores and seats ---- */

static void find_left(struct work *w)
{
    const struct machine *m = w->q->machine;
    struct bitset taken = {0};
    w->left = m->allowed;
    if (!w->q->taken)
        return;
    for (int i = -1; (i = bitset_next(w->q->taken, i)) >= 0;)
        bitset_add(&taken, m->cpu[i].core);
    for (int i = -1; (i = bitset_next(&m->allowed, i)) >= 0;)
        if (bitset_has(&taken, m->cpu[i].core))
            w->left.word[i / BITSET_WORD] &= ~(1ull << i % BITSET_WORD);
}

static void number_cores(struct work *w)
{
    const struct machine *m = w->q->machine;
    int ordinal_of_core[BITSET_MAX];
    memset(ordinal_of_core, 0xff, sizeof ordinal_of_core);
    memset(w->ordinal, 0xff, sizeof w->ordinal);
    w->cores_n = 0;
    for (int node = -1; (node = bitset_next(&m->nodes, node)) >= 0;) {
        w->of_node[node].first = w->cores_n;
        for (int i = -1; (i = bitset_next(&w->usable, i)) >= 0;) {
            int *ordinal = &ordinal_of_core[m->cpu[i].core];
            if (m->cpu[i].node != node)
                continue;
            if (*ordinal < 0) {
                *ordinal = (int)w->cores_n++;
                w->node[*ordinal] = node;
            }
            w->ordinal[i] = *ordinal;
        }
        w->of_node[node].cores = w->cores_n - w->of_node[node].first;
    }
}

/* Seat i of n where no GPU says where it belongs. */
static int spread(const struct work *w, unsigned i, unsigned n)
{
    if (w->cores_n == 0)
        return bitset_next(&w->q->machine->nodes, -1);
    return w->node[(uint64_t)i * w->cores_n / n];
}

static int node_of_gpu(const struct work *w, int gpu)
{
    int node = gpu < 0 ? -1 : w->q->gpus->gpu[gpu].numa_node;
    return node < 0 || node >= BITSET_MAX ? -1 : w->q->machine->near[node];
}

static int gpu_of(const struct place_question *q, uint32_t rank)
{
    return q->gpu_set->n ? q->gpu_set->index[rank % q->gpu_set->n] : -1;
}

static void take_seats(struct work *w, bool by_gpu)
{
    w->seats_n = by_gpu ? w->q->gpus->n : w->q->ranks;
    for (int node = -1; (node = bitset_next(&w->q->machine->nodes, node)) >= 0;)
        w->of_node[node].seats = 0;
    for (unsigned i = 0; i < w->seats_n; i++) {
        int node = node_of_gpu(w, by_gpu ? (int)i : gpu_of(w->q, i));
        if (node < 0)
            node = spread(w, i, w->seats_n);
        w->seat[i] = (struct seat){.node = node, .position = w->of_node[node].seats++};
    }
}

static const struct seat *seat_of(const struct work *w, uint32_t rank)
{
    return &w->seat[w->by_gpu ? (unsigned)gpu_of(w->q, rank) : rank];
}

/* Whether every rank's GPU is one of the list: of a MIG instance nobody said which it is. */
static bool knows_gpus(const struct place_question *q)
{
    for (unsigned i = 0; i < q->gpu_set->n; i++)
        if (q->gpu_set->index[i] < 0)
            return false;
    return q->gpu_set->n > 0;
}

/* ---- CPUs of a rank ---- */

static struct bitset cpus_of_node(const struct work *w, int node)
{
    struct bitset set = {0};
    for (int i = -1; (i = bitset_next(&w->usable, i)) >= 0;)
        if (w->q->machine->cpu[i].node == node)
            bitset_add(&set, i);
    return set;
}

/* Nodes whose first usable CPU is in the same package, whole. */
static struct bitset cpus_of_socket(const struct work *w, int node)
{
    const struct machine *m = w->q->machine;
    struct bitset set = cpus_of_node(w, node);
    int first = bitset_next(&set, -1);
    for (int n = -1; first >= 0 && (n = bitset_next(&m->nodes, n)) >= 0;) {
        struct bitset more = cpus_of_node(w, n);
        int other = bitset_next(&more, -1);
        if (other >= 0 && m->cpu[other].package == m->cpu[first].package)
            bitset_or(&set, &more);
    }
    return set;
}

/* The groups of the node's CPUs that share a cache, by size and then by their first CPU, taken in turn. */
static struct bitset cpus_of_complex(const struct work *w, const struct seat *seat)
{
    const struct machine *m = w->q->machine;
    struct bitset node = cpus_of_node(w, seat->node), left = node, set = {0};
    unsigned groups = 0, size[BITSET_MAX] = {0};
    for (int i = -1; (i = bitset_next(&node, i)) >= 0;)
        groups += size[m->cpu[i].cache]++ == 0;
    for (unsigned turn = groups ? seat->position % groups + 1 : 0; turn > 0; turn--) {
        int best = -1;
        for (int i = -1; (i = bitset_next(&left, i)) >= 0;)
            if (best < 0 || size[m->cpu[i].cache] > size[best])
                best = m->cpu[i].cache;
        set = (struct bitset){0};
        for (int i = -1; (i = bitset_next(&left, i)) >= 0;)
            if (m->cpu[i].cache == best)
                bitset_add(&set, i);
        bitset_minus(&left, &set);
    }
    return set;
}

struct slice {
    unsigned first, n;
};

/* Part i of n of a slice; parts differ by at most one, the longer ones come first. */
static struct slice part_of(struct slice whole, unsigned i, unsigned n)
{
    unsigned each = whole.n / n, longer = whole.n % n;
    return (struct slice){whole.first + i * each + (i < longer ? i : longer),
                          each + (i < longer ? 1 : 0)};
}

static struct slice slice_of(const struct work *w, uint32_t rank)
{
    const struct seat *seat = seat_of(w, rank);
    struct slice node = {w->of_node[seat->node].first, w->of_node[seat->node].cores};
    unsigned seats = w->of_node[seat->node].seats;
    struct slice mine = part_of(node, seat->position, seats);
    if (w->by_gpu) { /* ranks that share the GPU */
        unsigned gpus = w->q->gpu_set->n, which = rank % gpus;
        return part_of(mine, rank / gpus, (w->q->ranks - which + gpus - 1) / gpus);
    }
    if (mine.n == 0 && node.n > 0 && w->q->affinity == AFFINITY_CORES)
        return (struct slice){node.first + seat->position % node.n, 1};
    return mine;
}

static struct bitset cpus_of_slice(const struct work *w, uint32_t rank)
{
    struct slice slice = slice_of(w, rank);
    struct bitset set = {0};
    for (int i = -1; slice.n && (i = bitset_next(&w->usable, i)) >= 0;)
        if (w->ordinal[i] >= (int)slice.first && w->ordinal[i] < (int)(slice.first + slice.n))
            bitset_add(&set, i);
    bitset_and(&set, &w->left);
    return set;
}

static struct bitset cpus_of_rank(const struct work *w, uint32_t rank)
{
    const struct seat *seat = seat_of(w, rank);
    switch (w->q->affinity) {
    case AFFINITY_NODE:
        return cpus_of_node(w, seat->node);
    case AFFINITY_SOCKET:
        return cpus_of_socket(w, seat->node);
    case AFFINITY_CORE_COMPLEX:
        return cpus_of_complex(w, seat);
    case AFFINITY_EXCLUSIVE:
    case AFFINITY_CORES:
        return cpus_of_slice(w, rank);
    default:
        return (struct bitset){0};
    }
}

/* ---- Memory and threads ---- */

static struct bitset memory_of(const struct place_question *q, const struct place *place)
{
    const struct machine *m = q->machine;
    struct bitset set = {0};
    switch (q->mem_policy) {
    case MEM_POLICY_PREFER:
        bitset_add(&set, place->node);
        break;
    case MEM_POLICY_BIND:
        bitset_add(&set, place->node);
        for (int i = -1; (i = bitset_next(&place->cpus, i)) >= 0;)
            bitset_add(&set, m->cpu[i].node);
        break;
    case MEM_POLICY_INTERLEAVE: /* never over the memory of GPUs: those nodes have no CPUs */
        for (int node = -1; (node = bitset_next(&m->nodes, node)) >= 0;)
            if (m->near[node] == node)
                bitset_add(&set, node);
        break;
    default:
        break;
    }
    bitset_and(&set, &m->memory);
    return set;
}

static unsigned cores_in(const struct work *w, const struct bitset *cpus)
{
    unsigned n = 0;
    struct bitset seen = {0};
    for (int i = -1; (i = bitset_next(cpus, i)) >= 0; bitset_add(&seen, w->ordinal[i]))
        n += !bitset_has(&seen, w->ordinal[i]);
    return n;
}

/* Sets of a mode are the same or have nothing in common, so the first CPU stands for the set. A quota bounds, too. */
static void share_threads(const struct work *w, struct place *places)
{
    const struct place_question *q = w->q;
    unsigned sharers[BITSET_MAX] = {0};
    for (uint32_t rank = 0; rank < q->ranks; rank++)
        if (!bitset_empty(&places[rank].cpus))
            sharers[bitset_next(&places[rank].cpus, -1)]++;
    for (uint32_t rank = 0; rank < q->ranks; rank++) {
        struct place *place = &places[rank];
        unsigned share = q->cpus / q->ranks;
        if (!bitset_empty(&place->cpus))
            share = cores_in(w, &place->cpus) / w->q->machine->threads /
                    sharers[bitset_next(&place->cpus, -1)];
        if (share > q->quota / q->ranks)
            share = q->quota / q->ranks;
        place->threads = share ? share : 1;
    }
}

/* ---- All together ---- */

/* Divides among GPUs or ranks. A GPU's part must not depend on what other jobs have, so theirs is taken off afterwards. */
static void lay_out(struct work *w, struct place *places, bool by_gpu)
{
    w->by_gpu = by_gpu;
    w->usable = by_gpu ? w->q->machine->allowed : w->left;
    number_cores(w);
    take_seats(w, by_gpu);
    for (uint32_t rank = 0; rank < w->q->ranks; rank++) {
        struct place *place = &places[rank];
        *place = (struct place){.gpu = gpu_of(w->q, rank), .node = seat_of(w, rank)->node};
        place->cpus = cpus_of_rank(w, rank);
        place->memory = memory_of(w->q, place);
    }
}

static bool node_has_allowed(const struct work *w, int node)
{
    const struct machine *m = w->q->machine;
    for (int i = -1; (i = bitset_next(&m->allowed, i)) >= 0;)
        if (m->cpu[i].node == node)
            return true;
    return false;
}

/* A rank without a core, on a node that has some. ranks: there is none. */
static uint32_t coreless(const struct work *w, const struct place *places)
{
    uint32_t rank = 0;
    while (rank < w->q->ranks &&
           (!bitset_empty(&places[rank].cpus) || !node_has_allowed(w, places[rank].node)))
        rank++;
    return rank;
}

static void write_note(const struct work *w, const struct place *places,
                       char note[PLACE_NOTE_BYTES])
{
    const struct place_question *q = w->q;
    note[0] = '\0';
    for (uint32_t rank = 0; rank < q->ranks && !note[0]; rank++) {
        const struct place *place = &places[rank];
        if (q->affinity != AFFINITY_NONE && bitset_empty(&place->cpus))
            snprintf(note, PLACE_NOTE_BYTES,
                     "rank %u is not bound: it belongs to NUMA node %d, of which this process may "
                     "use no CPU",
                     rank, place->node);
        else if (q->mem_policy != MEM_POLICY_NONE && bitset_empty(&place->memory))
            snprintf(note, PLACE_NOTE_BYTES,
                     "rank %u has no memory policy: it belongs to NUMA node %d, of which this "
                     "process may use no memory",
                     rank, place->node);
    }
}

static int explain_coreless(const struct work *w, const struct place *place, struct err *err)
{
    unsigned ranks = w->of_node[place->node].seats, cores = w->of_node[place->node].cores;
    bool others = w->q->taken && !bitset_empty(w->q->taken);
    return err_set(
        err, -EINVAL,
        "--affinity=exclusive: %u rank%s to NUMA node %d, which has %u core%s for them%s; start "
        "fewer, or let them share with --affinity=cores",
        ranks, ranks == 1 ? " belongs" : "s belong", place->node, cores, cores == 1 ? "" : "s",
        others ? " (other jobs have some)" : "");
}

static int place_all(struct work *w, struct place *places, struct err *err)
{
    find_left(w);
    bool exclusive = w->q->affinity == AFFINITY_EXCLUSIVE;
    lay_out(w, places, knows_gpus(w->q) && w->q->affinity != AFFINITY_CORES);
    if (exclusive && w->by_gpu && coreless(w, places) < w->q->ranks)
        lay_out(w, places, false);
    uint32_t poor = exclusive ? coreless(w, places) : w->q->ranks;
    if (poor < w->q->ranks)
        return explain_coreless(w, &places[poor], err);
    share_threads(w, places);
    return 0;
}

int place_ranks(struct place *places, const struct place_question *q, char note[PLACE_NOTE_BYTES],
                struct err *err)
{
    struct work *w = calloc(1, sizeof *w);
    unsigned seats = q->ranks > GPU_MAX ? q->ranks : GPU_MAX;
    if (w)
        w->seat = calloc(seats, sizeof *w->seat);
    int rc = -ENOMEM;
    if (w && w->seat) {
        w->q = q;
        rc = place_all(w, places, err);
        if (rc == 0)
            write_note(w, places, note);
    } else {
        err_set_errno(err, rc, "places of %u ranks", q->ranks);
    }
    if (w)
        free(w->seat);
    free(w);
    return rc;
}
