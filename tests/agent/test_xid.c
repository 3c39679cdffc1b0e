/* SPDX-License-Identifier: MIT */
#include "../../agent/xid.h"
#include "../../proto/base.h"
#include "../harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define MMU                                                                                        \
    "4,812,5000000,-;NVRM: Xid (PCI:0000:18:00): 31, pid=4711, name=python, Ch 00000008, MMU "     \
    "Fault\n"
#define LOST                                                                                       \
    "3,1,9,-;NVRM: Xid (PCI:0000:65:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off " \
    "the bus.\n"

static struct xid found[8];
static unsigned n;

static void note(void *user, const struct xid *xid)
{
    (void)user;
    if (n < ARRAY_LEN(found))
        found[n] = *xid;
    n++;
}

/* What is read of a log to which that was added after it was opened. */
static unsigned read_of(const char *before, const char *after)
{
    char path[600];
    test_write("dev/kmsg", before);
    int fd = xid_open(test_dir(), true);
    CHECK_INT(fd, >=, 0);
    snprintf(path, sizeof path, "%s/dev/kmsg", test_dir());
    FILE *log = fopen(path, "a");
    CHECK(log && fputs(after, log) >= 0 && fclose(log) == 0);
    n = 0;
    xid_read(fd, note, NULL);
    close(fd);
    return n;
}

TEST(an_xid_is_read_with_its_gpu_and_the_process_that_the_driver_names)
{
    CHECK_INT(read_of("", MMU), ==, 1);
    CHECK_INT(found[0].fault.source, ==, GPU_FAULT_XID);
    CHECK_INT(found[0].fault.code, ==, 31);
    CHECK_STR(found[0].pci, "0000:18:00");
    CHECK_INT(found[0].pid, ==, 4711);
    CHECK_INT(found[0].at_us, ==, 5000000);
    CHECK(xid_is_of(&found[0], "0000:18:00.0"));
    CHECK(!xid_is_of(&found[0], "0000:19:00.0"));
}

TEST(one_that_is_ascribed_to_nobody_is_read_too_and_several_in_their_order)
{
    CHECK_INT(read_of("", MMU LOST " SUBSYSTEM=pci\n" MMU), ==, 3);
    CHECK_INT(found[1].fault.code, ==, 79);
    CHECK_INT(found[1].pid, ==, 0);
    CHECK_INT(found[2].fault.code, ==, 31);
}

TEST(what_was_there_before_the_log_was_opened_is_no_news_unless_it_is_asked_for)
{
    test_write("dev/kmsg", LOST MMU);
    int fd = xid_open(test_dir(), false);
    xid_read(fd, note, NULL);
    close(fd);
    CHECK_INT(n, ==, 2);
    CHECK_INT(read_of(MMU LOST, ""), ==, 0);
    CHECK_INT(read_of(LOST, MMU), ==, 1);
    CHECK_INT(found[0].fault.code, ==, 31);
}

TEST(a_change_of_the_recovery_action_is_that_action)
{
    CHECK_INT(
        read_of("", "3,1,9,-;NVRM: Xid (PCI:0000:65:00): 154, GPU recovery action changed from 0x0 "
                    "(None) to 0x2 (Node Reboot Required)\n"),
        ==, 1);
    CHECK_INT(found[0].fault.source, ==, GPU_FAULT_RECOVERY);
    CHECK_INT(found[0].fault.code, ==, 2);
    CHECK_INT(read_of("", "3,1,9,-;NVRM: Xid (PCI:0000:65:00): 154, GPU recovery\n"), ==, 1);
    CHECK_INT(found[0].fault.source, ==, GPU_FAULT_XID);
}

TEST(other_lines_and_garbage_are_no_xid)
{
    static const char *const lines[] = {
        "6,1,5,-;usb 1-1: new device\n",    "NVRM: Xid (PCI:0000:18:00): 31, pid=1\n",
        "6,1,5,-;NVRM: Xid (PCI:zz): 31\n", "6,1,5,-;NVRM: Xid (PCI:0000:18:00): \n",
        " DEVICE=;NVRM: Xid (PCI:\n",       ";\n;;;;\n\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(lines); i++)
        CHECK_INT(read_of("", lines[i]), ==, 0);
    CHECK_INT(xid_open("/no/such/dir", true), ==, -ENOENT);
    xid_read(-1, note, NULL);
}

TEST(a_short_name_of_a_gpu_means_none)
{
    struct xid xid = {.pci = "0"};
    CHECK(!xid_is_of(&xid, "0000:18:00.0"));
}
