#include "client/cli/schedule_files/forestcoll.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/schedule_files/straight_leg.h"
#include "client/cli/schedule_files/xml.h"
#include "daemon/lib/base/grow.h"
#include "daemon/lib/schedule/file/export.h"
#include "daemon/lib/schedule/file/imported.h"

#define NO_NODE UINT32_MAX

struct tree {
    char *root;
    uint32_t line, chunks;
    uint32_t first, count; /* sends */
};

struct send {
    char *from, *to, *path;
    uint32_t line;
};

/* The name of a node, which is the root of a tree. */
struct name {
    const char *text;
    uint32_t order; /* of the first tree with this root */
    uint32_t node;
};

struct forest {
    const struct torus *torus;
    uint32_t chunks; /* of each node */
    struct tree *tree;
    uint32_t trees;
    size_t tree_room;
    struct send *send;
    uint32_t sends;
    size_t send_room;
    struct name *name; /* by text */

    /* By node: the send that brings the tree that is printed, its depth, and the chunks of earlier trees. */
    const struct send **brought_by;
    uint32_t *parent, *used;
    struct leg *legs;
    uint64_t printed; /* legs */
};

static int no_memory(struct error *e)
{
    return error_set(e, ERROR_MEMORY, "out of memory for the schedule");
}

/* ---- Elements -------------------------------------------------------------------------------- */

/* Copies an attribute. Returns 0, or -1 with *e. */
static int read_text(const struct xml_element *x, const char *name, char **copy, struct error *e)
{
    const char *text = xml_find(x, name);

    if (text == NULL || text[0] == '\0')
        return xml_error(x->line, e, "<%.20s> has no attribute %s", x->name, name);
    *copy = strdup(text);
    return *copy != NULL ? 0 : no_memory(e);
}

static int read_algo(void *context, const struct xml_element *x, struct error *e)
{
    struct forest *f = context;
    int64_t chunks;

    if (xml_number(x, "nchunkspernode", 1, IMPORTED_SEGMENTS_MOST, &chunks, e) != 0)
        return -1;
    f->chunks = (uint32_t)chunks;
    if ((uint64_t)f->torus->nodes * f->torus->nodes * f->chunks > IMPORTED_ROUTES_MOST)
        return xml_error(x->line, e,
                         "%" PRIu32 " chunks of each of %" PRIu32 " nodes are more routes than the "
                         "%u that a schedule can have",
                         f->chunks, f->torus->nodes, IMPORTED_ROUTES_MOST);
    return 0;
}

static int read_tree(void *context, const struct xml_element *x, struct error *e)
{
    struct forest *f = context;
    int64_t chunks;

    if (xml_number(x, "nchunks", 1, f->chunks, &chunks, e) != 0)
        return -1;
    if (GROW(f->tree, f->trees, f->tree_room) != 0)
        return no_memory(e);
    struct tree *tree = &f->tree[f->trees];
    *tree = (struct tree){.line = x->line, .chunks = (uint32_t)chunks, .first = f->sends};
    if (read_text(x, "root", &tree->root, e) != 0)
        return -1;
    f->trees++;
    return 0;
}

static int read_send(void *context, const struct xml_element *x, struct error *e)
{
    struct forest *f = context;

    if (GROW(f->send, f->sends, f->send_room) != 0)
        return no_memory(e);
    struct send *send = &f->send[f->sends++];
    *send = (struct send){.line = x->line};
    f->tree[f->trees - 1].count++;
    return read_text(x, "src", &send->from, e) != 0 || read_text(x, "dst", &send->to, e) != 0 ||
                   read_text(x, "path", &send->path, e) != 0
               ? -1
               : 0;
}

enum { ALGO, TREE, SEND };
static const struct xml_rule grammar[] = {[ALGO] = {"Algo", XML_OUTERMOST, read_algo},
                                          [TREE] = {"tree", ALGO, read_tree},
                                          [SEND] = {"send", TREE, read_send}};

/* ---- Names ----------------------------------------------------------------------------------- */

static int compare_text(const void *a, const void *b)
{
    const struct name *x = a, *y = b;
    int order = strcmp(x->text, y->text);

    return order != 0 ? order : x->order < y->order ? -1 : x->order > y->order;
}

static int compare_order(const void *a, const void *b)
{
    const struct name *x = a, *y = b;

    return x->order < y->order ? -1 : x->order > y->order;
}

static bool is_number(const char *text)
{
    const size_t digits = strspn(text, "0123456789");

    return digits > 0 && digits < 8 && text[digits] == '\0' && (text[0] != '0' || digits == 1);
}

/* Keeps the first of equal names. Returns how many there are. */
static uint32_t keep_first(struct name *name, uint32_t count)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < count; i++)
        if (kept == 0 || strcmp(name[kept - 1].text, name[i].text) != 0)
            name[kept++] = name[i];
    return kept;
}

