/* SPDX-License-Identifier: MIT */
/* Any bytes as what others say a line at a time: the kernel's log, a worker's messages to NOTIFY_SOCKET and its output,
 * core_pattern, arguments. A byte says which. */
#include "../../agent/clean.h"
#include "../../agent/corefile.h"
#include "../../agent/macro.h"
#include "../../agent/notify.h"
#include "../../agent/prefix.h"
#include "../../agent/sieve.h"
#include "../../agent/xid.h"

#include "fuzz.h"

static void on_xid(void *user, const struct xid *xid)
{
    char text[GPU_FAULT_TEXT_BYTES];
    (void)user;
    must(strlen(xid->pci) < sizeof xid->pci && xid->pid >= 0, "an Xid of nobody");
    check_clean(gpu_fault_text(xid->fault, text));
    (void)xid_is_of(xid, "0000:18:00.0");
}

static void read_log(struct fuzz_in *in)
{
    int fd = file_of(in->at, in_left(in), 0);
    xid_read(fd, on_xid, NULL);
    close_fd(&fd);
}

static void take_message(struct fuzz_in *in)
{
    struct notify_rank r = {0};
    notify_parse(&r, (const char *)in->at, in_left(in));
    check_clean(r.status);
    must(r.messages + r.watchdogs <= in_left(in), "more messages than bytes");
}

static void on_line(void *user, const char *line, size_t n)
{
    const struct needles *needles = user;
    must(needles_match(needles, line, n) && !memchr(line, '\n', n), "a line that does not match");
}

/* Comes in two pieces, cut anywhere. Every byte comes out again, and as many prefixes as lines begin. */
static void pass_output(struct fuzz_in *in)
{
    struct needles needles;
    struct sieve sieve = {0};
    struct prefix prefix;
    struct err err;
    char out[PREFIX_MAX_BYTES + 64];
    bool mid_line = false;
    size_t cut = in_u8(in), n = in_left(in), total = 0, lines = 0;
    const char *data = (const char *)in->at, *at = data;
    size_t left = n;
    cut = cut < n ? cut : n;
    must(needles_init(&needles, "ERROR,loss,,acc") == 0, "no memory");
    sieve_add(&sieve, &needles, data, cut, on_line, &needles);
    sieve_add(&sieve, &needles, data + cut, n - cut, on_line, &needles);
    sieve_finish(&sieve, &needles, on_line, &needles);
    needles_finish(&needles);
    must(prefix_make(&prefix, NULL, "trainer", 3, &err) == 0, "no prefix");
    while (left)
        total += prefix_lines(&prefix, &mid_line, &at, &left, out, sizeof out);
    for (size_t i = 0; i < n; i++)
        lines += i == 0 || data[i - 1] == '\n';
    must(total == n + lines * prefix.n, "bytes are missing");
}

static void take_words(struct fuzz_in *in)
{
    char shown[128], tiny[5];
    struct prefix prefix;
    struct err err;
    char *text = in_text(in);
    check_clean(clean(shown, sizeof shown, text));
    check_clean(clean(tiny, sizeof tiny, text));
    (void)corefile_describe(text, true, 4711, shown, sizeof shown);
    char *expanded = macro_expand(text, 12);
    must(expanded != NULL, "no memory");
    must(macro_in(text) || strcmp(expanded, text) == 0, "changed without a macro");
    free(expanded);
    if (prefix_make(&prefix, text, "trainer", 3, &err) < 0)
        check_line(&err);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static void (*const readers[])(struct fuzz_in * in) = {read_log, take_message, pass_output,
                                                           take_words};
    struct fuzz_in in = {data, data + n};
    readers[in_u8(&in) % ARRAY_LEN(readers)](&in);
    return 0;
}
