/* SPDX-License-Identifier: MIT */
/* struct job_spec: everything a user can ask of a job, as plain data. Filled from the table in
 * fields.h by the command line, the environment and a job file. Knows nothing of processes. */
#ifndef LAUNCH_CONFIG_SPEC_H
#define LAUNCH_CONFIG_SPEC_H

#include "../proto/err.h"
#include "codeset.h"
#include "limits.h"
#include "rankmap.h"
#include "siglist.h"

#include <stdbool.h>
#include <stdint.h>

/* --nproc-per-node */
enum nproc_mode {
    NPROC_NUMBER, /* nproc holds it */
    NPROC_GPU,    /* one per GPU the job may use; an error without any */
    NPROC_AUTO,   /* one per GPU, else one per CPU */
    NPROC_CPU,    /* one per CPU the process may use (affinity mask and cgroup quota) */
    NPROC_MODES_N
};

/* --gpu-visibility */
enum gpu_visibility {
    GPU_VISIBILITY_JOB,  /* every worker sees all the job's GPUs and uses LOCAL_RANK (torchrun) */
    GPU_VISIBILITY_RANK, /* every worker sees its own GPU only; LOCAL_RANK is 0 */
    GPU_VISIBILITIES_N
};

/* --gpus */
enum gpus_mode {
    GPUS_VISIBLE, /* not given: those that CUDA_VISIBLE_DEVICES leaves, with no lease on them */
    GPUS_COUNT,   /* gpus_n of them, which ones does not matter */
    GPUS_AUTO,    /* one for each worker */
    GPUS_ALL,
    GPUS_LIST, /* those in gpus_list */
    GPUS_MODES_N
};

/* --gpu-ids */
enum gpu_ids {
    GPU_IDS_INDEX, /* in the user's own notation, else by index */
    GPU_IDS_UUID,
    GPU_IDS_N
};

/* --exit-code */
enum exit_code_style {
    EXIT_STYLE_WORKER,   /* the first failing worker's own code, 128+n for a signal */
    EXIT_STYLE_TORCHRUN, /* 1 for every failure */
    EXIT_STYLES_N
};

/* --stdin */
enum stdin_mode {
    STDIN_DEFAULT, /* a single worker gets ours, several get none */
    STDIN_NONE,
    STDIN_ALL,
    STDIN_RANK, /* stdin_rank gets it */
    STDIN_MODES_N
};

/* --cgroup */
enum cgroup_mode {
    CGROUP_AUTO, /* the workers get a cgroup v2 leaf of their own where that is possible */
    CGROUP_OFF,
    CGROUP_MODES_N
};

/* --on-failure */
enum on_failure {
    ON_FAILURE_RESTART, /* all workers are started again */
    ON_FAILURE_HEAL,    /* the lost one is replaced, if the job can live with that */
    ON_FAILURE_SHRINK,  /* likewise; once no restart is left, the job goes on without it */
    ON_FAILURE_STOP,    /* nothing is started again */
    ON_FAILURES_N
};

/* --standby */
enum standby {
    STANDBY_NONE,
    STANDBY_EXEC, /* a process that has come as far as launch_join() */
    STANDBY_CUDA, /* ... and has made its GPU's context */
    STANDBY_NCCL, /* ... and has loaded NCCL's kernels */
    STANDBIES_N
};

/* --affinity; what each means: agent/place.h */
enum affinity {
    AFFINITY_AUTO, /* node, where there are several and the ranks have GPUs; else none */
    AFFINITY_NONE,
    AFFINITY_NODE,
    AFFINITY_SOCKET,
    AFFINITY_EXCLUSIVE,
    AFFINITY_CORE_COMPLEX,
    AFFINITY_CORES,
    AFFINITIES_N
};

/* --mem-policy; the numbers are the kernel's (MPOL_*) */
enum mem_policy {
    MEM_POLICY_NONE, /* as inherited */
    MEM_POLICY_PREFER,
    MEM_POLICY_BIND,
    MEM_POLICY_INTERLEAVE,
    MEM_POLICIES_N
};

#define SPEC_GPUS_MAX 64 /* GPUs of a server */
#define SPEC_WAIT_FOR_EVER UINT64_MAX
#define SPEC_JOBS_MAX 64   /* of one file */
#define SPEC_FIELDS_MAX 64 /* rows the settings table may have; asserted in fields.c */

/* Where a value came from. One further down goes before those above. */
enum source {
    SOURCE_DEFAULT,
    SOURCE_IMPLIED, /* the default, changed by another setting: spec_check() */
    SOURCE_FILE,
    SOURCE_PET,    /* torchrun's variable */
    SOURCE_LAUNCH, /* ours */
    SOURCE_COMMAND_LINE,
    SOURCES_N
};

struct origin {
    enum source source;
    unsigned line; /* SOURCE_FILE: of the job file */
    char *text;    /* owned: the value as written; NULL: the default's */
};

