/* SPDX-License-Identifier: MIT */
/* See nvml.h. Events where NVML has them; the action that the driver wants is asked for, too, as an event may be missed, and
 * drivers before 570 and virtual machines have none. */
#include "gpu_fault.h"
#include "nvml.h"
#include "nvml_lib.h"

#include <dlfcn.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#define ASK_EVERY_MS 5000
#define GPUS_MAX 64

/* NVML's numbers. */
#define TIMEOUT 10
#define GPU_IS_LOST 15
#define EVENT_XID 0x8ull
#define EVENT_RECOVERY 0x8000ull
#define EVENTS (0x2ull | EVENT_XID | 0x400 | 0x800 | 0x1000 | 0x2000 | 0x4000 | EVENT_RECOVERY)
#define FIELD_RECOVERY 230

struct event {
    nvml_device device;
    unsigned long long type, data;
    unsigned gpu_instance, compute_instance;
};

struct listening {
    struct nvml_lib lib;
    int (*create)(void **set);
    int (*supported)(nvml_device device, unsigned long long *types);
    int (*listen)(nvml_device device, unsigned long long types, void *set);
    int (*wait)(void *set, struct event *event, unsigned timeout_ms);
    int (*fields)(nvml_device device, int n, struct nvml_field *fields);
    void *set; /* NULL: there are no events */
    int fd;
    unsigned n;
    nvml_device device[GPUS_MAX];
    bool gone[GPUS_MAX];       /* not to be asked any more */
    uint32_t action[GPUS_MAX]; /* that was told */
};

static void tell(const struct listening *l, unsigned gpu, enum gpu_fault_source source,
                 uint32_t code)
{
    struct nvml_news news = {.gpu = gpu, .source = source, .code = code};
    if (write(l->fd, &news, sizeof news) != (ssize_t)sizeof news)
        _exit(0);
}

static void note_result(struct listening *l, unsigned gpu, int rc)
{
    if (rc == GPU_IS_LOST && !l->gone[gpu])
        tell(l, gpu, GPU_FAULT_EVENT, GPU_FAULT_UNREACHABLE);
    l->gone[gpu] |= rc != NVML_SUCCESS;
}

static void attach(struct listening *l, const char *const *pci)
{
    unsigned listened = 0;
    if (!l->create || !l->listen || !l->wait || l->create(&l->set) != NVML_SUCCESS)
        l->set = NULL;
    for (unsigned i = 0; i < l->n; i++) {
        unsigned long long types = EVENTS;
        note_result(l, i, l->lib.by_pci(pci[i], &l->device[i]));
        if (l->gone[i] || !l->set)
            continue;
        if (l->supported && l->supported(l->device[i], &types) == NVML_SUCCESS)
            types &= EVENTS;
        listened += types && l->listen(l->device[i], types, l->set) == NVML_SUCCESS;
    }
    if (!listened)
        l->set = NULL;
}

static void ask_actions(struct listening *l)
{
    for (unsigned i = 0; i < l->n; i++) {
        struct nvml_field field = {.id = FIELD_RECOVERY};
        if (l->gone[i] || !l->fields)
            continue;
        int rc = l->fields(l->device[i], 1, &field);
        if (rc == GPU_IS_LOST || field.result == GPU_IS_LOST)
            note_result(l, i, GPU_IS_LOST);
        if (rc != NVML_SUCCESS || field.result != NVML_SUCCESS || field.value.u32 == l->action[i])
            continue;
        l->action[i] = field.value.u32;
        if (l->action[i])
            tell(l, i, GPU_FAULT_RECOVERY, l->action[i]);
    }
}

static void take_event(struct listening *l, const struct event *event)
{
    for (unsigned i = 0; i < l->n; i++) {
        if (l->gone[i] || l->device[i] != event->device)
            continue;
        if (event->type == EVENT_XID)
            tell(l, i, GPU_FAULT_XID, (uint32_t)event->data);
        else if (event->type != EVENT_RECOVERY) /* which one it is will be asked */
            tell(l, i, GPU_FAULT_EVENT, (uint32_t)event->type);
    }
}

_Noreturn void nvml_event_helper(int fd, const char *sysroot, const char *const *pci, unsigned n)
{
    static struct listening l; /* several KiB; zero */
    l.fd = fd;
    l.n = n < GPUS_MAX ? n : GPUS_MAX;
    if (!nvml_lib_open(&l.lib, sysroot) || l.lib.init() != NVML_SUCCESS)
        _exit(1);
    *(void **)&l.create = dlsym(l.lib.handle, "nvmlEventSetCreate");
    *(void **)&l.supported = dlsym(l.lib.handle, "nvmlDeviceGetSupportedEventTypes");
    *(void **)&l.listen = dlsym(l.lib.handle, "nvmlDeviceRegisterEvents");
    *(void **)&l.wait = dlsym(l.lib.handle, "nvmlEventSetWait_v2");
    *(void **)&l.fields = dlsym(l.lib.handle, "nvmlDeviceGetFieldValues");
    attach(&l, pci);
    for (;;) {
        struct event event;
        ask_actions(&l);
        int rc = l.set ? l.wait(l.set, &event, ASK_EVERY_MS) : TIMEOUT;
        if (rc == NVML_SUCCESS)
            take_event(&l, &event);
        else if (rc != TIMEOUT || !l.set)
            poll(NULL, 0, ASK_EVERY_MS); /* a wait that fails at once is not repeated at once */
    }
}
