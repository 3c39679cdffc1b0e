/* SPDX-License-Identifier: MIT */
#include "../../agent/xid.h"
#include "../harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* One record a file: the kernel gives one a read. */
static bool find(const char *record, pid_t pid, uint64_t since_ns, struct xid *ret)
{
    test_write("dev/kmsg", record);
    return xid_find(test_dir(), pid, since_ns, ret);
}

#define MMU                                                                                        \
    "4,812,5000000,-;NVRM: Xid (PCI:0000:18:00): 31, pid=4711, name=python, Ch 00000008, MMU "     \
    "Fault\n"

TEST(an_xid_of_the_process_is_found_with_its_gpu_and_meaning)
{
    struct xid xid;
    CHECK(find(MMU, 4711, 4000000000, &xid));
    CHECK_INT(xid.number, ==, 31);
    CHECK_STR(xid.pci, "0000:18:00");
    CHECK(xid.by_process);
    char what[200] = "was killed by SIGABRT";
    xid_explain(&xid, what, sizeof what);
    CHECK_STR(
        what,
        "was killed by SIGABRT, after Xid 31 (access to GPU memory that is not mapped) of GPU "
        "0000:18:00");
}

TEST(an_xid_of_another_process_is_told_as_such_and_an_unknown_number_without_meaning)
{
    struct xid xid;
    CHECK(find(MMU, 1, 0, &xid));
    CHECK(!xid.by_process);
    CHECK(find("3,1,9,-;NVRM: Xid (PCI:0000:65:00): 777, pid='<unknown>', name=<unknown>\n", 1, 0,
               &xid));
    char what[200] = "exited with code 1";
    xid_explain(&xid, what, sizeof what);
    CHECK_STR(what,
              "exited with code 1, after Xid 777 of GPU 0000:65:00, which the driver does not "
              "ascribe to it");
}

TEST(an_older_xid_other_lines_and_garbage_are_no_xid)
{
    struct xid xid;
    CHECK(!find(MMU, 4711, 6000000000, &xid));
    CHECK(!find("6,1,5,-;usb 1-1: new device\n", 1, 0, &xid));
    CHECK(!find("NVRM: Xid (PCI:0000:18:00): 31, pid=1\n", 1, 0, &xid));
    CHECK(!find("6,1,5,-;NVRM: Xid (PCI:zz): 31\n", 1, 0, &xid));
    CHECK(!find("6,1,5,-;NVRM: Xid (PCI:0000:18:00): \n", 1, 0, &xid));
    CHECK(!find("", 1, 0, &xid));
    CHECK(!xid_find("/no/such/dir", 1, 0, &xid));
}

TEST(an_explanation_never_outgrows_its_place)
{
    struct xid xid;
    CHECK(find(MMU, 4711, 0, &xid));
    for (size_t size = 5; size < 60; size++) {
        char what[64] = "died";
        xid_explain(&xid, what, size);
        CHECK(strlen(what) < size);
    }
}