/* Numbers the roots. Returns 0, or -1 with *e. */
static int number_roots(struct forest *f, struct error *e)
{
    bool numbers = true;
    char dims[TORUS_TEXT_SIZE];

    f->name = calloc((size_t)f->trees + 1, sizeof *f->name);
    if (f->name == NULL)
        return no_memory(e);
    for (uint32_t i = 0; i < f->trees; i++)
        f->name[i] = (struct name){.text = f->tree[i].root, .order = i};
    qsort(f->name, f->trees, sizeof *f->name, compare_text);
    const uint32_t count = keep_first(f->name, f->trees);
    if (count != f->torus->nodes)
        return error_set(e, ERROR_REFUSED,
                         "the trees have %" PRIu32 " different roots, but %s has %" PRIu32 " nodes",
                         count, torus_format(f->torus, dims), f->torus->nodes);
    for (uint32_t i = 0; i < count; i++)
        numbers = numbers && is_number(f->name[i].text) &&
                  strtoul(f->name[i].text, NULL, 10) < f->torus->nodes;
    qsort(f->name, count, sizeof *f->name, compare_order);
    for (uint32_t i = 0; i < count; i++)
        f->name[i].node = numbers ? (uint32_t)strtoul(f->name[i].text, NULL, 10) : i;
    qsort(f->name, count, sizeof *f->name, compare_text);
    return 0;
}

/* Returns the node with this name, which has `length` bytes, or NO_NODE. */
static uint32_t find_node(const struct forest *f, const char *text, size_t length)
{
    uint32_t first = 0, end = f->torus->nodes;

    while (first < end) {
        const uint32_t middle = first + (end - first) / 2;
        const char *name = f->name[middle].text;
        int order = strncmp(text, name, length);
        if (order == 0 && name[length] == '\0')
            return f->name[middle].node;
        if (order > 0)
            first = middle + 1;
        else
            end = middle;
    }
    return NO_NODE;
}

/* ---- Sends ----------------------------------------------------------------------------------- */

static int find_end(const struct forest *f, const struct send *s, const char *text, uint32_t *node,
                    struct error *e)
{
    *node = find_node(f, text, strlen(text));
    if (*node != NO_NODE)
        return 0;
    return xml_error(s->line, e, "%.40s is the root of no tree, so it is no node", text);
}

/* Returns the length of the first name in a path: names are tuples of Python, which contain commas, or words. */
static size_t first_name(const char *path)
{
    size_t length = 0;

    for (int depth = 0; path[length] != '\0' && (path[length] != ',' || depth > 0); length++)
        depth += (path[length] == '(') - (path[length] == ')');
    return length;
}

/* Checks that a path goes from one end of the send to the other, over no other node. Returns 0, or -1 with *e. */
static int check_path(const struct forest *f, const struct send *s, struct error *e)
{
    const char *at = s->path;
    size_t length = first_name(at);

    if (length != strlen(s->from) || strncmp(at, s->from, length) != 0)
        return xml_error(s->line, e, "the path \"%.80s\" does not begin at %.40s", s->path,
                         s->from);
    while (at[length] != '\0') {
        at += length + 1;
        length = first_name(at);
        if (at[length] != '\0' && find_node(f, at, length) != NO_NODE)
            return xml_error(s->line, e,
                             "the path \"%.80s\" goes over the node %.*s: only switches may be "
                             "between the ends of a send",
                             s->path, length < 40 ? (int)length : 40, at);
    }
    if (length != strlen(s->to) || strncmp(at, s->to, length) != 0)
        return xml_error(s->line, e, "the path \"%.80s\" does not end at %.40s", s->path, s->to);
    return 0;
}

/* Sets the parents of the nodes of a tree. Returns 0, or -1 with *e. */
static int connect(struct forest *f, const struct tree *tree, uint32_t root, struct error *e)
{
    uint32_t to;

    for (uint32_t i = 0; i < f->torus->nodes; i++)
        f->brought_by[i] = NULL;
    for (uint32_t i = 0; i < tree->count; i++) {
        const struct send *s = &f->send[tree->first + i];
        if (find_end(f, s, s->to, &to, e) != 0 || check_path(f, s, e) != 0)
            return -1;
        if (to == root)
            return xml_error(s->line, e, "a send to the root of its tree, %.40s", s->to);
        if (f->brought_by[to] != NULL)
            return xml_error(s->line, e, "a second send to %.40s in the tree of line %" PRIu32,
                             s->to, tree->line);
        f->brought_by[to] = s;
        if (find_end(f, s, s->from, &f->parent[to], e) != 0)
            return -1;
    }
    return 0;
}

