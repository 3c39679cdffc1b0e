/* SPDX-License-Identifier: MIT */
#include "../../agent/bench/baseline_store.h"
#include "bench_rig.h"

#include <fcntl.h>
#include <sys/stat.h>

static void make(struct baseline *b)
{
    struct bench_run run;
    rig_run(&run, 1);
    rig_baseline(b, &run, 1);
    bench_run_finish(&run);
}

/* The state directory is ours; ret: where this machine's baseline belongs. */
static void choose(char ret[PATH_MAX], const struct baseline *b)
{
    struct err err = {0};
    char state[PATH_MAX];
    snprintf(state, sizeof state, "%s/state", test_dir());
    setenv("XDG_STATE_HOME", state, 1);
    CHECK_INT(baseline_store_path(ret, b, "", &err), ==, 0);
    CHECK_HAS(ret, "/state/launch/baselines/all_reduce-4-");
}

static unsigned mode_of(const char *path)
{
    struct stat st;
    CHECK_INT(lstat(path, &st), ==, 0);
    return st.st_mode & 07777;
}

/* Directory of a path, in place. */
static char *cut(char *path)
{
    *strrchr(path, '/') = '\0';
    return path;
}

TEST(a_baseline_is_kept_below_the_state_directory_and_comes_back)
{
    struct baseline b, again;
    struct err err = {0};
    char path[PATH_MAX];
    make(&b);
    choose(path, &b);
    umask(0);
    CHECK_INT(baseline_store_load(&again, path, &err), ==, -ENOENT);
    CHECK_INT(baseline_store_save(&b, path, true, &err), ==, 0);
    CHECK_INT(baseline_store_load(&again, path, &err), ==, 0);
    CHECK_INT(again.points_n, ==, RIG_SIZES);
    CHECK_INT(mode_of(path), ==, 0644);
    CHECK_INT(mode_of(cut(path)), ==, 0755);
    CHECK_INT(mode_of(cut(path)), ==, 0755);
    baseline_finish(&b);
    baseline_finish(&again);
}

TEST(nothing_is_left_beside_a_baseline_that_was_replaced)
{
    struct baseline b;
    struct err err = {0};
    char path[PATH_MAX], command[PATH_MAX + 64];
    make(&b);
    choose(path, &b);
    for (int i = 0; i < 3; i++)
        CHECK_INT(baseline_store_save(&b, path, true, &err), ==, 0);
    snprintf(command, sizeof command, "[ \"$(ls -A '%s' | wc -l)\" = 1 ]", cut(path));
    CHECK_INT(system(command), ==, 0);
    baseline_finish(&b);
}

TEST(a_symbolic_link_is_neither_read_nor_written_through)
{
    struct baseline b, again;
    struct err err = {0};
    char path[PATH_MAX], real[PATH_MAX], launch[PATH_MAX];
    make(&b);
    choose(path, &b);
    snprintf(real, sizeof real, "%s/real.json", test_dir());
    CHECK_INT(baseline_store_save(&b, real, false, &err), ==, 0);
    CHECK_INT(baseline_store_save(&b, path, true, &err), ==, 0);
    CHECK_INT(unlink(path), ==, 0);
    CHECK_INT(symlink(real, path), ==, 0);
    CHECK_INT(baseline_store_load(&again, path, &err), ==, -EINVAL);
    CHECK_HAS(err.text, "symbolic link");
    CHECK_INT(baseline_store_save(&b, path, true, &err), ==, -EINVAL);
    CHECK_HAS(err.text, "symbolic link");
    /* A directory of ours that is a link elsewhere. */
    CHECK_INT(unlink(path), ==, 0);
    CHECK_INT(rmdir(cut(path)), ==, 0);
    snprintf(launch, sizeof launch, "%s", path);
    CHECK_INT(symlink(test_dir(), launch), ==, 0);
    choose(path, &b);
    CHECK_INT(baseline_store_save(&b, path, true, &err), ==, -ENOTDIR);
    baseline_finish(&b);
}

TEST(a_directory_that_others_may_write_to_is_not_used)
{
    struct baseline b;
    struct err err = {0};
    char path[PATH_MAX], dir[PATH_MAX];
    make(&b);
    choose(path, &b);
    CHECK_INT(baseline_store_save(&b, path, true, &err), ==, 0);
    snprintf(dir, sizeof dir, "%s", path);
    CHECK_INT(chmod(cut(dir), 0777), ==, 0);
    CHECK_INT(baseline_store_save(&b, path, true, &err), ==, -EPERM);
    CHECK_HAS(err.text, "others may write to its directory baselines");
    baseline_finish(&b);
}

