/* SPDX-License-Identifier: MIT */
#include "../../agent/program.h"
#include "../harness.h"

#include <sys/stat.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static enum program_how how; /* detect, unless a test says otherwise */

static int resolve(const char *word, struct program *p, int *ret_exit, struct err *err)
{
    static char name[512];
    static char *argv[] = {name, "one", "two", NULL};
    snprintf(name, sizeof name, "%s", word);
    *ret_exit = 0;
    return program_resolve(p, argv, how, ret_exit, err);
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
    expect("no-such-tool", -ENOENT, 127, "'no-such-tool' was not found in the PATH");
    CHECK_INT(mkdir("folder", 0755), ==, 0);
    expect("folder", -EISDIR, 126, "'folder' is a directory, not a program");
    expect("folder/", -EISDIR, 126, "'folder/' is a directory, not a program");
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

/* What is executed, as one line, its first word by its last part only. */
static const char *line_of(const struct program *p, uint32_t rank)
{
    static char line[1024];
    char *const *argv = program_argv(p, rank);
    size_t n = 0;
    CHECK_STR(p->file, argv[0]);
    for (size_t i = 0; argv[i]; i++) {
        const char *slash = i == 0 ? strrchr(argv[i], '/') : NULL;
        n += (size_t)snprintf(line + n, sizeof line - n, "%s%s", i ? " " : "",
                              slash ? slash + 1 : argv[i]);
    }
    return line;
}

static void runs(const char *word, const char *line)
{
    struct program p;
    struct err err = {0};
    int status;
    if (resolve(word, &p, &status, &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
    CHECK_STR(line_of(&p, 0), line);
    program_finish(&p);
}

/* A directory with a python and a python3, first in the PATH. */
static void pythons(bool python, bool python3)
{
    char path[600];
    script("bin/tool", "#!/bin/sh\n", 0755);
    if (python)
        script("bin/python", "#!/bin/sh\n", 0755);
    if (python3)
        script("bin/python3", "#!/bin/sh\n", 0755);
    snprintf(path, sizeof path, "%s/bin", test_dir());
    setenv("PATH", path, 1);
    unsetenv("PYTHON_EXEC");
}

TEST(a_name_in_py_is_run_by_the_python_of_the_path_unbuffered)
{
    pythons(true, true);
    script("train.py", "print()\n", 0644);
    script("bang.py", "#!/no/such/python\n", 0755);
    script(".py", "#!/bin/sh\n", 0755);
    runs("train.py", "python -u train.py one two");
    runs("./bang.py", "python -u ./bang.py one two");
    runs("./.py", "python -u ./.py one two");
    how = PROGRAM_DIRECT;
    expect("./train.py", -EACCES, 126, "chmod +x");
    expect("./bang.py", -ENOENT, 127, "'/no/such/python'");
}

TEST(python3_is_taken_where_there_is_no_python)
{
    pythons(false, true);
    script("train.py", "print()\n", 0644);
    runs("train.py", "python3 -u train.py one two");
}

TEST(PYTHON_EXEC_goes_before_the_path)
{
    char path[600];
    pythons(true, true);
    script("train.py", "print()\n", 0644);
    script("mine", "#!/bin/sh\n", 0755);
    snprintf(path, sizeof path, "%s/mine", test_dir());
    setenv("PYTHON_EXEC", path, 1);
    runs("train.py", "mine -u train.py one two");
    setenv("PYTHON_EXEC", "tool", 1);
    runs("train.py", "tool -u train.py one two");
    setenv("PYTHON_EXEC", "", 1);
    runs("train.py", "python -u train.py one two");
    setenv("PYTHON_EXEC", "/no/such", 1);
    expect("train.py", -ENOENT, 127, "PYTHON_EXEC: '/no/such': No such file");
    setenv("PYTHON_EXEC", "nowhere", 1);
    expect("train.py", -ENOENT, 127, "PYTHON_EXEC: 'nowhere' was not found in the PATH");
    setenv("PYTHON_EXEC", "/tmp", 1);
    expect("train.py", -EISDIR, 126, "PYTHON_EXEC: '/tmp'");
}

TEST(a_missing_python_or_script_is_127_before_anything_is_started)
{
    pythons(false, false);
    script("train.py", "print()\n", 0644);
    expect("train.py", -ENOENT, 127, "neither python nor python3 in the PATH");
    pythons(true, false);
    expect("missing.py", -ENOENT, 127, "'missing.py': No such file or directory");
    test_write("dir.py/__main__.py", "");
    expect("dir.py", -EISDIR, 126, "directory");
    script("train", "print()\n", 0644);
    how = PROGRAM_SCRIPT;
    runs("train", "python -u train one two");
    runs("dir.py", "python -u dir.py one two");
}

TEST(a_module_is_named_and_not_a_file)
{
    pythons(true, false);
    how = PROGRAM_MODULE;
    runs("pkg.mod", "python -u -m pkg.mod one two");
    runs("no.such.py",
         "python -u -m no.such.py one two"); /* a package may have a module called py */
    script("train.py", "print()\n", 0644);
    expect("train.py", -EINVAL, 2, "its module is called 'train'");
    expect("./train.py", -EINVAL, 2, "no module's name");
}

TEST(local_rank_is_replaced_in_the_arguments_alone)
{
    static char word[] = "./${local_rank}", first[] = "--out=${local_rank}", second[] = "$x";
    static char *argv[] = {word, first, second, NULL};
    struct program p;
    int status;
    script("${local_rank}", "#!/bin/sh\n", 0755);
    CHECK_INT(program_resolve(&p, argv, PROGRAM_DETECT, &status, NULL), ==, 0);
    CHECK_INT(program_expand(&p, 3, NULL), ==, 0);
    for (uint32_t rank = 0; rank < 3; rank++) {
        char *const *got = program_argv(&p, rank);
        const char want[] = {'-', '-', 'o', 'u', 't', '=', (char)('0' + rank), '\0'};
        CHECK_STR(got[0], "./${local_rank}");
        CHECK_STR(got[1], want);
        CHECK_STR(got[2], "$x");
        CHECK(!got[3]);
    }
    program_finish(&p);
}

TEST(workers_share_one_argument_vector_unless_it_has_a_macro)
{
    static char word[] = "true", plain[] = "a$$b", macro[] = "${local_rank}";
    char *argv[] = {word, plain, NULL, NULL};
    struct program p;
    int status;
    CHECK_INT(program_resolve(&p, argv, PROGRAM_DETECT, &status, NULL), ==, 0);
    CHECK_INT(program_expand(&p, 4096, NULL), ==, 0);
    CHECK(program_argv(&p, 0) == program_argv(&p, 4095) && !p.lists);
    program_finish(&p);
    argv[2] = macro;
    CHECK_INT(program_resolve(&p, argv, PROGRAM_DETECT, &status, NULL), ==, 0);
    CHECK_INT(program_expand(&p, 4096, NULL), ==, 0);
    CHECK_STR(program_argv(&p, 4095)[2], "4095");
    CHECK(program_argv(&p, 4095)[1] == plain && !program_argv(&p, 4095)[3]);
    program_finish(&p);
}
