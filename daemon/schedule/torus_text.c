#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/schedule/torus.h"

#define DIGEST_DIGITS 16

/* A text that is being read. */
struct reader {
    const char *text, *at;
    bool known; /* reads no files and makes no graphs */
    struct torus torus;
};

static int refuse(const struct reader *r, const char *expected, struct error *e)
{
    return error_set(e, ERROR_USAGE, "torus \"%.64s\": expected %s at \"%.16s\"", r->text, expected,
                     r->at);
}

static int too_many_dimensions(const struct reader *r, struct error *e)
{
    return error_set(e, ERROR_USAGE, "torus \"%.64s\" has more than %d dimensions", r->text,
                     TORUS_MAX_DIMS);
}

/* Reads a number up to TORUS_MAX_NODES; a larger one becomes TORUS_MAX_NODES + 1. */
static bool read_number(struct reader *r, uint32_t *number)
{
    const char *digits = r->at;

    *number = 0;
    for (; *r->at >= '0' && *r->at <= '9'; r->at++)
        if (*number <= TORUS_MAX_NODES)
            *number = 10 * *number + (uint32_t)(*r->at - '0');
    if (*number > TORUS_MAX_NODES)
        *number = TORUS_MAX_NODES + 1;
    return r->at != digits;
}

static bool read_word(struct reader *r, const char *word)
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

static int refuse_unknown(const struct reader *r, struct error *e)
{
    return error_set(e, ERROR_USAGE, "torus \"%.64s\" is not the network of this node", r->text);
}

