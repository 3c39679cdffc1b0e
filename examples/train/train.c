/* SPDX-License-Identifier: MIT */
/* Data-parallel training that goes on when ranks are killed: a small network learns a function of 8 numbers from samples that
 * are made up from their own number, so that every rank can make any of them again.
 *
 *     train [STEPS]
 *
 * Each rank computes the gradient over its part of a batch; the sum over all ranks, formed in order of rank, moves the same
 * weights everywhere. What a lost rank knew, every other one knows as well: its successor gets it from them. Hence the loss
 * at the end is the same to the last bit, however many ranks were lost on the way.
 *
 * With GPUs the sum is NCCL's, whose order may be another one after a loss, and the model is kept in device memory: as a real
 * one would be, though in plain C the arithmetic stays on the host. */
#include "launch.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef LAUNCH_WITH_NCCL
#include "launch_nccl.h"
#endif

enum { INPUTS = 8, HIDDEN = 32, WEIGHTS = HIDDEN * (INPUTS + 2) + 1, BATCH = 256 };

#define RATE 0.02f
#define MOMENTUM 0.9f

/* All that training knows. The same on all ranks after each step. */
struct model {
    uint64_t step;
    float loss; /* of the batch before */
    float weight[WEIGHTS], speed[WEIGHTS];
};

/* Of one rank, to be summed over all. */
struct gradient {
    float weight[WEIGHTS];
    float loss;
};

static struct model model;

#ifdef LAUNCH_WITH_NCCL
/* In device memory; NULL: there is no GPU. */
static struct model *device_model;
static struct gradient *device_gradient;
#endif

/* ---- samples ---- */

/* splitmix64: a number's own random number. */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* From -1 to 1. */
static float uniform(uint64_t seed)
{
    return (float)(mix(seed) >> 40) / (float)(1 << 23) - 1;
}

static float make_sample(uint64_t number, float x[INPUTS])
{
    for (int i = 0; i < INPUTS; i++)
        x[i] = uniform(number * INPUTS + (uint64_t)i);
    return x[0] * x[1] + x[2] * x[3] - x[4] + 0.5f * x[5] * x[6] * x[7];
}

/* ---- the network: y = v * softsign(W x + b) + c ---- */

static float softsign(float a)
{
    return a / (1 + (a < 0 ? -a : a));
}

/* Adds one sample's part to the gradient. Weights of a hidden unit: INPUTS of W, one of b, one of v. */
static void learn_from(uint64_t number, struct gradient *g)
{
    float x[INPUTS], hidden[HIDDEN], y = model.weight[WEIGHTS - 1];
    float wanted = make_sample(number, x);
    for (int h = 0; h < HIDDEN; h++) {
        const float *w = &model.weight[h * (INPUTS + 2)];
        float a = w[INPUTS];
        for (int i = 0; i < INPUTS; i++)
            a += w[i] * x[i];
        hidden[h] = softsign(a);
        y += w[INPUTS + 1] * hidden[h];
    }
    float error = y - wanted;
    g->loss += error * error;
    g->weight[WEIGHTS - 1] += error;
    for (int h = 0; h < HIDDEN; h++) {
        const float *w = &model.weight[h * (INPUTS + 2)];
        float *d = &g->weight[h * (INPUTS + 2)];
        float slope = 1 - (hidden[h] < 0 ? -hidden[h] : hidden[h]);
        float back = error * w[INPUTS + 1] * slope * slope;
        d[INPUTS + 1] += error * hidden[h];
        d[INPUTS] += back;
        for (int i = 0; i < INPUTS; i++)
            d[i] += back * x[i];
    }
}

/* ---- training ---- */

static void begin(void)
{
    for (uint64_t i = 0; i < WEIGHTS; i++)
        model.weight[i] = 0.5f * uniform(~i);
}

static void move_weights(const struct gradient *sum)
{
    for (int i = 0; i < WEIGHTS; i++) {
        model.speed[i] = MOMENTUM * model.speed[i] - RATE * sum->weight[i] / BATCH;
        model.weight[i] += model.speed[i];
    }
    model.loss = sum->loss / BATCH;
    model.step++;
}

#ifdef LAUNCH_WITH_NCCL
static int check(struct launch *l, cudaError_t e)
{
    return e == cudaSuccess ? LAUNCH_OK
                            : launch_fail(l, LAUNCH_FAILED, "CUDA: %s", cudaGetErrorString(e));
}

