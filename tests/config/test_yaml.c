/* SPDX-License-Identifier: MIT */
/* YAML as a tree: places, encodings, and the limits that no file gets around. */
#include "../../config/yaml.h"

#include "../harness.h"

#include <stdio.h>
#include <stdlib.h>

static void check_refused_bytes(const char *text, size_t n, const char *line)
{
    struct yaml_tree tree;
    struct err err;
    CHECK_INT(yaml_tree_read(&tree, "f", text, n, &err), ==, -EINVAL);
    CHECK_STR(err.text, line);
    CHECK(!tree.cells);
}

#define CHECK_REFUSED(text, line) check_refused_bytes(text, sizeof(text) - 1, line)

static void take(struct yaml_tree *tree, const char *text)
{
    struct err err;
    if (yaml_tree_read(tree, "f", text, strlen(text), &err) < 0)
        test_fail(__FILE__, __LINE__, "%s", err.text);
}

TEST(a_tree_has_texts_lists_and_maps_with_their_places)
{
    struct yaml_tree tree;
    take(&tree, "a: 1\nb:\n  - x\n  - 'y'\n");
    const struct yaml_node *a = tree.root->first, *list = a->next->next->next;
    CHECK_INT(tree.root->kind, ==, YAML_MAP);
    CHECK_STR(a->text, "a");
    CHECK(a->plain);
    CHECK_STR(a->next->text, "1");
    CHECK_INT(list->kind, ==, YAML_LIST);
    CHECK_STR(list->first->next->text, "y");
    CHECK(!list->first->next->plain);
    CHECK_INT(list->first->next->line, ==, 4);
    CHECK_INT(list->first->next->column, ==, 5);
    CHECK(!list->next && !list->first->next->next);
    yaml_tree_free(&tree);
}

TEST(a_byte_order_mark_and_dos_line_ends_change_nothing)
{
    struct yaml_tree tree;
    take(&tree, "\xef\xbb\xbf"
                "a: 1\r\nb: |\r\n  x\r\n  y\r\n");
    CHECK_STR(tree.root->first->text, "a");
    CHECK_STR(tree.root->first->next->text, "1");
    CHECK_STR(tree.root->first->next->next->next->text, "x\ny\n");
    CHECK_INT(tree.root->first->next->next->line, ==, 2);
    yaml_tree_free(&tree);
}

TEST(a_colon_in_the_wrong_place_is_told_what_it_may_be)
{
    CHECK_REFUSED("a: b: c\n", "f:1:5: mapping values are not allowed in this context; a text that "
                               "holds ': ' must be quoted");
    CHECK_REFUSED(
        "a: 1\n  b: 2\n",
        "f:2:4: mapping values are not allowed in this context; is this line indented too far?");
    CHECK_REFUSED("a:1\nb: 2\n", "f:2:2: mapping values are not allowed in this context; is there "
                                 "no blank behind the ':' of the line above?");
}

TEST(a_tab_is_fine_between_words_and_told_where_it_indents)
{
    struct yaml_tree tree;
    take(&tree, "a:\t1\t# x\n");
    CHECK_STR(tree.root->first->next->text, "1");
    yaml_tree_free(&tree);
    CHECK_REFUSED("a:\n\tb: c\n", "f:2:1: a tab: YAML takes only blanks before a key");
    CHECK_REFUSED("a:\n  b: 1\n \tc: 1\n", "f:3:2: a tab: YAML takes only blanks before a key");
}

TEST(what_is_no_utf8_is_refused_with_its_place)
{
    CHECK_REFUSED("\xff\xfe"
                  "a\0:\0",
                  "f:1:1: UTF-16; save it as UTF-8");
    CHECK_REFUSED("\xfe\xff\0a\0:", "f:1:1: UTF-16; save it as UTF-8");
    CHECK_REFUSED("a: 1\nb: \0\n", "f:2:4: a NUL byte: no text in UTF-8");
    CHECK_REFUSED("a\0:\0 \0", "f:1:2: a NUL byte: no text in UTF-8");
    CHECK_REFUSED("a: 1\nb: \xe9t\xe9\n", "f:2:5: no UTF-8 text: invalid trailing UTF-8 octet");
    CHECK_REFUSED("a: \xc0\xaf\n", "f:1:4: no UTF-8 text: invalid length of a UTF-8 sequence");
    CHECK_REFUSED("a: \xed\xa0\x80\n", "f:1:4: no UTF-8 text: invalid Unicode character");
    CHECK_REFUSED("a: \x1b[31m\n", "f:1:4: no UTF-8 text: control characters are not allowed");
    CHECK_REFUSED("a: \"x\\0y\"\n", "f:1:4: a NUL in a text");
}

