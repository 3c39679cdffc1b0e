/* SPDX-License-Identifier: MIT */
/* See yaml.h. Owns the conversation with libyaml: its events become nodes. Must never know what a key means. */
#include "yaml.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h> /* NOLINT(readability-duplicate-include): libyaml's */

struct yaml_cell {
    struct yaml_cell *older;
    struct yaml_node node;
    char text[];
};

struct anchor {
    char *name; /* owned */
    const struct yaml_node *node;
};

struct reader {
    yaml_parser_t parser;
    struct yaml_tree *tree;
    const char *text;
    size_t n;
    unsigned nodes, aliases, anchors_n;
    struct anchor anchors[YAML_MAX_ANCHORS];
    struct err *err;
};

/* ---- errors ---- */

PRINTF_LIKE(5, 0)
static int refuse_at(const char *name, unsigned line, unsigned column, struct err *err,
                     const char *format, va_list ap)
{
    char what[300];
    vsnprintf(what, sizeof what, format, ap);
    err_set(err, -EINVAL, "%.150s:%u:%u: %s", name, line, column, what);
    return -EINVAL;
}

int yaml_refuse(const struct yaml_tree *tree, const struct yaml_node *at, struct err *err,
                const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    int r = refuse_at(tree->name, at->line, at->column, err, format, ap);
    va_end(ap);
    return r;
}

PRINTF_LIKE(3, 4)
static int refuse(struct reader *r, yaml_mark_t mark, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    int rc = refuse_at(r->tree->name, (unsigned)mark.line + 1, (unsigned)mark.column + 1, r->err,
                       format, ap);
    va_end(ap);
    return rc;
}

static int no_memory(struct reader *r)
{
    err_set(r->err, -ENOMEM, "%.150s: out of memory", r->tree->name);
    return -ENOMEM;
}

/* libyaml's marks count characters; a place that it gives in bytes, and our own, are found here. */
static yaml_mark_t mark_of(const struct reader *r, size_t offset)
{
    yaml_mark_t mark = {0};
    for (size_t i = 0; i < offset && i < r->n; i++) {
        bool newline = r->text[i] == '\n';
        mark.line += newline;
        mark.column = newline ? 0 : mark.column + 1;
    }
    return mark;
}

static const char *line_begin(const struct reader *r, size_t line)
{
    const char *at = r->text, *end = r->text + r->n;
    for (; line > 0 && at; line--) {
        at = memchr(at, '\n', (size_t)(end - at));
        at = at ? at + 1 : NULL;
    }
    return at ? at : end;
}

/* Whether a tab stands among the blanks that a line begins with. */
static bool is_indented_with_tab(const struct reader *r, size_t line)
{
    const char *at = line_begin(r, line), *end = r->text + r->n;
    while (at < end && *at == ' ')
        at++;
    return at < end && *at == '\t';
}

static bool has_variable(const struct reader *r, size_t line)
{
    const char *at = line_begin(r, line), *end = line_begin(r, line + 1);
    return memmem(at, (size_t)(end - at), "${", 2) != NULL;
}

/* A ':' that begins a value where none may begin: what the mark's line, and what stands before the mark in it, tell of the
 * mistake. Columns are characters, and libyaml's lines also end with a lone carriage return: there it is at worst explained
 * wrongly. */
static const char *explain_mapping(const struct reader *r, yaml_mark_t mark)
{
    const char *at = line_begin(r, mark.line), *end = r->text + r->n;
    if (memchr(at, ':', mark.column < (size_t)(end - at) ? mark.column : 0))
        return "; a text that holds ': ' must be quoted";
    return at < end && *at == ' ' ? "; is this line indented too far?"
                                  : "; is there no blank behind the ':' of the line above?";
}

/* What libyaml says, with the mistakes that it has no words for. */
static int explain(struct reader *r)
{
    const yaml_parser_t *p = &r->parser;
    yaml_mark_t mark = p->problem_mark;
    char from[32] = "";
    if (p->error == YAML_MEMORY_ERROR)
        return no_memory(r);
    if (p->error == YAML_READER_ERROR)
        return refuse(r, mark_of(r, p->problem_offset), "no UTF-8 text: %s", p->problem);
    if (is_indented_with_tab(r, mark.line))
        return refuse(r, mark, "a tab: YAML takes only blanks before a key");
    if (!p->context)
        return refuse(r, mark, "%s%s", p->problem,
                      strncmp(p->problem, "mapping values", 14) == 0 ? explain_mapping(r, mark)
                                                                     : "");
    if (p->context_mark.line != mark.line)
        snprintf(from, sizeof from, ", begun on line %zu", p->context_mark.line + 1);
    return refuse(r, mark, "%s%s: %s%s", p->context, from, p->problem,
                  has_variable(r, mark.line) ? "; within { } a ${NAME} must be quoted" : "");
}

