/* SPDX-License-Identifier: MIT */
/* A worker that meets the others as it should, but for one rank that does what argv[1] says:
 *
 *     join_job RANK=WHAT      WHAT: away, exit, twice, stranger, thread, flags, abort, kill, quit, stay
 *
 * A rank that joined prints "rank R of N met" after a barrier of all. */
#include "../../worker/launch.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct launch *l;

/* A second try at joining: says how it went. */
static int again(unsigned flags)
{
    struct launch *other;
    int r = launch_join(&other, flags);
    fprintf(stderr, "second: %d %s\n", r, launch_error(NULL));
    return r;
}

static void *join_in_thread(void *ret)
{
    *(int *)ret = again(0);
    return NULL;
}

static int before(const char *what)
{
    pthread_t thread;
    int r = 0;

    if (strcmp(what, "away") == 0)
        pause();
    if (strcmp(what, "exit") == 0)
        exit(0);
    if (strcmp(what, "kill") == 0)
        raise(SIGKILL);
    if (strcmp(what, "flags") == 0)
        again(4);
    if (strcmp(what, "thread") == 0 && pthread_create(&thread, NULL, join_in_thread, &r) == 0)
        pthread_join(thread, NULL);
    return r;
}

/* Another process of the same rank: it has the board's descriptor, as a data loader has. */
static void join_as_child(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(again(0) == LAUNCH_INVALID ? 0 : 1);
    int status = 0;
    waitpid(child, &status, 0);
    if (status)
        exit(9);
}

static void after(const char *what)
{
    if (strcmp(what, "twice") == 0)
        again(0);
    if (strcmp(what, "stranger") == 0)
        join_as_child();
    if (strcmp(what, "abort") == 0)
        abort();
    if (strcmp(what, "stay") == 0)
        pause();
    if (strcmp(what, "quit") == 0)
        exit(0);
}

int main(int argc, char **argv)
{
    const char *rank = getenv("RANK"), *what = "";

    if (argc > 1 && rank && atoi(argv[1]) == atoi(rank) && strchr(argv[1], '='))
        what = strchr(argv[1], '=') + 1;
    before(what);
    if (launch_join(&l, 0) != LAUNCH_OK) {
        fprintf(stderr, "%s\n", launch_error(NULL));
        return 1;
    }
    after(what);
    int r = launch_barrier(l);
    if (r == LAUNCH_OK)
        printf("rank %d of %d met\n", launch_rank(l), launch_world_size(l));
    else
        fprintf(stderr, "rank %d: %s\n", launch_rank(l), launch_error(l));
    launch_leave(l);
    return r == LAUNCH_OK ? 0 : 1;
}
