/* SPDX-License-Identifier: MIT */
#include "topo.h"

#include "../../proto/env.h"
#include "../../proto/status.h"
#include "../log.h"
#include "../topo.h"
#include "suggest.h"
#include "transports.h"

#include <stdio.h>
#include <string.h>

#define NVML_LIMIT_MS                                                                              \
    10000 /* NVML may take seconds where persistence mode is off; one that hangs never comes */

static const char help[] =
    "usage: launch topo [--matrix | --p2p=r|w|n|a|p | --format=text|json|xml|svg|dot]\n"
    "       launch topo --transports [--format=text|json] [options of launch]\n"
    "\n"
    "Shows the GPUs and network cards of this server, how they reach one another,\n"
    "which CPUs and memory are near, what that means for a job, and what looks wrong.\n"
    "\n"
    "  -m, --matrix    how they reach one another, and nothing else: the quickest\n"
    "  --format=text   tables and words (the default)\n"
    "  --format=json   everything, for programs\n"
    "  --format=xml    for NCCL_TOPO_FILE\n"
    "  --format=svg    a picture\n"
    "  --format=dot    for Graphviz\n"
    "  --p2p=r         which GPUs can read each other's memory; w write, n NVLink,\n"
    "                  a atomics, p PCIe\n"
    "  --transports    what NCCL really uses between the GPUs, by trying\n"
    "\n"
    "Exit code: 0; 2 wrong words; 125 there is no GPU, or NVML does not tell.\n";

void topo_help(FILE *out)
{
    fputs(help, out);
}

static const struct {
    const char *name;
    void (*show)(FILE *out, const struct topology *t); /* NULL: text */
    unsigned want;                                     /* what it shows of NVML's */
} formats[] = {
    {"text", NULL, NVML_MATRIX | NVML_REST | NVML_P2P(P2P_READ) | NVML_ONE_WAY},
    {"json", topo_json, NVML_ALL},
    {"xml", topo_xml, NVML_MATRIX | NVML_REST},
    {"svg", topo_svg, NVML_MATRIX | NVML_REST},
    {"dot", topo_dot, NVML_MATRIX | NVML_REST},
};

struct asked {
    size_t format;
    bool matrix, p2p, help;
    enum nvml_p2p kind;
};

static int take_format(struct asked *asked, const char *value, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(formats); i++)
        if (strcmp(formats[i].name, value) == 0) {
            asked->format = i;
            return 0;
        }
    return err_set(err, -EINVAL, "--format=%s: one of text, json, xml, svg and dot is needed",
                   value);
}

static int take_p2p(struct asked *asked, const char *value, struct err *err)
{
    static const char letters[] = "rwnap";
    const char *at = *value && !value[1] ? strchr(letters, *value) : NULL;
    if (!at)
        return err_set(
            err, -EINVAL,
            "--p2p=%s: one of r (read), w (write), n (NVLink), a (atomics) and p (PCIe) is needed",
            value);
    asked->p2p = true;
    asked->kind = (enum nvml_p2p)(at - letters);
    return 0;
}

static int parse(struct asked *asked, int argc, char **argv, struct err *err)
{
    static const struct {
        const char *name;
        int (*take)(struct asked *asked, const char *value, struct err *err);
    } options[] = {{"--format", take_format}, {"--p2p", take_p2p}};
    static const char *const known[] = {"--matrix", "--p2p", "--format", "--transports", NULL};
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        size_t n = strcspn(word, "="), k = 0;
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            asked->help = true;
            return 0;
        }
        if (strcmp(word, "--matrix") == 0 || strcmp(word, "-m") == 0) {
            asked->matrix = true;
            continue;
        }
        while (k < ARRAY_LEN(options) &&
               (strlen(options[k].name) != n || strncmp(options[k].name, word, n) != 0))
            k++;
        if (k == ARRAY_LEN(options))
            return suggest_refuse(err, "topo", word,
                                  *word == '-' ? "unknown option" : "one word too many", known);
        if (!word[n] && i + 1 == argc)
            return err_set(err, -EINVAL, "%s: a value is needed", word);
        int rc = options[k].take(asked, word[n] ? word + n + 1 : argv[++i], err);
        if (rc < 0)
            return rc;
    }
    if (asked->p2p && asked->format != 0)
        return err_set(err, -EINVAL, "--p2p goes with --format=text; json has all of it");
    if (asked->matrix && (asked->p2p || asked->format != 0))
        return err_set(err, -EINVAL, "--matrix goes with neither --p2p nor --format");
    return 0;
}

static unsigned wants(const struct asked *asked)
{
    return asked->matrix ? NVML_MATRIX
           : asked->p2p  ? NVML_P2P(asked->kind)
                         : formats[asked->format].want;
}

static void show(const struct topology *t, const struct asked *asked)
{
    bool colour = log_wants_colour(STDOUT_FILENO);
    if (asked->matrix)
        topo_matrix(stdout, t, colour);
    else if (asked->p2p)
        topo_p2p(stdout, t, asked->kind, colour);
    else if (formats[asked->format].show)
        formats[asked->format].show(stdout, t);
    else
        topo_text(stdout, t, colour);
}

/* There is a matrix at all; and P2P is NVML's alone to know. */
static int check(const struct topology *t, const struct asked *asked, struct err *err)
{
    if (asked->matrix && !t->list.n)
        return err_set(err, -ENODEV, "--matrix: no GPU that this process may use");
    if (!asked->p2p)
        return 0;
    if (t->list.vendor != GPU_NVIDIA)
        return err_set(err, -ENODEV, "--p2p: no NVIDIA GPU that this process may use");
    if (!t->nvml || !t->nvml->usable)
        return err_set(err, -ENODEV, "--p2p: NVML can't be used: %s",
                       t->nvml ? t->nvml->why : "no process for it");
    return 0;
}

int cmd_topo(int argc, char **argv)
{
    struct asked asked = {0};
    struct err err;
    struct topology *t = NULL;
    const char *sysroot = getenv(ENV_SYSROOT);
    if (transports_asked(argc, argv))
        return cmd_transports(argc, argv);
    if (parse(&asked, argc, argv, &err) < 0) {
        log_error("%s", err.text);
        return EXIT_CODE_USAGE;
    }
    if (asked.help)
        return fputs(help, stdout) < 0 ? EXIT_CODE_OURS : EXIT_CODE_OK;
    if (topology_read(&t, sysroot ? sysroot : "", wants(&asked), NVML_LIMIT_MS, &err) < 0 ||
        check(t, &asked, &err) < 0) {
        log_error("%s", err.text);
        topology_free(t);
        return EXIT_CODE_OURS;
    }
    show(t, &asked);
    topology_free(t);
    return EXIT_CODE_OK;
}
