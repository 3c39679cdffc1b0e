/* SPDX-License-Identifier: MIT */
/* Owns the table of settings. The parsers of values: parse.h, output.h, gpus.h and torchrun.h; finding a row by
 * its name: names.c; setting it: origin.c. */
#include "fields.h"

#include "../proto/board.h"
#include "gpus.h"
#include "output.h"
#include "parse.h"
#include "torchrun.h"

#include <assert.h>
#include <stdio.h>

static const char *const NPROC_WORDS[] = {"gpu", "auto", "cpu", NULL};
static const char *const VISIBILITY_WORDS[] = {"job", "rank", NULL};
static const char *const AFFINITY_WORDS[] = {"auto",      "none",         "node",  "socket",
                                             "exclusive", "core-complex", "cores", NULL};
static const char *const MEM_POLICY_WORDS[] = {"none", "prefer", "bind", "interleave", NULL};
static const char *const GPU_ID_WORDS[] = {"index", "uuid", NULL};
static const char *const EXIT_WORDS[] = {"worker", "torchrun", NULL};
static const char *const MAP_WORDS[] = {"0", "1", "2", "3", NULL};
static const char *const STDIN_WORDS[] = {"none", "all", NULL};
static const char *const CGROUP_WORDS[] = {"auto", "off", NULL};
static const char *const FAILURE_WORDS[] = {"restart", "heal", "shrink", "stop", NULL};
static const char *const STANDBY_WORDS[] = {"none", "exec", "cuda", "nccl", NULL};
static const char *const BACKEND_WORDS[] = {"static", "c10d", NULL};
static const char *const EVENT_WORDS[] = {"null", "console", "dynamic_rendezvous", NULL};
static const char *const SPECS_WORDS[] = {"default", NULL};
static const char *const START_WORDS[] = {"spawn", "fork", "forkserver", NULL};

static_assert(ARRAY_LEN(NPROC_WORDS) == NPROC_MODES_N, "a word for every mode but the number");
static_assert(ARRAY_LEN(VISIBILITY_WORDS) == GPU_VISIBILITIES_N + 1, "a word for every value");
static_assert(ARRAY_LEN(AFFINITY_WORDS) == AFFINITIES_N + 1, "a word for every value");
static_assert(ARRAY_LEN(MEM_POLICY_WORDS) == MEM_POLICIES_N + 1, "a word for every value");
static_assert(ARRAY_LEN(GPU_ID_WORDS) == GPU_IDS_N + 1, "a word for every value");
static_assert(ARRAY_LEN(CGROUP_WORDS) == CGROUP_MODES_N + 1, "a word for every value");
static_assert(ARRAY_LEN(FAILURE_WORDS) == ON_FAILURES_N + 1, "a word for every value");
static_assert(ARRAY_LEN(STANDBY_WORDS) == STANDBIES_N + 1, "a word for every value");
static_assert(ARRAY_LEN(EXIT_WORDS) == EXIT_STYLES_N + 1, "a word for every value");

const char *const FIELD_GROUPS[GROUPS_N] = {
    [GROUP_PROGRAM] = "Program",
    [GROUP_WORKERS] = "Workers",
    [GROUP_GPUS] = "GPUs",
    [GROUP_PLACEMENT] = "Placement",
    [GROUP_RENDEZVOUS] = "Rendezvous",
    [GROUP_RESTARTS] = "Restarts",
    [GROUP_FAILURES] = "Failures and the end",
    [GROUP_OUTPUT] = "Output and log files",
    [GROUP_FILE] = "Job files (command line only)",
    [GROUP_TORCHRUN] = "Torchrun's options that have no effect here (checked all the same)",
};

#define AT(member) .offset = offsetof(struct job_spec, member)

