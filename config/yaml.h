/* SPDX-License-Identifier: MIT */
/* YAML text as a tree, within limits, every error with its place. Knows no setting; the one file behind it is the only
 * one that knows libyaml. */
#ifndef LAUNCH_CONFIG_YAML_H
#define LAUNCH_CONFIG_YAML_H

#include "../proto/err.h"

#include <stdbool.h>

/* Far more than a job file needs, and little enough that no file can keep us busy. */
#define YAML_MAX_BYTES (1u << 20)
#define YAML_MAX_DEPTH 16
#define YAML_MAX_NODES 10000
#define YAML_MAX_ANCHORS 100
#define YAML_MAX_ALIASES 1000

enum yaml_kind { YAML_TEXT, YAML_LIST, YAML_MAP };

struct yaml_node {
    enum yaml_kind kind;
    bool plain;                    /* a text without quotes */
    unsigned line, column;         /* where it begins, or where the alias stands; from 1 */
    const char *text;              /* YAML_TEXT: as written, no type is guessed; holds no NUL */
    const struct yaml_node *first; /* child; of a map: key, value, key, value, ... */
    const struct yaml_node *next;  /* sibling */
};

struct yaml_tree {
    const char *name;             /* borrowed: the file, for errors */
    const struct yaml_node *root; /* NULL: a file of blanks and comments */
    struct yaml_cell *cells;      /* owned: all nodes and texts */
};

/* Reads one document. An alias is a second sight of a node, never a copy. -EINVAL: "name:line:column: what"; refused are
 * tags, a second document, NUL, anything that is not UTF-8, and what is beyond the limits. -ENOMEM. On failure there
 * is nothing to free. */
MUST_CHECK int yaml_tree_read(struct yaml_tree *tree, const char *name, const char *text, size_t n,
                              struct err *err);
void yaml_tree_free(struct yaml_tree *tree);

/* "name:line:column: what"; returns -EINVAL. */
int yaml_refuse(const struct yaml_tree *tree, const struct yaml_node *at, struct err *err,
                const char *format, ...) PRINTF_LIKE(4, 5);

#endif