TEST(tags_second_documents_and_unknown_aliases_are_refused)
{
    CHECK_REFUSED("a: !!int 4\n",
                  "f:1:4: a tag (tag:yaml.org,2002:int), which job files do without");
    CHECK_REFUSED("a: ! 4\n", "f:1:4: a tag (!), which job files do without");
    CHECK_REFUSED("a: !x [1]\n", "f:1:4: a tag (!x), which job files do without");
    CHECK_REFUSED("a: !x {b: 1}\n", "f:1:4: a tag (!x), which job files do without");
    CHECK_REFUSED("a: 1\n---\nb: 2\n",
                  "f:2:1: a second document begins here; a file describes one job");
    CHECK_REFUSED("a: *b\n", "f:1:4: no anchor &b before this alias");
    CHECK_REFUSED("a: &a [*a]\n", "f:1:8: no anchor &a before this alias");
    CHECK_REFUSED(
        "a: 'x\n\n",
        "f:3:1: while scanning a quoted scalar, begun on line 1: found unexpected end of stream");
}

TEST(an_alias_is_what_its_anchor_was_when_it_was_last_given)
{
    struct yaml_tree tree;
    take(&tree, "- &a x\n- *a\n- &a [y]\n- *a\n");
    const struct yaml_node *second = tree.root->first->next, *fourth = second->next->next;
    CHECK_STR(second->text, "x");
    CHECK_INT(second->line, ==, 2);
    CHECK_STR(fourth->first->text, "y");
    yaml_tree_free(&tree);
}

/* The classic: nine levels of nine aliases each are 9^9 words, and here 100 nodes. */
TEST(a_bomb_of_aliases_costs_as_much_as_its_text)
{
    char text[4000];
    int n = snprintf(text, sizeof text, "a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for (int i = 1; i < 12; i++) {
        n += snprintf(text + n, sizeof text - (size_t)n, "a%d: &a%d [", i, i);
        for (int k = 0; k < 9; k++)
            n += snprintf(text + n, sizeof text - (size_t)n, "%s*a%d", k ? ", " : "", i - 1);
        n += snprintf(text + n, sizeof text - (size_t)n, "]\n");
    }
    struct yaml_tree tree;
    take(&tree, text);
    yaml_tree_free(&tree);
}

static char *repeat(const char *part, unsigned n)
{
    size_t bytes = strlen(part);
    char *text = malloc(bytes * n + 1);
    CHECK(text != NULL);
    for (unsigned i = 0; i < n; i++)
        memcpy(text + bytes * i, part, bytes + 1);
    return text;
}

static void check_limit(const char *begin, const char *part, unsigned good, const char *error)
{
    for (unsigned over = 0; over < 2; over++) {
        char *many = repeat(part, good + over), *text = NULL;
        struct yaml_tree tree;
        struct err err;
        CHECK_INT(asprintf(&text, "%s%s", begin, many), >, 0);
        int r = yaml_tree_read(&tree, "f", text, strlen(text), &err);
        CHECK_INT(r, ==, over ? -EINVAL : 0);
        if (over)
            CHECK_HAS(err.text, error);
        else
            yaml_tree_free(&tree);
        free(many);
        free(text);
    }
}

TEST(depth_words_anchors_and_aliases_have_limits)
{
    check_limit("", "- ", YAML_MAX_DEPTH, "nested deeper than 16");
    check_limit("", "- x\n", YAML_MAX_NODES - 1, "more than 10000 words");
    check_limit("- &a x\n", "- *a\n", YAML_MAX_ALIASES, "more than 1000 aliases");
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    CHECK(out != NULL);
    for (int i = 0; i <= YAML_MAX_ANCHORS; i++)
        fprintf(out, "- &a%d x\n", i);
    CHECK_INT(fclose(out), ==, 0);
    check_refused_bytes(text, n, "f:101:3: more than 100 anchors");
    free(text);
    text = repeat("[", 100000);
    check_refused_bytes(text, 100000, "f:1:17: nested deeper than 16");
    free(text);
    text = repeat("{? ", 30000);
    check_refused_bytes(text, 90000, "f:1:49: nested deeper than 16");
    free(text);
}
