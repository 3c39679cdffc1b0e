/* SPDX-License-Identifier: MIT */
#include "../../agent/program.h"
#include "../harness.h"

#include <sys/stat.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int resolve(const char *word, struct program *p, int *ret_exit, struct err *err)
{
    static char name[512];
    static char *argv[] = {name, "one", "two", NULL};
    snprintf(name, sizeof name, "%s", word);
    *ret_exit = 0;
    return program_resolve(p, argv, ret_exit, err);
}

static void script(const char *name, const char *content, mode_t mode)
{
    test_write(name, content);
    CHECK_INT(chdir(test_dir()), ==, 0);
    CHECK_INT(chmod(name, mode), ==, 0);
}

static void expect(const char *word, int code, int exit_code, const char *part)
{
    struct program p;
    struct err err;
    int status;
    CHECK_INT(resolve(word, &p, &status, &err), ==, code);
    CHECK_INT(status, ==, exit_code);
    CHECK_HAS(err.text, part);
    CHECK(!p.path && !p.argv);
}

TEST(what_is_not_there_is_127_and_what_cant_be_run_is_126)
{
    script("plain.txt", "text\n", 0644);
    script("tool", "#!/bin/sh\n", 0755);
    setenv("PATH", "/usr/bin:/bin", 1);
    expect("./missing", -ENOENT, 127, "./missing");
    expect("no-such-tool", -ENOENT, 127, "in the PATH");
    expect("./tool/x", -ENOTDIR, 127, "./tool/x");
    expect("./plain.txt", -EACCES, 126, "chmod +x");
    expect("/tmp", -EISDIR, 126, "directory");
    expect("", -ENOENT, 127, "empty");
    expect("tool", -ENOENT, 127, "did you mean ./tool?");
}

TEST(a_wrong_interpreter_is_blamed_instead_of_the_script)
{
    script("crlf.sh", "#!/bin/sh\r\necho hi\r\n", 0755);
    script("noint.sh", "#! /no/such/interp -x\necho hi\n", 0755);
    script("dir.sh", "#!/tmp\n", 0755);
    expect("./crlf.sh", -ENOENT, 127, "'/bin/sh\\r'");
    expect("./noint.sh", -ENOENT, 127, "'/no/such/interp'");
    expect("./dir.sh", -EISDIR, 126, "'/tmp'");
}

TEST(a_text_without_an_interpreter_line_is_run_by_sh)
{
    struct program p;
    int status;
    script("nosb", "echo hi\n", 0755);
    CHECK_INT(resolve("./nosb", &p, &status, NULL), ==, 0);
    CHECK_STR(p.file, "/bin/sh");
    CHECK_STR(p.argv[0], "/bin/sh");
    CHECK_STR(p.argv[1], "./nosb");
    CHECK_STR(p.argv[2], "one");
    CHECK_STR(p.argv[3], "two");
    CHECK(!p.argv[4]);
    program_finish(&p);
}

TEST(a_word_without_a_slash_comes_from_the_path_and_keeps_its_name)
{
    struct program p;
    int status;
    setenv("PATH", "/no/such/dir:/usr/bin:/bin", 1);
    CHECK_INT(resolve("true", &p, &status, NULL), ==, 0);
    CHECK_HAS(p.file, "/bin/true");
    CHECK_STR(p.argv[0], "true");
    program_finish(&p);
}

TEST(an_unexecutable_hit_in_the_path_does_not_end_the_search)
{
    struct program p;
    int status;
    char path[600];
    script("true", "#!/bin/sh\n", 0644);
    snprintf(path, sizeof path, "%s:/usr/bin:/bin", test_dir());
    setenv("PATH", path, 1);
    CHECK_INT(resolve("true", &p, &status, NULL), ==, 0);
    CHECK_HAS(p.file, "/bin/true");
    program_finish(&p);
    setenv("PATH", test_dir(), 1);
    expect("true", -EACCES, 126, "permission");
}
