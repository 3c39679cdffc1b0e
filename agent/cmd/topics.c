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
     "A program that has a command's name is started as ./NAME or behind --.",
     false},
    {"program", "Python and other programs",
     "A program whose name ends in .py is run by $PYTHON_EXEC or, when that is not set, by the "
     "python of the PATH (so a virtual environment's), else the python3, with -u. Anything else "
     "is executed: binaries, scripts with a #! line, texts without one by /bin/sh, and shared "
     "objects with a launch_main() by liblaunch.\n"
     "In the program's arguments ${local_rank} and $local_rank become the worker's number, from 0 "
     "on; keep the shell from replacing them first. $${local_rank} stands for the text itself; "
     "any other dollar is left alone.",
     false},
    {"environment", "Environment",
     "Every option, but for those of job files, has a variable, LAUNCH_MAX_RESTARTS for "
     "--max-restarts, and some have "
     "torchrun's, named in brackets. The command line goes first, then LAUNCH_, then PET_, then "
     "the job file. An "
     "empty variable counts as not set.\n"
     "Workers find torchrun's variables: RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, "
     "MASTER_ADDR, MASTER_PORT and TORCHELASTIC_*. OMP_NUM_THREADS, when it is not set, is a fair "
     "share of the CPUs that the job may use (affinity mask and cgroup quota), at least 1.",
     false},
    {"restarts", "When a worker fails",
     "All workers are ended, and with --max-restarts=N all are started again, at most N times; "
     "with --restart-window only restarts younger than that count, with --restart-refill progress "
     "gives all N back. The first failure is tried again at once, the same one again after 100 "
     "ms, 200 ms, ... up to 30 s, and up to a quarter more by chance. --restart-limits lets a "
     "class of failure use fewer: startup (before all workers met or, in jobs without liblaunch, "
     "within 10 s), signal, hang, exit; and same, in a row. A job that ends with 93 asks not to "
     "be started again; what can't be started at all never is.",
     false},
    {"torchrun", "Coming from torchrun",
     "Put launch in the place of torchrun: options, PET_ variables, the workers' environment, log "
     "directories and error files are the same. These differ: the exit code is that of the first "
     "worker that failed (--exit-code=torchrun: 1); MASTER_PORT is a free one unless "
     "--master-port is given; only programs called *.py are run by Python (--run-path: any); "
     "$$ in arguments stays $$; --nnodes is 1.",
     false},
    {"completion", "Completion",
     "make install brings completion of options for bash, zsh and fish. For a copied binary: eval "
     "\"$(launch help --bash)\" in bash, or the output of launch help --zsh in a file _launch of "
     "zsh's fpath, or launch help --fish | source. launch help --man is the manual page.",
     false},
    {"job", "Rules of job files",
     "Keys are the names of options, with _ or -; program, args and env are the rest, and jobs "
     "for several jobs in one file. Paths are relative to the working directory. env is as good "
     "as exported before the start: PATH and CUDA_VISIBLE_DEVICES count for launch, too; "
     "${NAME} is a variable of launch's own there, $$ a dollar.\n"
     "Arguments and variables reach the job as they are written: no is \"no\", 010 is \"010\". "
     "In settings, what YAML's readers differ about is refused unless quoted: no value (~), "
     "leading zeros. So are unknown and repeated keys, tags, a second document, and more than 1 "
     "MiB.\n"
     "jobs: is a map of names and jobs, each with the keys of a job file; what the file says "
     "outside of them counts for all, unless a job says otherwise, and the command line and "
     "variables go before both. A job's key is its --name and begins its run id. Before "
     "anything runs, GPUs are taken for jobs that name theirs, then for those with a number, in "
     "the order of the file; if one gets none, or can't be started for another reason, none is. "
     "A job with wait stands in line for itself while the others run. One that fails leaves the "
     "others alone; the exit code is that of the first that did. Signals go to all, --detach "
     "puts each in the background by itself, and stdin is nobody's unless a job has stdin.",
     true},
    {"gpus", "GPUs for one job alone",
     "The locks are the kernel's, on files in /run/launch if an administrator has made that "
     "(root's, mode 1777; or 0755 with the files in it), else in /run/lock, else in /tmp, or in "
     "--lease-dir. The files stay there and mean nothing. Containers share leases when they "
     "share that directory (docker run -v /run/lock:/run/lock). Where it has come to /tmp and "
     "old files are removed there (systemd-tmpfiles: after ten days), so are the leases of jobs "
     "older than that: make /run/launch.\n"
     "The line of --wait is first come, first served; a job passes another one only if that is "
     "not delayed. A GPU that a program uses which launch did not start (NVML tells) is not "
     "free, unless --force says so; when such a program in another container ends, the line "
     "notices within a second. Jobs without --gpus put a shared hold on the GPUs that their "
     "workers use: --gpus avoids these, and who starts on a leased GPU is warned. The GPU of a "
     "MIG instance is held shared, so that nobody gets it as a whole (of a job without --gpus "
     "only if the instance has a name of the old form, MIG-GPU-...).\n"
     "A GPU goes into quarantine after an Xid that only a reset or a boot cures (48, 62, 64, "
     "74, 79, 95, 119, 120, 140), the like of it from NVML, or when the driver asks for a "
     "recovery action. Other jobs keep off it; those without --gpus are warned and take it if "
     "their workers need so many. The job itself shrinks with --on-failure=shrink, else it ends "
     "when the rank on that GPU fails. A program's own faults (13, 31, 43, 45) and those that "
     "are over (63, 92, 94) are restarted or healed as ever. The next boot ends a quarantine, "
     "and so does launch gpus --clear.",
     true},
    {"placement", "Where workers run",
     "Without --affinity a worker that has a GPU is bound to the CPUs of its GPU's NUMA node "
     "where the server has several nodes; elsewhere nobody is bound. All stays inside the mask "
     "and cpuset that launch was given. exclusive: the cores are divided among all GPUs of the "
     "node, so that jobs with different GPUs keep apart, and locked against other exclusive "
     "jobs; more workers than cores is an error. cores: shared when there are too few. Workers "
     "without GPUs are laid out evenly over all cores, neighbours together.\n"
     "OMP_NUM_THREADS is the number of physical cores that a bound worker has, or its share of "
     "them. What can't be done (a sandbox refuses the call, the cpuset has no CPU near the GPU) "
     "is told in one line, and the job runs. GPU memory that appears as a node without CPUs "
     "(Grace) is never bound to.\n"
     "With hwloc built in, HWLOC_XMLFILE or HWLOC_SYNTHETIC puts a recorded machine in the "
     "place of this one, for --report-placement to show what would become of a job there "
     "(HWLOC_THISSYSTEM=1: it is this one, and its mask counts).",
     true},
    {"output", "Lines and log files",
     "Lines of several workers reach stdout and stderr whole and never mixed, with their bytes "
     "unchanged; what has no newline (a prompt, a progress bar) follows after a tenth of a "
     "second. A slow reader slows the workers down; one that leaves (| head) ends the job. A "
     "single worker has the terminal.\n"
     "A disk that is full, or a log directory that was removed, costs log lines, which are "
     "counted and told, never the job.",
     true},
    {"failures", "What a failure report says",
     "The first worker that fails ends the others: SIGTERM, and SIGKILL after "
     "--shutdown-timeout, to everything they started, too. The report, on at most 25 lines, has "
     "the culprit's last lines on stderr, what it said through liblaunch or wrote to "
     "TORCHELASTIC_ERROR_FILE (a Python traceback, with PyTorch's @record), where its core dump "
     "is, known causes and fixes, and what may be tried. failure.json in the log directory says "
     "the same to programs.\n"
     "A rank that failed only because it lost its peer (Connection reset by peer) is not named "
     "first when another one failed by itself within 200 ms. An Xid that the NVIDIA driver told "
     "meanwhile, in /dev/kmsg where that may be read, or through NVML to jobs older than half a "
     "second, is named with its GPU. A SIGKILL is put down to the kernel's out-of-memory killer "
     "only if the cgroup's own counter proves it.\n"
     "When launch itself was started with TORCHELASTIC_ERROR_FILE, the reason, or the signal "
     "that ended the job, is written there in PyTorch's form (errorCode is -9 after SIGKILL). "
     "LAUNCH_LOG=debug shows what launch itself does.",
     true},
    {"signals", "Signals, and what is left of a job",
     "SIGINT (Ctrl-C), SIGTERM, SIGQUIT and, but under nohup, SIGHUP are passed on to the "
     "workers and end the job; a second one means now. SIGUSR1, SIGUSR2 and SIGWINCH are passed "
     "on and the job goes on. Ctrl-Z and fg stop and resume all workers.\n"
     "launch is two processes, the guard that the shell sees and the agent below it, which "
     "starts the workers. After kill -9 of the guard the agent ends the job, after that of the "
     "agent the guard does, both at once and with 137; that of a worker is a failure as any "
     "other. Daemons and data loaders in sessions of their own are ended, too. Nothing has a "
     "name that could stay, but for the server's few lock files of GPUs and cores. Where launch "
     "may make a cgroup (v2) below its own, the workers live in it and are killed as one.",
     true},
    {"steer", "Jobs that run",
     "RUN is a run id or a --name, or the beginning of one that no other job has. launch ps "
     "shows your own jobs, root's everybody's. attach ends with the job's exit code. A restart "
     "or a grow by command costs nothing of --max-restarts; restart --rank R does not give rank "
     "R the others' time to end, as it may hang. signal reaches the workers' own processes. "
     "status: memory and CPU are the worker's own, without its children's; standbys are "
     "starting or warm. A restart starts all ranks again, a healing those that were lost.\n"
     "A job of --detach outlives the terminal (with --wait, from when it has its GPUs); "
     "console.log in its log directory has what would have been seen. Where logind ends all "
     "processes at a logout, loginctl enable-linger is needed.\n"
     "A job listens on a socket that only its user and root may speak to, in "
     "$XDG_RUNTIME_DIR/launch, else /dev/shm/launch-<uid>, with --detach /tmp/launch-<uid>. It "
     "goes with the job, and where both processes of launch were killed, with the next launch "
     "ps. Where no such directory can be made, the job runs without. At most 16 may be "
     "connected to a job at once.",
     true},
    {"heal", "Losing a rank and going on",
     "With --on-failure=heal a rank that dies, fails or hangs gets a new process in the same "
     "place; a job can do that when it calls launch_meet(). One that never calls it is started "
     "again as a whole. Every loss counts against --max-restarts, with the limits and waits of "
     "a restart; when none is left the job fails as ever. A rank that does not meet the others "
     "within --heal-timeout is killed and replaced, too, and so is one that --hang-timeout "
     "finds. One that has called launch_leave() already is called back: its place gets a new "
     "process once it has ended, or when that time is over. Of a dead rank everything is killed, "
     "its daemons, too. The new process goes on in "
     "its log files, after a line that says so.\n"
     "--on-failure=shrink heals as long as restarts are left (--max-restarts=0: not at all), "
     "then goes on without the lost rank, never with fewer than --min-workers. launch_rank() "
     "and launch_world_size() change, RANK and WORLD_SIZE do not; messages and log files keep "
     "the first numbers. launch grow brings lost ranks back, and so does the end of the "
     "quarantine of a rank's GPU: the others get LAUNCH_AGAIN, make the step at hand again in "
     "the larger world, and keep what they have committed.\n"
     "A standby has LAUNCH_SPARE=1 in its environment (2: cuda, 3: nccl), no RANK, and an empty "
     "TORCHELASTIC_ERROR_FILE. launch_join() sets RANK, ROLE_RANK and LOCAL_RANK once it has "
     "become a rank; what it wrote before comes out then. Where ranks have CPUs, arguments or a "
     "GPU of their own, standby N is for rank N; a warm one takes another rank's place, "
     "too, but with a GPU slower then. cuda and nccl take some hundred MiB of that GPU's memory. "
     "While they "
     "start, standbys get a tenth of a CPU that others want, too (where the kernel has "
     "autogroups and no cgroup divides the CPUs). When memory runs out they go before a rank "
     "does; one that ended so, or otherwise, is no failure, and another is started with the "
     "next loss.\n"
     "With NCCL, NVLS is off (NCCL_NVLS_ENABLE=0), and GPUs share memory by CUDA's older IPC "
     "(NCCL_CUMEM_ENABLE=0), which connects ranks in 7 ms instead of 170, unless these variables "
     "are set. With a standby of nccl for each GPU ranks that heal read what those have found out "
     "about the server (NCCL_TOPO_FILE, unless the environment, an nccl.conf or the server has "
     "one). Survivors are "
     "freed from collectives that the dead never end, in launch_nccl_wait() at once and in "
     "cudaStreamSynchronize(), too; but what was cut short looks finished then, and "
     "launch_check() tells. Calls on the communicator stand inside launch_nccl_call(), a group "
     "between launch_nccl_enter() and launch_nccl_leave(); a call outside of them may hang, as "
     "another thread takes the communicator away when a rank is lost. For that it does not "
     "block, and NCCL makes a thread for each call or group on it: small collectives take tens "
     "of microseconds longer than in a job that does not heal. After launch_meet() the "
     "old one's work is over, and launch_nccl_comm() gives a new one. CUDA graphs with its work "
     "are destroyed before.",
     true},
    {"doctor", "Looking for what is wrong",
     "launch doctor looks at the driver and its device nodes, Fabric Manager, errors in the "
     "kernel's log, memory rows, modes, who else is on the GPUs, P2P, PCIe, ACS and IOMMU, "
     "/dev/shm, limits, the container, NCCL's variables and files, and copies of libnccl. It "
     "changes nothing and needs no privileges; what only root may see it could not look at, "
     "which is said and not counted as bad. NVML is asked in a process of its own for at most "
     "10 s. Exit code: 1 if something is broken, else 0.\n"
     "launch doctor RUN looks into a running job, twice within a second or so: which ranks "
     "moved, who is behind (steps and collectives of liblaunch, a process that was stopped, "
     "operations that NCCL's RAS counts, NCCL 2.24 and later), and where each rank is, with its "
     "stack if libdw is there and with Python's if py-spy is. It takes ten seconds at most. "
     "Exit code: 1 if the job makes no progress.\n"
     "launch doctor --log looks lines that CUDA, NCCL, Gloo and PyTorch leave up in a table of "
     "causes, fixes and public issues: in a file, a pipe (- is stdin), or what --log-dir has "
     "kept, of any size. A vague one (ncclInternalError) gives way to the reason before it.",
     true},
    {"security", "Who is trusted with what",
     "launch needs no privileges and is no border: a job may do what the user who starts it may "
     "do. Never install it setuid: it believes its environment. Other variables, LD_PRELOAD "
     "too, go through as they are, to the workers and to the agent's own helpers (those that "
     "ask NVML, py-spy).\n"
     "The control socket is in a directory that only its user may enter, the kernel tells the "
     "agent who connects, and only that user and root are answered. A directory of somebody "
     "else's, or one that others may enter, is not used. Log directories have names that can't "
     "be guessed and mode 0700; files in them are made new and never followed through a link.\n"
     "Who may write to a lease directory may hold a lock, stand in line, or put a GPU into "
     "quarantine for as long as he likes; he can't do more. It must be root's or one's own, and "
     "sticky if others may write; lock files must be plain files of mode 0666 with one name, "
     "what stands in them is for people, and no process is signalled because of it. Who may "
     "rename the directory itself may part its users. Where that is not enough, use the "
     "cgroup's devices.\n"
     "What a job of another user's tells root is checked for kind, length, range and end; "
     "launch logs and attach then read plain files of that user only, doctor looks at processes "
     "of that user only. As root, a working directory or --log-dir in which all users may "
     "replace files (mode o+w without the sticky bit) is warned of.\n"
     "The workers of a job share memory, and a broken one may spoil the others' data; but "
     "whatever it writes to the shared board crashes neither the agent nor liblaunch in the "
     "others, and the agent signals what it has itself started, never a number from the board. "
     "Every input is bounded.\n"
     "Not promised: to keep workers from harming their own user's processes, the agent among "
     "them; to keep a server from being filled up (memory, disk, processes) by who may do so. "
     "An NCCL_SOCKET_IFNAME other than lo opens NCCL's ports to the network, and so does "
     "--master-addr with the program's own store; on lo, other users of the server may connect "
     "to them, as neither NCCL nor PyTorch's store asks who it is.",
     true},
    {"exit-codes", "Exit codes", NULL, false},
};
const size_t TOPICS_N = ARRAY_LEN(TOPICS);

#define EXIT_ROW(n, name, text) {#n, text},
const struct exit_row EXIT_ROWS[] = {EXIT_CODE_LIST(EXIT_ROW){
    "other",
    "the code of the first worker that failed; 128+n for signal n, a worker's or launch's"}};
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
