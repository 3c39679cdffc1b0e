/* SPDX-License-Identifier: MIT */
#include "trial.h"

#include "../../proto/clock.h"
#include "../../proto/status.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define LOG_BYTES_MAX (64u << 20)        /* of one process */
#define LIMIT_MS_MAX (24u * 3600 * 1000) /* four of them fit 32 bits */
#define WAIT_MS_MAX (4u * LIMIT_MS_MAX)  /* beside them, still; longer is for ever */
#define LINE_BYTES 4096                  /* NCCL's end at 1024 */
#define GRACE_MS                                                                                   \
    15000 /* for launch to look at what hangs, and to end it, behind its own deadline */

/* ---- the directory of logs ---- */

static int make_dir(char path[PATH_MAX], struct err *err)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(path, PATH_MAX, "%s/launch-nccl-XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp");
    if (mkdtemp(path))
        return 0;
    int rc = err_set_errno(err, -errno, "%s: no directory for NCCL's log", path);
    path[0] = '\0';
    return rc;
}

/* Written by the job, so perhaps no file, or one without an end. */
static void read_log(struct nccl_log *log, int dir, const char *name)
{
    char line[LINE_BYTES];
    size_t total = 0;
    AUTO_FD fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    FILE *in = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? fdopen(fd, "r") : NULL;
    if (!in)
        return;
    take_fd(&fd);
    while (total < LOG_BYTES_MAX && fgets(line, sizeof line, in)) {
        size_t n = strnlen(line, sizeof line);
        total += n;
        nccl_log_line(log, line, n);
    }
    fclose(in);
}

/* Reads what is in it and removes it. */
static void take_dir(struct nccl_log *log, const char *path)
{
    DIR *dir = *path ? opendir(path) : NULL;
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        if (entry->d_name[0] == '.')
            continue;
        if (log)
            read_log(log, dirfd(dir), entry->d_name);
        unlinkat(dirfd(dir), entry->d_name, 0);
    }
    if (dir)
        closedir(dir);
    if (*path)
        rmdir(path);
}

/* ---- the run ---- */

static size_t count(char *const *list)
{
    size_t n = 0;
    while (list && list[n])
        n++;
    return n;
}

static unsigned hang_ms(const struct trial_request *request)
{
    return request->limit_ms < LIMIT_MS_MAX ? request->limit_ms : LIMIT_MS_MAX;
}

unsigned trial_limit_ms(const struct trial_request *request)
{
    if (request->wait_ms > WAIT_MS_MAX)
        return 0;
    return (unsigned)request->wait_ms + 4 * hang_ms(request) + GRACE_MS;
}

static int run(const struct trial_request *request, const char *dir, struct trial *ret,
               struct err *err)
{
    unsigned limit_ms = hang_ms(request);
    char hang[64], whole[64], file[PATH_MAX + 64];
    snprintf(hang, sizeof hang, "--hang-timeout=%ums", limit_ms);
    snprintf(whole, sizeof whole, "--timeout=%ums", 4 * limit_ms);
    snprintf(file, sizeof file, "NCCL_DEBUG_FILE=%s/%%p", dir);
    char *forced[] = {hang,
                      whole,
                      (char *)"--rendezvous-timeout=0",
                      (char *)"--shutdown-timeout=2s",
                      (char *)"--max-restarts=0",
                      (char *)"--on-failure=restart",
                      (char *)"--standby=none",
                      (char *)"--exit-code=worker",
                      (char *)"--detach=0",
                      (char *)"--redirects=0",
                      (char *)"--tee=0",
                      (char *)"--no-python"};
    char *log[] = {(char *)"NCCL_DEBUG=INFO",
                   (char *)"NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,ENV,P2P,SHM,NET,GRAPH,TUNING,NVLS",
                   file};
    size_t options = count(request->options), job = count(request->job), env = count(request->env);
    size_t words_n = options + ARRAY_LEN(forced) + job + 1;
    AUTO_FREE char **words = calloc(words_n + env + ARRAY_LEN(log) + 1, sizeof *words);
    if (!words)
        return err_set_errno(err, -ENOMEM, "the job's words");
    char **variables = words + words_n;
    char **at = mempcpy(words, request->options, options * sizeof *words);
    at = mempcpy(at, forced, sizeof forced);
    memcpy(at, request->job, job * sizeof *words);
    at = mempcpy(variables, log, sizeof log);
    if (env)
        memcpy(at, request->env, env * sizeof *variables);
    uint64_t start_ns = clock_now_ns();
    int rc = child_run(&(struct child_request){.words = words,
                                               .env = variables,
                                               .limit_ms = trial_limit_ms(request),
                                               .collect = true,
                                               .on_line = request->on_line,
                                               .user = request->user},
                       &ret->end, err);
    ret->seconds = (double)(clock_now_ns() - start_ns) / (double)NS_PER_S;
    return rc;
}

int trial_run(const struct trial_request *request, struct trial *ret, struct err *err)
{
    char dir[PATH_MAX] = "";
    *ret = (struct trial){.log = calloc(1, sizeof *ret->log)};
    int rc = ret->log ? make_dir(dir, err) : err_set_errno(err, -ENOMEM, "NCCL's log");
    if (rc == 0)
        rc = run(request, dir, ret, err);
    take_dir(ret->log, dir);
    if (rc < 0)
        trial_finish(ret);
    return rc;
}

void trial_finish(struct trial *trial)
{
    tail_finish(&trial->end.said);
    free(trial->log);
    *trial = (struct trial){0};
}

bool trial_hung(const struct trial *trial)
{
    return trial->end.timed_out || trial->end.code == EXIT_CODE_HANG ||
           trial->end.code == EXIT_CODE_DEADLINE;
}
