/* SPDX-License-Identifier: MIT */
#include "../../agent/gpu_fault.h"
#include "../harness.h"

static enum gpu_fault_class xid(uint32_t code)
{
    return gpu_fault_class((struct gpu_fault){GPU_FAULT_XID, code});
}

/* Whether a number is in a list that ends with 0. */
static bool in(const uint32_t *list, uint32_t code)
{
    while (*list && *list != code)
        list++;
    return *list != 0;
}

TEST(every_xid_is_of_the_class_that_was_decided_and_all_others_are_transient)
{
    static const uint32_t application[] = {13, 31, 32, 43, 45, 69, 0};
    static const uint32_t gpu[] = {48, 62, 64, 74, 95, 119, 120, 140, 0};
    static const uint32_t node[] = {79, 0};
    for (uint32_t code = 0; code < 1000; code++) {
        enum gpu_fault_class want = in(application, code) ? GPU_FAULT_APPLICATION
                                    : in(gpu, code)       ? GPU_FAULT_GPU
                                    : in(node, code)      ? GPU_FAULT_NODE
                                                          : GPU_FAULT_TRANSIENT;
        CHECK_INT(xid(code), ==, want);
    }
}

TEST(every_event_of_nvml_has_its_class)
{
    for (unsigned bit = 0; bit < 32; bit++) {
        uint32_t code = 1u << bit;
        enum gpu_fault_class want = code == GPU_FAULT_UNREACHABLE ? GPU_FAULT_NODE
                                    : code == 0x2 || code == 0x800 || code == 0x2000
                                        ? GPU_FAULT_GPU
                                        : GPU_FAULT_TRANSIENT;
        CHECK_INT(gpu_fault_class((struct gpu_fault){GPU_FAULT_EVENT, code}), ==, want);
    }
}

TEST(every_recovery_action_but_none_is_fatal_known_or_not)
{
    CHECK_INT(gpu_fault_class((struct gpu_fault){GPU_FAULT_RECOVERY, 0}), ==, GPU_FAULT_TRANSIENT);
    for (uint32_t action = 1; action < 100; action++) {
        bool node = action == 2 || action == 5 || action == 7;
        CHECK_INT(gpu_fault_class((struct gpu_fault){GPU_FAULT_RECOVERY, action}), ==,
                  node ? GPU_FAULT_NODE : GPU_FAULT_GPU);
    }
}

TEST(every_fault_has_a_text_that_fits_and_those_of_the_table_say_what_they_mean)
{
    char text[GPU_FAULT_TEXT_BYTES];
    for (enum gpu_fault_source source = 0; source < GPU_FAULT_SOURCES_N; source++) {
        for (uint32_t code = 0; code < 0x5000; code++) {
            struct gpu_fault fault = {source, code};
            const char *meaning = gpu_fault_meaning(fault);
            gpu_fault_text(fault, text);
            CHECK(strlen(text) < sizeof text - 1);
            CHECK(!meaning || (strstr(text, meaning) && text[strlen(text) - 1] == ')'));
        }
    }
    CHECK_STR(gpu_fault_text((struct gpu_fault){GPU_FAULT_XID, 79}, text),
              "Xid 79 (the GPU has fallen off the bus)");
    CHECK_STR(gpu_fault_text((struct gpu_fault){GPU_FAULT_XID, 777}, text), "Xid 777");
    CHECK_STR(gpu_fault_text((struct gpu_fault){GPU_FAULT_EVENT, 0x2}, text),
              "NVML event 0x2 (a double-bit memory error)");
    CHECK_STR(gpu_fault_text((struct gpu_fault){GPU_FAULT_RECOVERY, 1}, text),
              "recovery action 1 (the GPU is to be reset)");
}
