#include "daemon/lib/schedule/factor_text.h"

#include <stdlib.h>
#include <string.h>

#define DIGEST_DIGITS 16

static int refuse(const struct factor_text *r, const char *expected, struct error *e)
{
    return error_set(e, ERROR_USAGE, "%s \"%.64s\": expected %s at \"%.16s\"", r->what, r->text,
                     expected, r->at);
}

static bool read_number(struct factor_text *r, uint32_t *number)
{
    const char *digits = r->at;

    *number = 0;
    for (; *r->at >= '0' && *r->at <= '9'; r->at++)
        if (*number <= FACTOR_NODES_MOST)
            *number = 10 * *number + (uint32_t)(*r->at - '0');
    if (*number > FACTOR_NODES_MOST)
        *number = FACTOR_NODES_MOST + 1;
    return r->at != digits;
}

static bool read_word(struct factor_text *r, const char *word)
{
    size_t length = strlen(word);

    if (strncmp(r->at, word, length) != 0)
        return false;
    r->at += length;
    return true;
}

/* Whether a text is one that torus_format() writes for a graph from a file, behind "graph:". */
static bool is_digest(const char *text, size_t length)
{
    size_t digits = strspn(text, "0123456789");

    return digits > 0 && text[digits] == ':' && length == digits + 1 + DIGEST_DIGITS &&
           strspn(text + digits + 1, "0123456789abcdef") >= DIGEST_DIGITS;
}

static int refuse_unknown(const struct factor_text *r, struct error *e)
{
    return error_set(e, ERROR_USAGE, "%s \"%.64s\" is not the network of this node", r->what,
                     r->text);
}

/* Reads the digest behind "graph:". */
static int read_digest(struct factor_text *r, const struct graph **graph, struct error *e)
{
    const char *end = r->at + strcspn(r->at, " ^x");

    *graph = graph_known(r->at - strlen("graph:"), (size_t)(end - r->at) + strlen("graph:"));
    r->at = end;
    return *graph != NULL
               ? 0
               : error_set(e, ERROR_USAGE,
                           "%s \"%.64s\": the edges of this graph are not known here; name the "
                           "file of its edges, graph:FILE",
                           r->what, r->text);
}

/* Reads the file or digest behind "graph:". */
static int read_graph(struct factor_text *r, const struct graph **graph, struct error *e)
{
    size_t length = strcspn(r->at, " ^");

    if (length == 0)
        return refuse(r, "a file of edges", e);
    if (is_digest(r->at, strcspn(r->at, " ^x")))
        return read_digest(r, graph, e);
    if (r->known)
        return refuse_unknown(r, e);
    if (!r->files)
        return error_set(e, ERROR_USAGE,
                         "%s \"%.64s\" names a file of edges, which only --dims can do", r->what,
                         r->text);
    char *path = strndup(r->at, length);
    if (path == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for the name of a file of edges");
    *graph = graph_read(path, e);
    free(path);
    r->at += length;
    if (*graph == NULL && e != NULL && e->code != ERROR_MEMORY)
        e->code = ERROR_USAGE; /* also if the file is missing: the text names it */
    return *graph != NULL ? 0 : -1;
}

/* Finds or makes the graph of a factor whose text begins at `begin`. */
static int find_graph(struct factor_text *r, const char *begin, struct factor *f, uint32_t number,
                      uint32_t depth, struct error *e)
{
    if (r->known) {
        f->graph = graph_known(begin, (size_t)(r->at - begin));
        return f->graph != NULL ? 0 : refuse_unknown(r, e);
    }
    f->graph = f->kind == FACTOR_COMPLETE ? graph_complete(number, e)
               : *begin == 't'            ? graph_tree(number, depth, e)
                                          : graph_star(number, e);
    return f->graph != NULL ? 0 : error_wrap(e, "%s \"%.64s\"", r->what, r->text);
}

/* Reads the factors that have a graph. Returns 1 if there is none here. */
static int read_named(struct factor_text *r, struct factor *f, struct error *e)
{
    const char *begin = r->at;
    uint32_t number = 0, depth = 0;
    bool complete = read_word(r, "complete:"), star = !complete && read_word(r, "star:");

    f->kind = complete ? FACTOR_COMPLETE : FACTOR_GRAPH;
    if (complete || star) {
        if (!read_number(r, &number))
            return refuse(r, "a number of nodes", e);
    } else if (read_word(r, "tree:")) {
        if (!read_number(r, &number) || !read_word(r, "^") || !read_number(r, &depth))
            return refuse(r, "children and levels, such as tree:2^3,", e);
    } else if (read_word(r, "graph:")) {
        if (read_graph(r, &f->graph, e) != 0)
            return -1;
    } else {
        return 1;
    }
    if (f->graph == NULL && (r->links || !complete) &&
        find_graph(r, begin, f, number, depth, e) != 0)
        return -1;
    f->nodes = f->graph != NULL ? f->graph->nodes : number;
    return 0;
}

/* Reads a ring or line. */
static int read_plain(struct factor_text *r, struct factor *f, struct error *e)
{
    bool ring = read_word(r, "ring:");
    bool line = !ring && (read_word(r, "line:") || read_word(r, "array:"));

    if (!read_number(r, &f->nodes))
        return refuse(r, "a factor, such as 4 in 4x8, 4m or complete:4,", e);
    f->kind = line || (!ring && read_word(r, "m")) ? FACTOR_ARRAY : FACTOR_RING;
    return 0;
}

int factor_text_read(struct factor_text *r, struct factor *f, uint32_t *times, struct error *e)
{
    *f = (struct factor){.nodes = 0};
    *times = 1;
    int named = read_named(r, f, e);
    if (named < 0 || (named > 0 && read_plain(r, f, e) != 0))
        return -1;
    if (f->nodes == 0)
        return error_set(e, ERROR_USAGE, "%s \"%.64s\": sizes start at 1", r->what, r->text);
    if (read_word(r, "^") && (!read_number(r, times) || *times == 0))
        return refuse(r, "a number of dimensions, as in 2m^5,", e);
    return 0;
}

bool factor_text_goes_on(struct factor_text *r)
{
    const char *p = r->at + strspn(r->at, " ");

    if (*p != 'x')
        return false;
    r->at = p + 1 + strspn(p + 1, " ");
    return true;
}

int factor_text_end(const struct factor_text *r, struct error *e)
{
    if (*r->at == '\0')
        return 0;
    return error_set(e, ERROR_USAGE, "%s \"%.64s\": expected x between sizes, not \"%.16s\"",
                     r->what, r->text, r->at);
}