TEST(a_file_that_is_no_baseline_is_not_overwritten_and_a_damaged_one_is)
{
    struct baseline b, again;
    struct err err = {0};
    char path[PATH_MAX];
    make(&b);
    test_write("notes.txt", "what I did on Sunday\n");
    snprintf(path, sizeof path, "%s/notes.txt", test_dir());
    CHECK_INT(baseline_store_check(path, &err), ==, -EEXIST);
    CHECK_INT(baseline_store_save(&b, path, false, &err), ==, -EEXIST);
    CHECK_HAS(err.text, "no baseline: not overwritten");
    char *text = rig_text(&b);
    text[strlen(text) / 2] = '\0';
    test_write("notes.txt", text);
    CHECK_INT(baseline_store_load(&again, path, &err), ==, -EINVAL);
    CHECK_HAS(err.text, "notes.txt: the file is damaged, perhaps cut short");
    CHECK_INT(baseline_store_check(path, &err), ==, 0);
    CHECK_INT(baseline_store_save(&b, path, false, &err), ==, 0);
    CHECK_INT(baseline_store_load(&again, path, &err), ==, 0);
    free(text);
    baseline_finish(&b);
    baseline_finish(&again);
}

TEST(what_is_no_file_is_refused_at_once)
{
    struct baseline b;
    struct err err = {0};
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/pipe", test_dir());
    CHECK_INT(mkfifo(path, 0600), ==, 0);
    CHECK_INT(baseline_store_load(&b, path, &err), ==, -EINVAL);
    CHECK_HAS(err.text, "no regular file");
    CHECK_INT(baseline_store_check(path, &err), ==, -EINVAL);
    CHECK_INT(baseline_store_load(&b, test_dir(), &err), ==, -EINVAL);
    CHECK_INT(baseline_store_check("/", &err), ==, -EINVAL);
    CHECK_INT(baseline_store_check("no/such/folder/b.json", &err), ==, -ENOENT);
    CHECK_HAS(err.text, "baseline no/such/folder/b.json: No such file");
}

TEST(baselines_are_kept_where_the_user_root_or_home_says)
{
    struct baseline b;
    struct err err = {0};
    char path[PATH_MAX];
    make(&b);
    unsetenv("XDG_STATE_HOME");
    setenv("HOME", "/home/me", 1);
    CHECK_INT(baseline_store_path(path, &b, "/no/such/root", &err), ==, 0);
    CHECK_HAS(path, "/home/me/.local/state/launch/baselines/");
    setenv("XDG_STATE_HOME", "relative", 1); /* the specification: ignored */
    CHECK_INT(baseline_store_path(path, &b, "/no/such/root", &err), ==, 0);
    CHECK_HAS(path, "/home/me/.local/state/launch/baselines/");
    unsetenv("HOME");
    CHECK_INT(baseline_store_path(path, &b, "/no/such/root", &err), ==, -EINVAL);
    CHECK_HAS(err.text, "name a file");
    if (geteuid() == 0) {
        test_write("var/lib/x", "");
        CHECK_INT(baseline_store_path(path, &b, test_dir(), &err), ==, 0);
        CHECK_HAS(path, "/var/lib/launch/baselines/");
    }
    baseline_finish(&b);
}

struct seen {
    int good, bad;
};

static void see(void *user, const char *name, const struct baseline *b, const struct err *err)
{
    struct seen *seen = user;
    CHECK_HAS(name, ".json");
    seen->good += b != NULL;
    seen->bad += !b && err->text[0];
}

TEST(all_baselines_are_walked_and_a_damaged_one_does_not_end_the_walk)
{
    struct baseline b;
    struct err err = {0};
    struct seen seen = {0};
    char path[PATH_MAX];
    make(&b);
    choose(path, &b);
    CHECK_INT(baseline_store_walk("", see, &seen, &err), ==, -ENOENT);
    CHECK_INT(baseline_store_save(&b, path, true, &err), ==, 0);
    test_write("state/launch/baselines/a.json", "{\"program\": ");
    test_write("state/launch/baselines/.baseline.12.json", "");
    test_write("state/launch/baselines/readme", "");
    CHECK_INT(baseline_store_walk("", see, &seen, &err), ==, 2);
    CHECK_INT(seen.good, ==, 1);
    CHECK_INT(seen.bad, ==, 1);
    baseline_finish(&b);
}
