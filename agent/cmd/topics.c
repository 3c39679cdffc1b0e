/* SPDX-License-Identifier: MIT */
#include "topics.h"

#include "../../proto/status.h"

#include <stdio.h>
#include <string.h>

const struct topic TOPICS[] = {
    {"command-line", "Command line",
     "The first word that is no option is the program; it and all that follows belong to the job, "
     "whatever they look like. --x=v and --x v are the same, and so are dashes and underscores in "
     "names. Options can't be abbreviated. A switch takes =1, =0, =true, =false, =yes, =no, =on or "
     "=off. "
     "A program that has a command's name is started as ./NAME or behind --."},
    {"program", "Python and other programs",
     "A program whose name ends in .py is run by $PYTHON_EXEC or, when that is not set, by the "
     "python of the PATH (so a virtual environment's), else the python3, with -u. Anything else "
     "is executed: binaries, scripts with a #! line, texts without one by /bin/sh, and shared "
     "objects with a launch_main() by liblaunch.\n"
     "In the program's arguments ${local_rank} and $local_rank become the worker's number, from 0 "
     "on; keep the shell from replacing them first. $${local_rank} stands for the text itself; "
     "any other dollar is left alone."},
    {"environment", "Environment",
     "Every option, but for those of job files, has a variable, LAUNCH_MAX_RESTARTS for "
     "--max-restarts, and some have "
     "torchrun's, named in brackets. The command line goes first, then LAUNCH_, then PET_, then "
     "the job file. An "
     "empty variable counts as not set.\n"
     "Workers find torchrun's variables: RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, "
     "MASTER_ADDR, MASTER_PORT and TORCHELASTIC_*. OMP_NUM_THREADS, when it is not set, is a fair "
     "share of the CPUs that the job may use (affinity mask and cgroup quota), at least 1."},
    {"restarts", "When a worker fails",
     "All workers are ended, and with --max-restarts=N all are started again, at most N times; "
     "with --restart-window only restarts younger than that count, with --restart-refill progress "
     "gives all N back. The first failure is tried again at once, the same one again after 100 "
     "ms, 200 ms, ... up to 30 s, and up to a quarter more by chance. --restart-limits lets a "
     "class of failure use fewer: startup (before all workers met or, in jobs without liblaunch, "
     "within 10 s), signal, hang, exit; and same, in a row. A job that ends with 93 asks not to "
     "be started again; what can't be started at all never is."},
    {"torchrun", "Coming from torchrun",
     "Put launch in the place of torchrun: options, PET_ variables, the workers' environment, log "
     "directories and error files are the same. These differ: the exit code is that of the first "
     "worker that failed (--exit-code=torchrun: 1); MASTER_PORT is a free one unless "
     "--master-port is given; only programs called *.py are run by Python (--run-path: any); "
     "$$ in arguments stays $$; --nnodes is 1."},
    {"completion", "Completion",
     "make install brings completion of options for bash, zsh and fish. For a copied binary: eval "
     "\"$(launch help --bash)\" in bash, or the output of launch help --zsh in a file _launch of "
     "zsh's fpath, or launch help --fish | source. launch help --man is the manual page."},
    {"exit-codes", "Exit codes", NULL},
};
const size_t TOPICS_N = ARRAY_LEN(TOPICS);

#define EXIT_ROW(n, name, text) {#n, text},
const struct exit_row EXIT_ROWS[] = {EXIT_CODE_LIST(EXIT_ROW){
    "other", "the code of the first worker that failed; 128+n for signal n"}};
#undef EXIT_ROW
const size_t EXIT_ROWS_N = ARRAY_LEN(EXIT_ROWS);

const char *topic_of_group(int group, char buf[TOPIC_BYTES])
{
    const char *from = FIELD_GROUPS[group];
    size_t n = 0;
    for (; n < TOPIC_BYTES - 1; n++) {
        char c = from[n];
        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        if (c < 'a' || c > 'z')
            break;
        buf[n] = c;
    }
    buf[n] = '\0';
    return buf;
}

static bool is_topic(const char *name)
{
    for (size_t i = 0; i < TOPICS_N; i++) {
        if (strcmp(name, TOPICS[i].name) == 0)
            return true;
    }
    return false;
}

const char *topic_name(size_t i, char buf[TOPIC_BYTES])
{
    if (i < TOPICS_N)
        return TOPICS[i].name;
    i -= TOPICS_N;
    for (int group = 0; group < GROUPS_N; group++) {
        if (!is_topic(topic_of_group(group, buf)) && i-- == 0)
            return buf;
    }
    return NULL;
}

const char *topic_notes(const struct field *field, char buf[TOPIC_NOTES_BYTES])
{
    const char *parts[][2] = {{"default ", field->arg ? field->def : NULL},
                              {"also --", field->aliases},
                              {"", field->pet}};
    size_t used = 0;
    buf[0] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(parts) && used < TOPIC_NOTES_BYTES; i++) {
        if (parts[i][1])
            used += (size_t)snprintf(buf + used, TOPIC_NOTES_BYTES - used, "%s%s%s",
                                     used ? "; " : "", parts[i][0], parts[i][1]);
    }
    return buf;
}
