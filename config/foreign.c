/* SPDX-License-Identifier: MIT */
#include "foreign.h"

#include "../proto/base.h"

#include <stdbool.h>
#include <string.h>

/* clang-format off */
const struct foreign FOREIGN[] = {
    {FOREIGN_OPTION, "N ntasks tasks ntasks-per-node num-processes num-gpus ngpus num-workers workers world-size",
     "--nproc-per-node says how many workers there are"},
    {FOREIGN_OPTION, "gres gpus-per-node gpus-per-task gpu num-gpus-per-node include exclusive multi-gpu devices device visible-devices",
     "--gpus takes GPUs, --nproc-per-node=gpu starts one worker for each"},
    {FOREIGN_OPTION, "H f w host hosts hostfile machinefile nodefile nodelist nodes num-nodes num-machines machine-rank",
     "a job has one server, this one"},
    {FOREIGN_OPTION, "bind-to map-by rank-by cpu-bind cpus-per-task cpuset-cpus cpus threads pin num-cpu-threads-per-process",
     "--affinity says on which CPUs workers run, OMP_NUM_THREADS how many threads they have"},
    {FOREIGN_OPTION, "x e env genv export",
     "workers have launch's own variables: NAME=value launch ..., or 'env' in a job file"},
    {FOREIGN_OPTION, "l label tag-output prepend-rank",
     "--tee=3 puts the rank before each line"},
    {FOREIGN_OPTION, "o output output-filename error outfile log-file",
     "--redirects=3 --log-dir=DIR writes what each worker says to files"},
    {FOREIGN_OPTION, "v q verbose debug log-level quiet",
     "LAUNCH_LOG=debug in the environment shows what launch does"},
    {FOREIGN_OPTION, "i it interactive pty", "--stdin=0 gives our stdin to rank 0"},
    {FOREIGN_OPTION, "d background daemon", "--detach runs a job in the background"},
    {FOREIGN_OPTION, "J job-name", "--name gives a job a name"},
    {FOREIGN_OPTION, "restart restarts retries retry", "--max-restarts says how often a job is started again"},
    {FOREIGN_OPTION, "main-process-port port", "--master-port is the port of rank 0"},
    {FOREIGN_OPTION, "local-rank rank", "leave it out: launch gives each worker RANK and LOCAL_RANK"},
    {FOREIGN_OPTION, "stop-timeout kill-timeout grace-period",
     "--shutdown-timeout is the time from SIGTERM to SIGKILL"},
    {FOREIGN_OPTION, "watchdog heartbeat healthcheck", "--hang-timeout ends a job that gives no sign of life"},
    {FOREIGN_OPTION, "config-file job-file file yaml", "--config=FILE reads a job file"},
    {FOREIGN_OPTION, "dry-run test-only", "--print-config shows the settings and starts nothing"},
    {FOREIGN_OPTION, "D wd wdir chdir workdir", "workers start where launch does: cd there before"},
    {FOREIGN_OPTION, "K kill-on-bad-exit", "leave it out: the first worker that fails ends the others"},
    {FOREIGN_OPTION, "memory mem mem-per-cpu shm-size ulimit u user privileged network ipc volume",
     "workers have the user, files and limits that launch was started with"},
    {FOREIGN_OPTION, "rm oversubscribe allow-run-as-root mca", "leave it out: launch needs no such thing"},

    {FOREIGN_KEY, "command cmd script entrypoint", "'program' is the program, 'args' has its arguments"},
    {FOREIGN_KEY, "cwd workdir work-dir working-dir working-directory", "workers start where launch does: cd there before"},
    {FOREIGN_KEY, "environment", "'env' has the variables"},
    {FOREIGN_KEY, "replicas workers ntasks", "'nproc_per_node' says how many workers there are"},
    {FOREIGN_KEY, "restart", "'max_restarts' says how often a job is started again"},

    {FOREIGN_VERB, "run exec start submit", "launch itself runs a program: launch [options] program"},
    {FOREIGN_VERB, "list jobs", "launch ps lists the jobs"},
    {FOREIGN_VERB, "kill cancel terminate delete", "launch stop RUN ends a job"},
    {FOREIGN_VERB, "inspect describe show info", "launch status RUN shows a job"},
    {FOREIGN_VERB, "scale resize", "launch grow RUN brings lost ranks back"},
};
/* clang-format on */
const size_t FOREIGN_N = ARRAY_LEN(FOREIGN);

static bool same(const char *known, const char *word, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (known[i] != (word[i] == '_' ? '-' : word[i]))
            return false;
    return true;
}

const char *foreign_find(enum foreign_kind kind, const char *word, size_t n)
{
    for (size_t i = 0; i < FOREIGN_N; i++) {
        if (FOREIGN[i].kind != kind)
            continue;
        for (const char *known = FOREIGN[i].words; *known; known += strspn(known, " ")) {
            size_t known_n = strcspn(known, " ");
            if (known_n == n && same(known, word, n))
                return FOREIGN[i].instead;
            known += known_n;
        }
    }
    return NULL;
}
