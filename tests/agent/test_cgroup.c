/* SPDX-License-Identifier: MIT */
/* Finding the place for a leaf in invented trees; a real leaf where one can be had. */
#include "../../agent/cgroup.h"
#include "../../agent/oom.h"
#include "../harness.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char path[PATH_MAX];

static const char *below(const char *rest)
{
    static char text[PATH_MAX];
    snprintf(text, sizeof text, "%s%s", test_dir(), rest);
    return text;
}

TEST(our_cgroup_is_found_in_either_hierarchy)
{
    test_write("proc/self/cgroup", "5:name=x:/a\n4:cpu,memory:/m/1\n0::/u/s.slice\n");
    CHECK(!cgroup_own(path, test_dir(), NULL));
    test_write("sys/fs/cgroup/unified/u/s.slice/cgroup.procs", "");
    CHECK(cgroup_own(path, test_dir(), NULL));
    CHECK_STR(path, below("/sys/fs/cgroup/unified/u/s.slice"));
    test_write("sys/fs/cgroup/u/s.slice/cgroup.procs", "");
    CHECK(cgroup_own(path, test_dir(), NULL));
    CHECK_STR(path, below("/sys/fs/cgroup/u/s.slice"));
    CHECK(!cgroup_own(path, test_dir(), "memory"));
    test_write("sys/fs/cgroup/memory/m/1/cgroup.procs", "");
    CHECK(cgroup_own(path, test_dir(), "memory"));
    CHECK_STR(path, below("/sys/fs/cgroup/memory/m/1"));
    CHECK(!cgroup_own(path, test_dir(), "mem"));
    test_write("proc/self/cgroup", "0::/\n");
    test_write("sys/fs/cgroup/cgroup.procs", "");
    CHECK(cgroup_own(path, test_dir(), NULL));
    CHECK_STR(path, below("/sys/fs/cgroup"));
}

TEST(a_container_that_shows_the_host_s_path_is_at_its_mount_if_it_lists_us)
{
    char pid[32];
    test_write("proc/self/cgroup", "4:memory:/kubepods/x\n");
    test_write("sys/fs/cgroup/memory/cgroup.procs", "1\n2\n");
    CHECK(!cgroup_own(path, test_dir(), "memory"));
    snprintf(pid, sizeof pid, "1\n%d\n", getpid());
    test_write("sys/fs/cgroup/memory/cgroup.procs", pid);
    CHECK(cgroup_own(path, test_dir(), "memory"));
    CHECK_STR(path, below("/sys/fs/cgroup/memory"));
}

TEST(nonsense_is_no_cgroup)
{
    static const char *const bad[] = {"", "\n", "0::", "0:/", "::\n", "0::/../x\n", "0::x\n"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        test_write("proc/self/cgroup", bad[i]);
        test_write("sys/fs/cgroup/x/cgroup.procs", "");
        CHECK(!cgroup_own(path, test_dir(), NULL));
        CHECK(!cgroup_own(path, test_dir(), "memory"));
    }
}

TEST(a_leaf_is_made_and_removed_with_what_is_below_it)
{
    struct cgroup c;
    struct stat st;
    test_write("proc/self/cgroup", "0::/s\n");
    test_write("sys/fs/cgroup/s/cgroup.procs", "");
    cgroup_find(&c, test_dir(), "my.run");
    CHECK_INT(c.parent_fd, >=, 0);
    CHECK_INT(c.fd, <, 0);
    CHECK(strncmp(c.name, "launch-my.run-", 14) == 0);
    cgroup_create(&c);
    CHECK_INT(c.fd, >, 2);
    CHECK_INT(mkdirat(c.fd, "a", 0755), ==, 0);
    CHECK_INT(mkdirat(c.fd, "a/b", 0755), ==, 0);
    CHECK(cgroup_remove(&c));
    CHECK_INT(fstatat(c.parent_fd, c.name, &st, 0), <, 0);
    CHECK(cgroup_remove(&c)); /* by the other one of guard and agent */
    CHECK(!cgroup_kill(&c));
    cgroup_close(&c);
    cgroup_close(&c);
    CHECK(cgroup_remove(&c));
}

TEST(without_the_right_to_move_processes_there_is_no_leaf)
{
    struct cgroup c;
    test_write("proc/self/cgroup", "0::/s\n");
    test_write("sys/fs/cgroup/s/cgroup.procs", "");
    chmod(below("/sys/fs/cgroup/s/cgroup.procs"), 0444);
    chmod(test_dir(), 0755);
    uid_t was = geteuid();
    if (was == 0)
        CHECK_INT(seteuid(54321), ==, 0); /* root may write everywhere */
    CHECK(cgroup_own(path, test_dir(), NULL));
    cgroup_find(&c, test_dir(), "x");
    CHECK_INT(c.parent_fd, <, 0);
    cgroup_create(&c);
    CHECK_INT(c.fd, <, 0);
    cgroup_close(&c);
    CHECK_INT(seteuid(was), ==, 0);
}