/* ---- events ---- */

static int next_event(struct reader *r, yaml_event_t *event)
{
    return yaml_parser_parse(&r->parser, event) ? 0 : explain(r);
}

/* copied: bytes of node.text that are copied, with its NUL; 0: none, it stays the text of another node. */
static int add_node(struct reader *r, const yaml_event_t *event, struct yaml_node node,
                    size_t copied, struct yaml_node **ret)
{
    if (++r->nodes > YAML_MAX_NODES)
        return refuse(r, event->start_mark, "more than %d words: too much for a job file",
                      YAML_MAX_NODES);
    struct yaml_cell *cell = malloc(sizeof *cell + copied);
    if (!cell)
        return no_memory(r);
    cell->older = r->tree->cells;
    r->tree->cells = cell;
    cell->node = node;
    cell->node.line = (unsigned)event->start_mark.line + 1;
    cell->node.column = (unsigned)event->start_mark.column + 1;
    if (copied > 0)
        cell->node.text = memcpy(cell->text, node.text, copied);
    *ret = &cell->node;
    return 0;
}

static struct anchor *find_anchor(struct reader *r, const char *name)
{
    for (unsigned i = 0; i < r->anchors_n; i++)
        if (strcmp(r->anchors[i].name, name) == 0)
            return &r->anchors[i];
    return NULL;
}

/* Once the node is complete: so no node can contain itself. A name that is given again means the newer node. */
static int remember(struct reader *r, const char *name, yaml_mark_t mark,
                    const struct yaml_node *node)
{
    struct anchor *anchor = find_anchor(r, name);
    if (!anchor && r->anchors_n == YAML_MAX_ANCHORS)
        return refuse(r, mark, "more than %d anchors", YAML_MAX_ANCHORS);
    if (!anchor) {
        anchor = &r->anchors[r->anchors_n];
        anchor->name = strdup(name);
        if (!anchor->name)
            return no_memory(r);
        r->anchors_n++;
    }
    anchor->node = node;
    return 0;
}

static int take_alias(struct reader *r, const yaml_event_t *event, struct yaml_node **ret)
{
    const char *name = (const char *)event->data.alias.anchor;
    const struct anchor *anchor = find_anchor(r, name);
    if (!anchor)
        return refuse(r, event->start_mark, "no anchor &%.60s before this alias", name);
    if (++r->aliases > YAML_MAX_ALIASES)
        return refuse(r, event->start_mark, "more than %d aliases", YAML_MAX_ALIASES);
    struct yaml_node seen = *anchor->node;
    seen.next = NULL;
    return add_node(r, event, seen, 0, ret);
}

static int take_scalar(struct reader *r, const yaml_event_t *event, struct yaml_node **ret)
{
    size_t n = event->data.scalar.length;
    const char *value = (const char *)event->data.scalar.value;
    if (memchr(value, '\0', n))
        return refuse(r, event->start_mark, "a NUL in a text");
    struct yaml_node node = {
        .kind = YAML_TEXT,
        .plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE,
        .text = value,
    };
    return add_node(r, event, node, n + 1, ret);
}

static int take_node(struct reader *r, const yaml_event_t *event, unsigned depth,
                     struct yaml_node **ret);

static int take_children(struct reader *r, yaml_event_type_t end, unsigned depth,
                         struct yaml_node *parent)
{
    const struct yaml_node **link = &parent->first;
    for (;;) {
        yaml_event_t event;
        int rc = next_event(r, &event);
        if (rc < 0)
            return rc;
        bool last = event.type == end;
        struct yaml_node *child = NULL;
        if (!last)
            rc = take_node(r, &event, depth + 1, &child);
        yaml_event_delete(&event);
        if (rc < 0 || last)
            return rc;
        *link = child;
        link = &child->next;
    }
}

