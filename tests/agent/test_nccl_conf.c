/* SPDX-License-Identifier: MIT */
#include "../../agent/nccl_conf.h"
#include "../harness.h"

#include <errno.h>

static struct nccl_conf conf;

static void read_with(const char *one, const char *two)
{
    char *env[] = {(char *)one, (char *)two, NULL};
    nccl_conf_read(&conf, test_dir(), env, "/home/me", false);
}

static const char *value(const char *name)
{
    const struct nccl_setting *setting = nccl_conf_find(&conf, name);
    return setting ? setting->value : "unset";
}

static const char *where(const char *name)
{
    const struct nccl_setting *setting = nccl_conf_find(&conf, name);
    return setting ? setting->where : "nowhere";
}

#define MINE "home/me/.nccl.conf"

TEST(the_environment_goes_before_the_users_file_and_that_before_the_servers)
{
    test_write(MINE, "NCCL_P2P_DISABLE=1\nNCCL_ALGO=Tree\n");
    test_write("etc/nccl.conf", "# of the server\n\nNCCL_ALGO=Ring\r\nNCCL_P2P_LEVEL=SYS\n");
    read_with("NCCL_P2P_DISABLE=0", "PATH=/bin");
    CHECK_INT(conf.n, ==, 5);
    CHECK_STR(value("NCCL_P2P_DISABLE"), "0");
    CHECK_STR(where("NCCL_P2P_DISABLE"), "environment");
    CHECK_STR(value("NCCL_ALGO"), "Tree");
    CHECK_HAS(where("NCCL_ALGO"), "/.nccl.conf:2");
    CHECK_STR(value("NCCL_P2P_LEVEL"), "SYS");
    CHECK_STR(where("NCCL_P2P_LEVEL"), "/etc/nccl.conf:4");
    CHECK(!nccl_conf_find(&conf, "NCCL_SHM_DISABLE"));
    CHECK(conf.setting[1].beaten && conf.setting[1].from_file); /* the user's, by the environment */
}

TEST(rccl_has_files_of_its_own)
{
    char *env[] = {NULL};
    test_write("home/me/.rccl.conf", "NCCL_ALGO=Tree");
    test_write(MINE, "NCCL_ALGO=Ring");
    nccl_conf_read(&conf, test_dir(), env, "/home/me", true);
    CHECK_STR(where("NCCL_ALGO"), "/home/me/.rccl.conf:1");
    CHECK_STR(conf.system.path, "/etc/rccl.conf");
    CHECK_INT(conf.system.trouble, ==, -ENOENT);
}

TEST(a_file_that_is_named_takes_the_place_of_the_users)
{
    test_write(MINE, "NCCL_ALGO=Tree\n");
    test_write("site/nccl", "NCCL_PROTO=LL");
    read_with("NCCL_CONF_FILE=/site/nccl", NULL);
    CHECK_STR(value("NCCL_ALGO"), "unset");
    CHECK_STR(value("NCCL_PROTO"), "LL");
}

TEST(a_file_is_taken_line_by_line_as_nccl_does_and_is_fit_for_a_terminal)
{
    test_write("etc/nccl.conf", "NCCL_ALGO\n NCCL_A=1\n#NCCL_C=1\nNCCL_B=\x1b[1m\n");
    read_with(NULL, NULL);
    CHECK_INT(conf.n, ==, 2);
    CHECK_STR(value(" NCCL_A"), "1"); /* of no effect: the blank is part of the name */
    CHECK_STR(value("NCCL_B"), "?[1m");
}