struct job_spec {
    bool module, run_path, no_python; /* how the program is run; at most one after spec_check() */
    enum nproc_mode nproc_mode;
    uint32_t nproc; /* 1 .. BOARD_MAX_RANKS; only with NPROC_NUMBER */
    uint32_t max_restarts;
    uint64_t restart_window_ms; /* 0: restarts count for ever */
    bool restart_refill;
    struct limits restart_limits;
    struct codeset restart_on, no_restart_on;
    enum on_failure on_failure;
    uint32_t min_workers;     /* with ON_FAILURE_SHRINK */
    uint64_t heal_timeout_ms; /* 0: none; fits 32 bits */
    enum standby standby;
    uint32_t standby_count;
    uint64_t rendezvous_timeout_ms; /* 0: none; fits 32 bits */
    uint64_t shutdown_timeout_ms;   /* SIGTERM to SIGKILL; 0: SIGKILL at once, not never */
    uint64_t timeout_ms;            /* of the whole job; 0: none */
    struct siglist signals_to_handle, forward_signals; /* disjoint after spec_check() */
    uint64_t hang_timeout_ms;                          /* without a sign of life; 0: never */
    enum gpu_visibility gpu_visibility;
    bool share_gpus;
    enum affinity affinity;
    enum mem_policy mem_policy;
    bool report_placement;
    enum gpus_mode gpus_mode;
    uint32_t gpus_n; /* 1 .. SPEC_GPUS_MAX; only with GPUS_COUNT */
    enum gpu_ids gpu_ids;
    uint64_t wait_ms; /* for GPUs that others have; 0: not at all; SPEC_WAIT_FOR_EVER */
    bool force;       /* GPUs that programs without a lease use are taken, too */
    enum exit_code_style exit_code;
    enum cgroup_mode cgroup;
    uint16_t master_port;          /* 0: any free one, fresh for every attempt */
    struct rankmap redirects, tee; /* RANKMAP_STDOUT and RANKMAP_STDERR */
    struct rankmap shown_ranks;    /* on the console; no rank listed: all */
    uint64_t rotate_bytes;         /* 0: never */
    uint32_t rotate_keep;
    enum stdin_mode stdin_mode;
    uint32_t stdin_rank; /* only with STDIN_RANK */
    bool detach;

    char *master_addr;    /* owned; a host name or an address */
    char *run_id;         /* owned; [A-Za-z0-9][A-Za-z0-9._-]{0,62}; NULL: made up at start */
    char *name;           /* owned; as run_id; NULL: none */
    char *role;           /* owned; 1 to 63 printable ASCII characters */
    char *gpus_list;      /* owned; "0,1,GPU-..."; only with GPUS_LIST */
    char *lease_dir;      /* owned; as given; NULL: the server's */
    char *log_dir;        /* owned; as given; NULL: none */
    char *stdout_filters; /* owned; as given; NULL: none */
    char *stderr_filters; /* owned; likewise */

    bool print_config, example_config;
    char *config; /* owned; path of the job file; NULL: none */

    /* Of each row of the table. Kept by field_set(). */
    struct origin origin[SPEC_FIELDS_MAX];

    /* What only a job file says: NULL-terminated, arrays and strings owned; NULL: it does not. */
    char **file_argv;   /* program and arguments */
    unsigned argv_line; /* of the program, in the file */
    char **env;         /* "NAME=value" */

    /* The program and its arguments: borrowed, NULL-terminated, the tail of main's argv, or file_argv. NULL only
     * where nothing shall be started. */
    char **argv;

    /* The jobs of a file that has several, owned; what else is here is then what they have in common. NULL: this is
     * the job. */
    struct job_spec *jobs;
    unsigned jobs_n;
};

/* All zero, then every field of the table set to its default. Asserts that the defaults are valid.
 * 0, or -ENOMEM: nothing is left allocated. */
MUST_CHECK int spec_init(struct job_spec *spec);

/* As spec_init(), then every value that `from` was given, with where it came from; not what only a job file says. -ENOMEM:
 * nothing is left allocated. */
MUST_CHECK int spec_inherit(struct job_spec *spec, const struct job_spec *from, struct err *err);

/* Frees what it owns and zeroes it; takes a zeroed one and NULL too. */
void spec_finish(struct job_spec *spec);

/* Lost ranks are replaced, and the others keep their processes. */
bool spec_heals(const struct job_spec *spec);

/* Standbys that the job may have at once. */
uint32_t spec_standbys(const struct job_spec *spec);

/* Settles what one setting implies for another (--share-gpus: every worker sees its own GPU only)
 * and refuses contradictions, also between the jobs of a file. Calling it twice does no harm.
 * 0, or -EINVAL with one line that names the settings. */
MUST_CHECK int spec_check(struct job_spec *spec, struct err *err);

/* Appends copies of words, NULL-terminated, to file_argv, which is there. -ENOMEM. */
MUST_CHECK int spec_add_arguments(struct job_spec *spec, char *const *words, struct err *err);

#endif