/* A list or a map. *ret is NULL before. */
static int take_group(struct reader *r, const yaml_event_t *event, unsigned depth,
                      struct yaml_node **ret)
{
    bool is_map = event->type == YAML_MAPPING_START_EVENT;
    if (depth >= YAML_MAX_DEPTH)
        return refuse(r, event->start_mark, "nested deeper than %d", YAML_MAX_DEPTH);
    struct yaml_node node = {.kind = is_map ? YAML_MAP : YAML_LIST};
    int rc = add_node(r, event, node, 0, ret);
    if (!*ret)
        return rc;
    return take_children(r, is_map ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT, depth, *ret);
}

static int take_node(struct reader *r, const yaml_event_t *event, unsigned depth,
                     struct yaml_node **ret)
{
    const yaml_char_t *anchor, *tag;
    int rc;
    switch (event->type) {
    case YAML_ALIAS_EVENT:
        return take_alias(r, event, ret);
    case YAML_SCALAR_EVENT:
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
        rc = tag ? 0 : take_scalar(r, event, ret);
        break;
    case YAML_SEQUENCE_START_EVENT:
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
        rc = tag ? 0 : take_group(r, event, depth, ret);
        break;
    default:
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
        rc = tag ? 0 : take_group(r, event, depth, ret);
        break;
    }
    if (tag)
        return refuse(r, event->start_mark, "a tag (%.60s), which job files do without", tag);
    if (rc == 0 && anchor)
        rc = remember(r, (const char *)anchor, event->start_mark, *ret);
    return rc;
}

/* An event of the stream itself: only its type and its place matter. */
static int take_type(struct reader *r, yaml_event_type_t *ret, yaml_mark_t *ret_mark)
{
    yaml_event_t event;
    int rc = next_event(r, &event);
    if (rc < 0)
        return rc;
    *ret = event.type;
    *ret_mark = event.start_mark;
    yaml_event_delete(&event);
    return 0;
}

static int take_stream(struct reader *r)
{
    yaml_event_type_t type = YAML_NO_EVENT;
    yaml_mark_t mark;
    int rc = take_type(r, &type, &mark); /* the stream's begin */
    if (rc == 0)
        rc = take_type(r, &type, &mark);
    if (rc < 0 || type == YAML_STREAM_END_EVENT)
        return rc;
    yaml_event_t event;
    struct yaml_node *root = NULL;
    rc = next_event(r, &event);
    if (rc < 0)
        return rc;
    rc = take_node(r, &event, 0, &root);
    yaml_event_delete(&event);
    r->tree->root = root;
    if (rc == 0)
        rc = take_type(r, &type, &mark); /* the document's end */
    if (rc == 0)
        rc = take_type(r, &type, &mark);
    if (rc == 0 && type != YAML_STREAM_END_EVENT)
        return refuse(r, mark, "a second document begins here; a file describes one job");
    return rc;
}

/* What libyaml would tell less clearly, or take. */
static int check_bytes(struct reader *r)
{
    const unsigned char *b = (const unsigned char *)r->text;
    if (r->n >= 2 && ((b[0] == 0xff && b[1] == 0xfe) || (b[0] == 0xfe && b[1] == 0xff)))
        return refuse(r, (yaml_mark_t){0}, "UTF-16; save it as UTF-8");
    const char *nul = memchr(r->text, '\0', r->n);
    if (nul)
        return refuse(r, mark_of(r, (size_t)(nul - r->text)), "a NUL byte: no text in UTF-8");
    return 0;
}

int yaml_tree_read(struct yaml_tree *tree, const char *name, const char *text, size_t n,
                   struct err *err)
{
    *tree = (struct yaml_tree){.name = name};
    size_t mark = n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    struct reader r = {.tree = tree, .text = text + mark, .n = n - mark, .err = err};
    int rc = check_bytes(&r);
    if (rc < 0)
        return rc;
    if (!yaml_parser_initialize(&r.parser))
        return no_memory(&r);
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)r.text, r.n);
    rc = take_stream(&r);
    yaml_parser_delete(&r.parser);
    for (unsigned i = 0; i < r.anchors_n; i++)
        free(r.anchors[i].name);
    if (rc < 0)
        yaml_tree_free(tree);
    return rc;
}

void yaml_tree_free(struct yaml_tree *tree)
{
    while (tree->cells) {
        struct yaml_cell *cell = tree->cells;
        tree->cells = cell->older;
        free(cell);
    }
    *tree = (struct yaml_tree){0};
}