/* Reads the file or digest behind "graph:". */
static int read_graph(struct reader *r, const struct graph **graph, struct error *e)
{
    size_t length = strcspn(r->at, " ^");
    const char *end = r->at + length;
    bool digest = is_digest(r->at, strcspn(r->at, " ^x"));
    char *path;

    if (length == 0)
        return refuse(r, "a file of edges", e);
    if (r->known && !digest)
        return refuse_unknown(r, e);
    if (digest) {
        end = r->at + strcspn(r->at, " ^x");
        *graph = graph_known(r->at - strlen("graph:"), (size_t)(end - r->at) + strlen("graph:"));
        r->at = end;
        return *graph != NULL
                   ? 0
                   : error_set(e, ERROR_USAGE,
                               "torus \"%.64s\": the edges of this graph are not known here; name "
                               "the file of its edges, graph:FILE",
                               r->text);
    }
    path = strndup(r->at, length);
    if (path == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for the name of a file of edges");
    *graph = graph_read(path, e);
    free(path);
    r->at = end;
    if (*graph == NULL && e != NULL && e->code != ERROR_MEMORY)
        e->code = ERROR_USAGE; /* also if the file is missing: the text names it */
    return *graph != NULL ? 0 : -1;
}

/* Reads the factors that have a name. Returns 1 if there is none here. */
static int read_named(struct reader *r, const struct graph **graph, struct error *e)
{
    const char *begin = r->at;
    uint32_t number = 0, depth = 0;
    bool complete = read_word(r, "complete:"), star = !complete && read_word(r, "star:");

    if (complete || star) {
        if (!read_number(r, &number))
            return refuse(r, "a number of nodes", e);
    } else if (read_word(r, "tree:")) {
        if (!read_number(r, &number) || !read_word(r, "^") || !read_number(r, &depth))
            return refuse(r, "children and levels, such as tree:2^3,", e);
    } else if (read_word(r, "graph:")) {
        return read_graph(r, graph, e);
    } else {
        return 1;
    }
    if (r->known) {
        *graph = graph_known(begin, (size_t)(r->at - begin));
        return *graph != NULL ? 0 : refuse_unknown(r, e);
    }
    *graph = complete ? graph_complete(number, e)
             : star   ? graph_star(number, e)
                      : graph_tree(number, depth, e);
    return *graph != NULL ? 0 : error_wrap(e, "torus \"%.64s\"", r->text);
}

/* Reads a ring or line. */
static int read_plain(struct reader *r, uint32_t *size, bool *wrap, struct error *e)
{
    bool ring = read_word(r, "ring:");
    bool line = !ring && (read_word(r, "line:") || read_word(r, "array:"));

    if (!read_number(r, size))
        return refuse(r, "a factor, such as 4 in 4x8, 4m or complete:4,", e);
    if (*size == 0)
        return error_set(e, ERROR_USAGE, "torus \"%.64s\": sizes start at 1", r->text);
    *wrap = !line && (ring || !read_word(r, "m"));
    return 0;
}

/* Appends a factor, once or as many times as the power behind it says. */
static int append(struct reader *r, uint32_t size, bool wrap, const struct graph *graph,
                  struct error *e)
{
    struct torus *t = &r->torus;
    uint32_t times = 1;

    if (read_word(r, "^") && (!read_number(r, &times) || times == 0))
        return refuse(r, "a number of dimensions, as in 2m^5,", e);
    for (uint32_t nodes = graph != NULL ? graph->nodes : size; times > 0; times--) {
        if (t->dims == TORUS_MAX_DIMS)
            return too_many_dimensions(r, e);
        if (nodes > TORUS_MAX_NODES / t->nodes)
            return error_set(e, ERROR_USAGE, "torus \"%.64s\" has more than %u nodes", r->text,
                             TORUS_MAX_NODES);
        if (torus_append(t, size, wrap, graph) != 0)
            return error_set(e, ERROR_USAGE, "torus \"%.64s\" needs more than %d ports a node",
                             r->text, TORUS_MAX_PORTS);
    }
    return 0;
}

static int read_factor(struct reader *r, struct error *e)
{
    const struct graph *graph = NULL;
    uint32_t size = 0;
    bool wrap = false;
    int named;

    if (r->torus.dims == TORUS_MAX_DIMS)
        return too_many_dimensions(r, e);
    named = read_named(r, &graph, e);

    if (named < 0 || (named > 0 && read_plain(r, &size, &wrap, e) != 0))
        return -1;
    return append(r, size, wrap, graph, e);
}

/* Reads the `x` between two factors, with blanks beside it. Returns false where there is none. */
static bool read_times(struct reader *r)
{
    const char *p = r->at + strspn(r->at, " ");

    if (*p != 'x')
        return false;
    r->at = p + 1 + strspn(p + 1, " ");
    return true;
}

static int read_all(struct reader *r, struct torus *t, struct error *e)
{
    do {
        if (read_factor(r, e) != 0)
            return -1;
    } while (read_times(r));
    if (*r->at != '\0')
        return error_set(e, ERROR_USAGE, "torus \"%.64s\": expected x between sizes, not \"%.16s\"",
                         r->text, r->at);
    *t = r->torus;
    return 0;
}

int torus_parse(struct torus *t, const char *text, struct error *e)
{
    struct reader r = {.text = text, .at = text, .torus = {.nodes = 1}};

    return read_all(&r, t, e);
}

int torus_parse_known(struct torus *t, const char *text, struct error *e)
{
    struct reader r = {.text = text, .at = text, .known = true, .torus = {.nodes = 1}};

    return read_all(&r, t, e);
}

char *torus_format(const struct torus *t, char *text)
{
    size_t used = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < t->dims && used < TORUS_TEXT_SIZE; i++) {
        const char *times = i == 0 ? "" : t->graphs != 0 ? " x " : "x";
        int n = t->graph[i] != NULL ? snprintf(text + used, TORUS_TEXT_SIZE - used, "%s%s", times,
                                               t->graph[i]->text)
                                    : snprintf(text + used, TORUS_TEXT_SIZE - used, "%s%u%s", times,
                                               t->size[i], t->wrap[i] ? "" : "m");
        used += (size_t)n;
    }
    return text;
}

char *torus_port_name(const struct torus *t, uint32_t rank, unsigned port, char *name)
{
    unsigned dim = torus_port_dim(t, port);
    int direction = torus_port_direction(t, port);
    uint32_t at[TORUS_MAX_DIMS], there;

    if (t->graphs == 0 || t->graph[dim] == NULL) {
        (void)snprintf(name, TORUS_PORT_NAME_SIZE, "%c%u", direction > 0 ? '+' : '-', dim % 10);
        return name;
    }
    torus_coordinates(t, rank, at);
    there = graph_neighbour(t->graph[dim], at[dim], (unsigned)direction - 1);
    if (there == GRAPH_NO_NODE)
        (void)snprintf(name, TORUS_PORT_NAME_SIZE, "%u:?", dim % 10);
    else
        (void)snprintf(name, TORUS_PORT_NAME_SIZE, "%u:%u", dim % 10, there % 10000);
    return name;
}

int torus_port_parse(const struct torus *t, uint32_t rank, const char *name)
{
    char known[TORUS_PORT_NAME_SIZE];

    for (unsigned port = 0; port < torus_ports(t); port++)
        if (strcmp(torus_port_name(t, rank, port, known), name) == 0 && strchr(name, '?') == NULL)
            return (int)port;
    return -1;
}