/* Prints the routes to a node: by the sends of a tree, backwards. Returns 0, or -1 with *e. */
static int print_node(FILE *out, struct forest *f, const struct tree *tree, uint32_t root,
                      uint32_t node, struct error *e)
{
    const uint32_t nodes = f->torus->nodes;
    uint32_t first = nodes;
    struct error why;

    for (uint32_t at = node; at != root; at = f->parent[at]) {
        if (first == 0)
            return xml_error(f->brought_by[node]->line, e,
                             "the sends to %.40s go in a circle, which the root does not reach",
                             f->brought_by[node]->to);
        if (straight_leg(f->torus, f->parent[at], at, 0, &f->legs[--first], &why) != 0)
            return xml_error(f->brought_by[at]->line, e, "%s", why.text);
    }
    for (uint32_t i = first; i < nodes; i++)
        f->legs[i].step = i - first;
    f->printed += (uint64_t)(nodes - first) * tree->chunks;
    if (f->printed > STRAIGHT_LEGS_MOST)
        return xml_error(tree->line, e,
                         "the routes up to this tree do not fit into a schedule of %u MiB",
                         IMPORTED_BYTES_MOST >> 20);
    for (uint32_t i = 0; i < tree->chunks; i++)
        schedule_export_route(out, root, node, f->used[root] + i, f->legs + first, nodes - first);
    return 0;
}

static int print_tree(FILE *out, struct forest *f, const struct tree *tree, struct error *e)
{
    const uint32_t root = find_node(f, tree->root, strlen(tree->root));

    if (tree->count != f->torus->nodes - 1)
        return xml_error(tree->line, e,
                         "the tree has %" PRIu32 " sends, but must reach %" PRIu32 " other nodes",
                         tree->count, f->torus->nodes - 1);
    if (tree->chunks > f->chunks - f->used[root])
        return xml_error(tree->line, e,
                         "the trees of %.40s have more than nchunkspernode=\"%" PRIu32 "\" chunks",
                         tree->root, f->chunks);
    if (connect(f, tree, root, e) != 0)
        return -1;
    for (uint32_t node = 0; node < f->torus->nodes; node++)
        if (node != root && print_node(out, f, tree, root, node, e) != 0)
            return -1;
    f->used[root] += tree->chunks;
    return 0;
}

static int print_forest(FILE *out, struct forest *f, struct error *e)
{
    const size_t nodes = f->torus->nodes;

    f->brought_by = calloc(nodes, sizeof *f->brought_by);
    f->parent = calloc(nodes, sizeof *f->parent);
    f->used = calloc(nodes, sizeof *f->used);
    f->legs = calloc(nodes, sizeof *f->legs);
    if (f->brought_by == NULL || f->parent == NULL || f->used == NULL || f->legs == NULL)
        return no_memory(e);
    schedule_export_header(out, f->torus, "forestcoll", OPERATION_ALLGATHER, true, f->chunks);
    for (uint32_t i = 0; i < f->trees; i++)
        if (print_tree(out, f, &f->tree[i], e) != 0)
            return -1;
    for (uint32_t i = 0; i < f->torus->nodes; i++) {
        const struct name *name = &f->name[i];
        if (f->used[name->node] != f->chunks)
            return error_set(e, ERROR_REFUSED,
                             "the trees of %.40s have %" PRIu32
                             " chunks, not nchunkspernode=\"%" PRIu32 "\"",
                             name->text, f->used[name->node], f->chunks);
    }
    return 0;
}

static void free_forest(struct forest *f)
{
    for (uint32_t i = 0; i < f->trees; i++)
        free(f->tree[i].root);
    for (uint32_t i = 0; i < f->sends; i++) {
        free(f->send[i].from);
        free(f->send[i].to);
        free(f->send[i].path);
    }
    free(f->tree);
    free(f->send);
    free(f->name);
    free(f->brought_by);
    free(f->parent);
    free(f->used);
    free(f->legs);
}

int forestcoll_read(const char *xml, size_t length, const struct torus *t, char **routes,
                    size_t *routes_length, struct error *e)
{
    struct forest f = {.torus = t};

    *routes = NULL;
    FILE *out = open_memstream(routes, routes_length);
    if (out == NULL)
        return no_memory(e);
    int rc = xml_read(xml, length, grammar, sizeof grammar / sizeof *grammar, &f, e);
    if (rc == 0)
        rc = number_roots(&f, e);
    if (rc == 0)
        rc = print_forest(out, &f, e);
    bool written = ferror(out) == 0;
    if ((fclose(out) != 0 || !written) && rc == 0)
        rc = no_memory(e);
    if (rc != 0) {
        free(*routes);
        *routes = NULL;
    }
    free_forest(&f);
    return rc;
}