static int open_device(struct launch *l)
{
    int r = check(l, cudaSetDevice(launch_device(l)));
    if (r == LAUNCH_OK)
        r = check(l, cudaMalloc((void **)&device_model, sizeof model));
    if (r == LAUNCH_OK)
        r = check(l, cudaMalloc((void **)&device_gradient, sizeof *device_gradient));
    if (r == LAUNCH_OK)
        r = check(l, cudaMemcpy(device_model, &model, sizeof model, cudaMemcpyHostToDevice));
    return r == LAUNCH_OK ? launch_nccl_keep(l, device_model, sizeof model) : r;
}

static int sum_on_device(struct launch *l, const struct gradient *mine, struct gradient *sum)
{
    float *data = (float *)device_gradient;
    ncclComm_t comm;
    cudaStream_t stream;
    int r = launch_nccl_comm(l, &comm, &stream); /* a new one after a loss */
    if (r == LAUNCH_OK)
        r = check(l, cudaMemcpy(data, mine, sizeof *mine, cudaMemcpyHostToDevice));
    if (r == LAUNCH_OK)
        r = launch_nccl_call(l, ncclAllReduce(data, data, sizeof *mine / sizeof(float), ncclFloat,
                                              ncclSum, comm, stream));
    if (r == LAUNCH_OK)
        r = launch_nccl_wait(l);
    if (r == LAUNCH_OK)
        r = check(l, cudaMemcpy(sum, data, sizeof *sum, cudaMemcpyDeviceToHost));
    return r;
}
#endif

static int sum_up(struct launch *l, const struct gradient *mine, struct gradient *sum)
{
#ifdef LAUNCH_WITH_NCCL
    if (device_model)
        return sum_on_device(l, mine, sum);
#endif
    return launch_all_reduce(l, mine, sum, sizeof *mine / sizeof(float), LAUNCH_FLOAT, LAUNCH_SUM);
}

/* The model as launch_meet() has left it. */
static int fetch(struct launch *l)
{
#ifdef LAUNCH_WITH_NCCL
    if (device_model)
        return check(l, cudaMemcpy(&model, device_model, sizeof model, cudaMemcpyDeviceToHost));
#endif
    (void)l;
    return LAUNCH_OK;
}

static int store(struct launch *l)
{
#ifdef LAUNCH_WITH_NCCL
    if (device_model)
        return check(l, cudaMemcpy(device_model, &model, sizeof model, cudaMemcpyHostToDevice));
#endif
    (void)l;
    return LAUNCH_OK;
}

/* The model changes at the end only: a step that is cut short has changed nothing. */
static int train_step(struct launch *l)
{
    struct gradient mine = {.loss = 0}, sum;
    uint64_t first = model.step * BATCH;
    for (int i = launch_rank(l); i < BATCH; i += launch_world_size(l))
        learn_from(first + (uint64_t)i, &mine);
    int r = sum_up(l, &mine, &sum);
    if (r != LAUNCH_OK)
        return r;
    move_weights(&sum);
    r = store(l);
    return r == LAUNCH_OK ? launch_commit(l, model.step) : r;
}

static void print_progress(uint64_t steps)
{
    if (model.step % 100 && model.step != steps)
        return;
    printf("step %llu: loss %.6f %a\n", (unsigned long long)model.step, (double)model.loss,
           (double)model.loss);
    fflush(stdout);
}

/* What a new process needs. */
static int keep(struct launch *l)
{
    begin();
#ifdef LAUNCH_WITH_NCCL
    if (launch_device(l) >= 0)
        return open_device(l);
#endif
    return launch_keep(l, &model, sizeof model);
}

int launch_main(struct launch *l, int argc, char **argv)
{
    uint64_t steps = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
    int r = keep(l);
    if (r != LAUNCH_OK)
        return r;
    do {
        r = launch_meet(l); /* all ranks have the same model now */
        if (r == LAUNCH_OK)
            r = fetch(l);
        while (r == LAUNCH_OK && model.step < steps) {
            r = train_step(l);
            if (launch_rank(l) == 0 && r == LAUNCH_OK)
                print_progress(steps);
        }
    } while (r == LAUNCH_AGAIN); /* a rank was lost */
    return r;
}