/* clang-format off */
const struct field FIELDS[] = {
    {.name = "module", .letter = 'm', .pet = "PET_MODULE", .group = GROUP_PROGRAM, AT(module),
     .parse = parse_switch,
     .help = "The program is the name of a Python module, run as python -u -m does."},
    {.name = "run-path", .pet = "PET_RUN_PATH", .group = GROUP_PROGRAM, AT(run_path),
     .parse = parse_switch,
     .help = "The program is run by Python whatever it is called; without this, when its name ends "
             "in .py. It may be a directory or a zip file with a __main__.py."},
    {.name = "no-python", .pet = "PET_NO_PYTHON", .group = GROUP_PROGRAM, AT(no_python),
     .parse = parse_switch,
     .help = "The program is executed as it is, even if its name ends in .py."},

    {.name = "nproc-per-node", .aliases = "np", .letter = 'n', .pet = "PET_NPROC_PER_NODE",
     .arg = "N|gpu|auto|cpu", .def = "1", .group = GROUP_WORKERS, AT(nproc_mode),
     .parse = parse_nproc, .min = 1, .max = BOARD_MAX_RANKS, .choices = NPROC_WORDS,
     .help = "Workers to start: a number; gpu: one per GPU; cpu: one per CPU that the job may use; "
             "auto: one per GPU, without any GPU one per CPU."},
    {.name = "role", .pet = "PET_ROLE", .arg = "NAME", .def = "default", .group = GROUP_WORKERS,
     AT(role), .parse = parse_role,
     .help = "Name that the workers find in ROLE_NAME."},
    {.name = "run-id", .aliases = "rdzv-id", .pet = "PET_RDZV_ID", .arg = "ID",
     .group = GROUP_WORKERS, AT(run_id), .parse = parse_run_id,
     .help = "Name of this run; made up when it is not given."},
    {.name = "name", .arg = "NAME", .group = GROUP_WORKERS, AT(name), .parse = parse_run_id,
     .help = "A second name of the job, for launch ps, status, logs, stop and the like; several runs may "
             "have the same."},
    {.name = "detach", .def = "0", .group = GROUP_WORKERS, AT(detach), .parse = parse_switch,
     .help = "Runs the job in the background, where it outlives the terminal and the login, and prints its run id; "
             "its output goes to console.log in the log directory. launch attach follows it."},

    {.name = "gpus", .arg = "N|auto|all|LIST", .group = GROUP_GPUS, AT(gpus_mode), .parse = gpus_parse,
     .help = "Takes GPUs for this job alone: N free ones that belong together, auto: one for each worker, all, or "
             "those of a list such as 4-7, 0,2, 3-3 or GPU-8f2a...; --nproc-per-node=gpu then means these."},
    {.name = "wait", .group = GROUP_GPUS, AT(wait_ms), .parse = parse_wait, .max = PARSE_TIME_MAX_MS,
     .needs = NEED_LEASE,
     .help = "Waits in line for GPUs that others have, --wait=10m for at most that long, instead of giving "
             "up with exit code 75."},
    {.name = "force", .def = "0", .group = GROUP_GPUS, AT(force), .parse = parse_switch,
     .help = "Takes GPUs although programs that were not started by launch use them, or although a fault has put them "
             "into quarantine; such a fault then ends no job either."},
    {.name = "gpu-ids", .arg = "index|uuid", .def = "index", .group = GROUP_GPUS, AT(gpu_ids),
     .parse = parse_choice, .choices = GPU_ID_WORDS, .needs = NEED_CHOSEN_GPUS,
     .help = "How workers are told their GPUs when --gpus or --gpu-visibility=rank chose them: in the notation of "
             "CUDA_VISIBLE_DEVICES when it is set, else by index in PCI order; or by UUID."},
    {.name = "lease-dir", .arg = "DIR", .group = GROUP_GPUS, AT(lease_dir), .parse = output_parse_text,
     .help = "Where the locks on GPUs are; the same for all jobs of a server: /run/launch if it is there, else "
             "/run/lock, else /tmp."},
    {.name = "gpu-visibility", .arg = "job|rank", .def = "job", .group = GROUP_GPUS,
     AT(gpu_visibility), .parse = parse_choice, .choices = VISIBILITY_WORDS,
     .help = "job: every worker sees all GPUs of the job and takes the one of its LOCAL_RANK; "
             "rank: every worker sees its own GPU only, and its LOCAL_RANK is 0."},
    {.name = "virtual-local-rank", .pet = "PET_VIRTUAL_LOCAL_RANK", .group = GROUP_GPUS,
     AT(gpu_visibility), .parse = parse_virtual_rank,
     .help = "The same as --gpu-visibility=rank."},
    {.name = "share-gpus", .def = "0", .group = GROUP_GPUS, AT(share_gpus), .parse = parse_switch,
     .help = "Lets several workers share a GPU, to try a job of many GPUs on few. Implies "
             "--gpu-visibility=rank."},

    {.name = "affinity", .aliases = "numa-binding",
     .arg = "none|node|socket|exclusive|core-complex|cores", .def = "auto",
     .group = GROUP_PLACEMENT, AT(affinity), .parse = parse_choice, .choices = AFFINITY_WORDS,
     .help = "CPUs a worker may run on. node: those of its GPU's NUMA node; socket: of that node's package; "
             "exclusive: cores of the node that no other worker has; core-complex: cores of the node that share a "
             "cache; cores: the node's cores, divided among the workers; auto: node, where there are several "
             "nodes and every worker has a GPU, else none."},
    {.name = "mem-policy", .arg = "none|prefer|bind|interleave", .def = "none",
     .group = GROUP_PLACEMENT, AT(mem_policy), .parse = parse_choice, .choices = MEM_POLICY_WORDS,
     .help = "Where a worker's memory comes from. prefer: its own NUMA node while that has some; bind: the nodes of its "
             "CPUs only; interleave: all nodes with CPUs in turn; none: as inherited, which normally is where "
             "it runs."},
    {.name = "report-placement", .def = "0", .group = GROUP_PLACEMENT, AT(report_placement),
     .parse = parse_switch,
     .help = "Shows before the start where each worker goes: GPU, CPUs, memory, network device, threads; "
             "the same in placement.json in the log directory."},

    {.name = "rendezvous-timeout", .arg = "TIME", .def = "60s", .group = GROUP_RENDEZVOUS,
     AT(rendezvous_timeout_ms), .parse = parse_duration, .max = PARSE_TIME_MAX_MS,
     .help = "How long workers that use liblaunch wait for one another; 0: for ever. A TIME is "
             "30 or 30s, 500ms, 1.5m, 2h."},
    {.name = "master-addr", .pet = "PET_MASTER_ADDR", .arg = "HOST", .def = "127.0.0.1",
     .group = GROUP_RENDEZVOUS, AT(master_addr), .parse = parse_host,
     .help = "MASTER_ADDR of the workers."},
    {.name = "master-port", .pet = "PET_MASTER_PORT", .arg = "PORT", .def = "0",
     .group = GROUP_RENDEZVOUS, AT(master_port), .parse = parse_u16, .max = UINT16_MAX,
     .help = "MASTER_PORT of the workers; 0: any free one, a fresh one for every attempt."},

    {.name = "max-restarts", .pet = "PET_MAX_RESTARTS", .arg = "N", .def = "0",
     .group = GROUP_RESTARTS, AT(max_restarts), .parse = parse_u32, .max = 1000000,
     .needs = NEED_RESTARTABLE,
     .help = "How often the job is started again after a worker failed."},
    {.name = "on-failure", .arg = "restart|heal|shrink|stop", .def = "restart",
     .group = GROUP_RESTARTS, AT(on_failure), .parse = parse_choice, .choices = FAILURE_WORDS,
     .help = "restart: all workers are started again; heal: only the lost one, and the others keep their "
             "processes, if the job can (launch_meet); shrink: the same, and without it once no restart is "
             "left; stop: nothing is. Each loss counts as a restart."},
    {.name = "min-workers", .arg = "N", .def = "1", .group = GROUP_RESTARTS, AT(min_workers),
     .parse = parse_u32, .min = 1, .max = BOARD_MAX_RANKS, .needs = NEED_SHRINKING,
     .help = "With --on-failure=shrink: with fewer workers the job does not go on."},
    {.name = "heal-timeout", .arg = "TIME", .def = "30s", .group = GROUP_RESTARTS,
     AT(heal_timeout_ms), .parse = parse_duration, .max = PARSE_TIME_MAX_MS, .needs = NEED_HEALING,
     .help = "How long a worker may take to meet the others again before it is replaced, too; 0: for "
             "ever."},
    {.name = "standby", .arg = "none|exec|cuda|nccl", .def = "none", .group = GROUP_RESTARTS, AT(standby),
     .parse = parse_choice, .choices = STANDBY_WORDS,
     .help = "exec: for --on-failure=heal, a process that has come as far as launch_join() waits for "
             "the place of a lost worker; cuda: with its GPU's context; nccl: with NCCL loaded, too."},
    {.name = "standby-count", .arg = "N", .def = "1", .group = GROUP_RESTARTS, AT(standby_count),
     .parse = parse_u32, .min = 1, .max = BOARD_MAX_RANKS, .needs = NEED_STANDBYS,
     .help = "How many standbys wait; those with a GPU are for one each, in order of rank."},
    {.name = "restart-window", .arg = "TIME", .def = "0", .group = GROUP_RESTARTS,
     AT(restart_window_ms), .parse = parse_duration, .max = PARSE_TIME_MAX_MS, .needs = NEED_RESTARTS,
     .help = "Restarts longer ago than this no longer count; 0: all count for ever."},
    {.name = "restart-refill", .def = "0", .group = GROUP_RESTARTS, AT(restart_refill),
     .parse = parse_switch, .needs = NEED_RESTARTS,
     .help = "A job that got further than ever before (launch_step) has all its restarts again."},
    {.name = "restart-limits", .arg = "CLASS:N,...", .def = "none", .group = GROUP_RESTARTS,
     AT(restart_limits), .parse = parse_limits, .list = true, .needs = NEED_RESTARTS,
     .help = "How many of the restarts each class of failure may use: startup, signal, hang, exit; "
             "same: how many the same failure in a row."},
    {.name = "restart-on", .arg = "CODES", .def = "all", .group = GROUP_RESTARTS, AT(restart_on),
     .parse = parse_codes, .list = true, .needs = NEED_RESTARTS,
     .help = "Ends of a worker after which the job is started again: exit codes, signals by name, "
             "signal (any), hang: 1,3-5,SIGSEGV."},
    {.name = "no-restart-on", .arg = "CODES", .def = "93,126,127", .group = GROUP_RESTARTS,
     AT(no_restart_on), .parse = parse_codes, .list = true, .needs = NEED_RESTARTS,
     .help = "Ends of a worker after which the job is not started again. By default, unless --restart-on "
             "is given, those are 93, by which a job asks for it, and 126 and 127, when a program or a "
             "library is missing."},

    {.name = "shutdown-timeout", .pet = "PET_SHUTDOWN_TIMEOUT", .arg = "TIME", .def = "30s",
     .group = GROUP_FAILURES, AT(shutdown_timeout_ms), .parse = parse_duration, .max = PARSE_TIME_MAX_MS,
     .help = "How long workers may take to end after SIGTERM before SIGKILL; 0: SIGKILL at once."},
    {.name = "timeout", .arg = "TIME", .def = "0", .group = GROUP_FAILURES, AT(timeout_ms),
     .parse = parse_duration, .max = PARSE_TIME_MAX_MS,
     .help = "How long the whole job may take, restarts included, before it is ended with exit code "
             "124; 0: for ever."},
    {.name = "signals-to-handle", .pet = "PET_SIGNALS_TO_HANDLE", .arg = "NAMES",
     .def = "SIGTERM,SIGINT,SIGHUP,SIGQUIT", .group = GROUP_FAILURES, AT(signals_to_handle),
     .parse = parse_signals, .list = true, .min = 1, .max = SIGLIST_MAX,
     .help = "Signals that end the job; the workers get the same one, and a second one means now."},
    {.name = "forward-signals", .arg = "NAMES", .def = "USR1,USR2,WINCH", .group = GROUP_FAILURES,
     AT(forward_signals), .parse = parse_signals, .list = true, .max = SIGLIST_MAX,
     .help = "Signals that are passed on to the workers, and the job goes on; none: no signal."},
    {.name = "hang-timeout", .arg = "TIME", .def = "0", .group = GROUP_FAILURES,
     AT(hang_timeout_ms), .parse = parse_duration, .max = PARSE_TIME_MAX_MS,
     .help = "A worker that gives no sign of life for so long hangs: the job is ended, with exit code 123 "
             "and a report of what each worker does; 0: never. Signs are launch_step(), WATCHDOG=1 to $NOTIFY_SOCKET "
             "(sd_notify), or, for a worker that gives neither, its output."},
    {.name = "exit-code", .arg = "worker|torchrun", .def = "worker", .group = GROUP_FAILURES,
     AT(exit_code), .parse = parse_choice, .choices = EXIT_WORDS,
     .help = "worker: exit with the code of the first worker that failed; torchrun: with 1 "
             "whatever failed."},

    {.name = "log-dir", .pet = "PET_LOG_DIR", .arg = "DIR", .group = GROUP_OUTPUT, AT(log_dir),
     .parse = output_parse_text,
     .help = "Log files go to attempt_<n>/<rank>/stdout.log and stderr.log in a new directory "
             "DIR/<run-id>_<random>, and after a failure failure.json to that directory itself. "
             "/dev/null: no log files."},
    {.name = "redirects", .letter = 'r', .pet = "PET_REDIRECTS", .arg = "MAP", .def = "0",
     .group = GROUP_OUTPUT, AT(redirects), .parse = output_parse_map, .list = true, .choices = MAP_WORDS,
     .help = "Streams that go to log files instead of the console: 1 stdout, 2 stderr, 3 both, for "
             "all ranks or, as 0:3,10:1, for some. Without --log-dir in a new directory below "
             "TMPDIR."},
    {.name = "tee", .letter = 't', .pet = "PET_TEE", .arg = "MAP", .def = "0",
     .group = GROUP_OUTPUT, AT(tee), .parse = output_parse_map, .list = true, .choices = MAP_WORDS,
     .help = "Streams that go to log files and to the console, there with a prefix before each line: "
             "[default0]: or what TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE makes of ${role_name}, "
             "${local_rank} and ${rank}."},
    {.name = "local-ranks-filter", .pet = "PET_LOCAL_RANKS_FILTER", .arg = "RANKS",
     .group = GROUP_OUTPUT, AT(shown_ranks), .parse = output_parse_list, .list = true,
     .help = "Ranks whose output the console shows, such as 0,2; all when it is not given."},
    {.name = "duplicate-stdout-filters", .pet = "PET_DUPLICATE_STDOUT_FILTERS", .arg = "TEXTS",
     .group = GROUP_OUTPUT, AT(stdout_filters), .parse = output_parse_text, .list = true,
     .help = "Lines on stdout of ranks with --tee that hold one of these texts go to "
             "attempt_<n>/filtered_stdout.log as well. Commas part texts; two commas are one in a "
             "text."},
    {.name = "duplicate-stderr-filters", .pet = "PET_DUPLICATE_STDERR_FILTERS", .arg = "TEXTS",
     .group = GROUP_OUTPUT, AT(stderr_filters), .parse = output_parse_text, .list = true,
     .help = "The same for stderr and filtered_stderr.log."},
    {.name = "log-rotate-size", .arg = "BYTES", .def = "0", .group = GROUP_OUTPUT,
     AT(rotate_bytes), .parse = output_parse_size, .needs = NEED_LOG_FILES,
     .help = "A log file that would become larger than this is renamed to stdout.log.1 and so on, "
             "and a new one begun; such as 64K, 10M or 2G. 0: never."},
    {.name = "log-rotate-keep", .arg = "N", .def = "5", .group = GROUP_OUTPUT, AT(rotate_keep),
     .parse = parse_u32, .min = 1, .max = 1000, .needs = NEED_ROTATION,
     .help = "How many renamed log files are kept of each."},
    {.name = "stdin", .arg = "none|RANK|all", .group = GROUP_OUTPUT, AT(stdin_mode),
     .parse = output_parse_stdin, .choices = STDIN_WORDS,
     .help = "Who gets the launcher's stdin: nobody, one rank, or all, who share it. By default a single "
             "worker gets it, and several do not."},
    {.name = "cgroup", .arg = "auto|off", .def = "auto", .group = GROUP_FAILURES, AT(cgroup),
     .parse = parse_choice, .choices = CGROUP_WORDS,
     .help = "auto: where this user may make one (cgroup v2, delegated), the workers live in a cgroup of their "
             "own, so that all of them can be killed at once; off: they stay in the launcher's."},

    {.name = "config", .arg = "FILE", .group = GROUP_FILE, AT(config), .parse = output_parse_text,
     .help = "Takes from a YAML file what neither the command line nor a variable says: settings, program, "
             "args, env. Behind -- come further arguments for the file's program; another "
             "program takes the place of the file's and of its arguments."},
    {.name = "print-config", .def = "0", .group = GROUP_FILE, AT(print_config), .parse = parse_switch,
     .help = "Shows every value in effect and where it came from, as a job file, and starts nothing."},
    {.name = "example-config", .def = "0", .group = GROUP_FILE, AT(example_config),
     .parse = parse_switch, .help = "Shows a job file with every setting explained, to start from."},

    {.name = "standalone", .pet = "PET_STANDALONE", .group = GROUP_TORCHRUN, .parse = parse_switch,
     .help = "Every job is one of its own."},
    {.name = "nnodes", .pet = "PET_NNODES", .arg = "1|1:1", .def = "1", .group = GROUP_TORCHRUN,
     .parse = torchrun_parse_nnodes, .help = "More than one server is not there yet."},
    {.name = "node-rank", .pet = "PET_NODE_RANK", .arg = "0", .def = "0", .group = GROUP_TORCHRUN,
     .parse = parse_u32, .help = "This server is the only one."},
    {.name = "rdzv-backend", .pet = "PET_RDZV_BACKEND", .arg = "static|c10d",
     .group = GROUP_TORCHRUN, .parse = parse_choice, .choices = BACKEND_WORDS,
     .help = "Workers meet in shared memory."},
    {.name = "rdzv-endpoint", .pet = "PET_RDZV_ENDPOINT", .arg = "HOST:PORT",
     .group = GROUP_TORCHRUN, .parse = torchrun_parse_endpoint,
     .help = "See --master-addr and --master-port."},
    {.name = "monitor-interval", .pet = "PET_MONITOR_INTERVAL", .arg = "TIME",
     .group = GROUP_TORCHRUN, .parse = parse_duration, .min = 1, .max = PARSE_TIME_MAX_MS,
     .help = "The end of a worker is noticed at once."},
    {.name = "start-method", .pet = "PET_START_METHOD", .arg = "spawn|fork|forkserver",
     .group = GROUP_TORCHRUN, .parse = parse_choice, .choices = START_WORDS,
     .help = "Workers are always programs of their own."},
    {.name = "rdzv-conf", .pet = "PET_RDZV_CONF", .arg = "KEY=VALUE,...", .group = GROUP_TORCHRUN,
     .parse = torchrun_parse_pairs, .help = "See --rendezvous-timeout."},
    {.name = "local-addr", .pet = "PET_LOCAL_ADDR", .arg = "HOST", .group = GROUP_TORCHRUN,
     .parse = torchrun_parse_anything, .help = "See --master-addr: workers meet on the loopback interface."},
    {.name = "event-log-handler", .pet = "PET_EVENT_LOG_HANDLER",
     .arg = "null|console|dynamic_rendezvous", .group = GROUP_TORCHRUN, .parse = parse_choice,
     .choices = EVENT_WORDS, .help = "There are no such events; see failure.json in --log-dir."},
    {.name = "logs-specs", .arg = "default", .group = GROUP_TORCHRUN, .parse = parse_choice,
     .choices = SPECS_WORDS,
     .help = "Python plug-ins for log files can't be loaded; see --log-dir, --tee, --redirects."},
    {.name = "use-env", .pet = "PET_USE_ENV", .group = GROUP_TORCHRUN, .parse = parse_switch,
     .help = "The local rank is always handed over in LOCAL_RANK."},
};
/* clang-format on */

const size_t FIELDS_N = ARRAY_LEN(FIELDS);

static_assert(ARRAY_LEN(FIELDS) <= SPEC_FIELDS_MAX, "job_spec.origin is too short");

const char *field_env(const struct field *field, char buf[FIELD_ENV_BYTES])
{
    snprintf(buf, FIELD_ENV_BYTES, "LAUNCH_%s", field->name);
    for (char *c = buf; *c; c++)
        *c = *c == '-' ? '_' : *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c;
    return buf;
}