TEST(everything_in_a_real_leaf_dies_at_once)
{
    struct cgroup c;
    cgroup_find(&c, "", "unit");
    cgroup_create(&c);
    if (c.fd < 0)
        test_skip("no cgroup v2 leaf can be had here");
    int go[2];
    CHECK_INT(pipe(go), ==, 0);
    pid_t pid = fork();
    if (pid == 0) {
        char text[24];
        int procs = openat(c.fd, "cgroup.procs", O_WRONLY);
        snprintf(text, sizeof text, "%d", getpid());
        bool in = write(procs, text, strlen(text)) > 0;
        for (int i = 0; in && i < 20; i++)
            if (fork() == 0)
                setsid();
        if (write(go[1], "", 1) != 1 || !in)
            _exit(1);
        for (;;)
            pause();
    }
    char byte;
    CHECK_INT(read(go[0], &byte, 1), ==, 1);
    close(go[1]);
    bool killed = cgroup_kill(&c);
    kill(pid, SIGKILL);
    int status;
    waitpid(pid, &status, 0);
    while (killed && read(go[0], &byte, 1) > 0) /* at its end when the last of them is gone */
        continue;
    CHECK(cgroup_remove(&c));
    cgroup_close(&c);
    if (!killed)
        test_skip("no cgroup.kill (Linux 5.14)");
}

/* ---- the counter of out-of-memory kills ---- */

static struct oom oom;
static struct cgroup leaf = {.parent_fd = -1, .fd = -1};
static char what[300];

static const char *explain(bool killed, const char *before)
{
    snprintf(what, sizeof what, "%s", before);
    oom_explain(&oom, killed, what, sizeof what);
    return what;
}

TEST(a_counter_that_moved_is_told_once)
{
    test_write("proc/self/cgroup", "4:memory:/m\n0::/s/t\n");
    test_write("sys/fs/cgroup/s/t/cgroup.procs", "");
    test_write("sys/fs/cgroup/s/memory.events", "low 0\noom 9\noom_kill 3\noom_group_kill 0\n");
    oom_open(&oom, test_dir(), &leaf);
    CHECK_STR(explain(true, "died"), "died");
    test_write("sys/fs/cgroup/s/memory.events", "low 0\noom 9\noom_kill 4\noom_group_kill 0\n");
    CHECK_HAS(explain(true, "died"), "out-of-memory killer, with SIGKILL (oom_kill of ");
    CHECK_HAS(what, "/sys/fs/cgroup/s went from 3 to 4)");
    CHECK_STR(explain(true, "died"), "died");
    test_write("sys/fs/cgroup/s/memory.events", "oom_kill 6\n");
    CHECK_HAS(explain(false, "exited with code 3"), "exited with code 3, after the kernel's");
    CHECK_HAS(what, "went from 4 to 6");
    test_write("sys/fs/cgroup/s/memory.events", "oom_kill 7\n");
    oom_rebase(&oom, test_dir(), &leaf);
    CHECK_STR(explain(true, "died"), "died");
    test_write("sys/fs/cgroup/s/memory.events", "oom_kill x\n");
    CHECK_STR(explain(true, "died"), "died");
    oom_close(&oom);
    CHECK_STR(explain(true, "died"), "died");
    oom_close(&oom);
}

TEST(a_leaf_made_anew_has_a_counter_of_its_own)
{
    struct cgroup mine = {.parent_fd = -1, .name = "leaf"};
    test_write("leaf/memory.events", "oom_kill 5\n");
    mine.fd = open(below("/leaf"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    oom_open(&oom, test_dir(), &mine);
    /* as cgroup_renew() does */
    CHECK_INT(unlink(below("/leaf/memory.events")), ==, 0);
    CHECK_INT(rmdir(below("/leaf")), ==, 0);
    close(mine.fd);
    test_write("leaf/memory.events", "oom_kill 0\n");
    mine.fd = open(below("/leaf"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    oom_rebase(&oom, test_dir(), &mine);
    CHECK_STR(explain(true, "died"), "died");
    test_write("leaf/memory.events", "oom_kill 1\n");
    CHECK_HAS(explain(true, "died"), "oom_kill of leaf went from 0 to 1");
    oom_close(&oom);
    close(mine.fd);
}

TEST(the_old_hierarchy_has_a_counter_too)
{
    test_write("proc/self/cgroup", "4:memory:/m\n0::/\n");
    test_write("sys/fs/cgroup/memory/m/cgroup.procs", "");
    test_write("sys/fs/cgroup/memory/m/memory.oom_control",
               "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n");
    oom_open(&oom, test_dir(), &leaf);
    test_write("sys/fs/cgroup/memory/m/memory.oom_control",
               "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
    CHECK_HAS(explain(true, ""), "/sys/fs/cgroup/memory/m went from 0 to 1");
    oom_close(&oom);
}

TEST(without_a_counter_nothing_is_told)
{
    test_write("proc/self/cgroup", "0::/\n");
    test_write("sys/fs/cgroup/cgroup.procs", "");
    oom_open(&oom, test_dir(), &leaf);
    CHECK_INT(oom.fd, <, 0);
    CHECK_STR(explain(true, "died"), "died");
    oom_close(&oom);
}
