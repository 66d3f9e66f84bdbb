#include "daemon/lib/schedule/factor.h"

#include <stdlib.h>
#include <string.h>

const char *factor_kind_name(enum factor_kind kind)
{
    switch (kind) {
    case FACTOR_RING:
        return "ring";
    case FACTOR_ARRAY:
        return "array";
    case FACTOR_COMPLETE:
        return "complete";
    case FACTOR_GRAPH:
        return "graph";
    }
    return "unknown";
}

/* Hops in direction + on a ring. */
static uint32_t offset(const struct factor *f, uint32_t from, uint32_t to)
{
    return to >= from ? to - from : to + f->nodes - from;
}

uint32_t factor_distance(const struct factor *f, uint32_t a, uint32_t b)
{
    uint32_t straight = a < b ? b - a : a - b;

    switch (f->kind) {
    case FACTOR_RING:
        return 2 * straight <= f->nodes ? straight : f->nodes - straight;
    case FACTOR_ARRAY:
        return straight;
    case FACTOR_COMPLETE:
        return straight != 0;
    case FACTOR_GRAPH:
        return graph_distance(f->graph, a, b);
    }
    return 0;
}

uint32_t factor_diameter(const struct factor *f)
{
    if (f->kind == FACTOR_GRAPH)
        return f->graph->diameter;
    return factor_distance(f, 0, f->kind == FACTOR_RING ? f->nodes / 2 : f->nodes - 1);
}

uint64_t factor_status(const struct factor *f, uint32_t node)
{
    uint64_t n = f->nodes, before = node, after = n - 1 - before;

    switch (f->kind) {
    case FACTOR_RING:
        return n * n / 4;
    case FACTOR_ARRAY:
        return before * (before + 1) / 2 + after * (after + 1) / 2;
    case FACTOR_COMPLETE:
        return n - 1;
    case FACTOR_GRAPH:
        return graph_status(f->graph, node);
    }
    return 0;
}

uint64_t factor_least_status(const struct factor *f)
{
    uint64_t least = factor_status(f, f->nodes / 2);

    for (uint32_t node = 0; f->kind == FACTOR_GRAPH && node < f->nodes; node++)
        least = factor_status(f, node) < least ? factor_status(f, node) : least;
    return least;
}

uint64_t factor_most_status(const struct factor *f)
{
    uint64_t most = factor_status(f, 0);

    for (uint32_t node = 0; f->kind == FACTOR_GRAPH && node < f->nodes; node++)
        most = factor_status(f, node) > most ? factor_status(f, node) : most;
    return most;
}

double factor_average_status(const struct factor *f)
{
    double n = f->nodes;

    if (f->kind == FACTOR_GRAPH)
        return (double)graph_hops(f->graph) / n;
    return f->kind == FACTOR_ARRAY ? (n * n - 1) / 3 : (double)factor_status(f, 0);
}

uint64_t factor_links(const struct factor *f)
{
    uint64_t n = f->nodes;

    if (n == 1)
        return 0;
    switch (f->kind) {
    case FACTOR_RING:
        return n;
    case FACTOR_ARRAY:
        return n - 1;
    case FACTOR_COMPLETE:
        return n * (n - 1) / 2;
    case FACTOR_GRAPH:
        return f->graph->links;
    }
    return 0;
}

uint32_t factor_fewest_links(const struct factor *f)
{
    if (f->nodes == 1)
        return 0;
    switch (f->kind) {
    case FACTOR_RING:
        return 2;
    case FACTOR_ARRAY:
        return 1;
    case FACTOR_COMPLETE:
        return f->nodes - 1;
    case FACTOR_GRAPH:
        return f->graph->fewest_links;
    }
    return 0;
}

double factor_cut(const struct factor *f)
{
    uint64_t n = f->nodes;
    double pairs = (double)(n * n / 4); /* floor(n/2) * ceil(n/2) */

    if (n == 1)
        return 0;
    switch (f->kind) {
    case FACTOR_RING:
        return pairs / 2;
    case FACTOR_ARRAY:
        return pairs;
    case FACTOR_COMPLETE:
        return 1; /* a link for every pair */
    case FACTOR_GRAPH:
        return f->graph->least_load;
    }
    return 0;
}

/* Steps at the beginning of an array's exchange in which its middle two nodes swap: 1 if n is even,
 * 0 if n is odd. */
static uint32_t swap_steps(const struct factor *f)
{
    return f->nodes % 2 == 0;
}

/* The walk of a block from x to y > x on an array. The block waits for as many steps as there are
 * nodes behind its destination, and then makes a hop in every step. A block that leaves a node in
 * step t has made a hops and ends b nodes before the end of the array, with a + b = t: at most
 * min(t+1, n-1-t) blocks. */
static struct walk array_walk(const struct factor *f, uint32_t x, uint32_t y)
{
    uint32_t n = f->nodes;
    bool middle = n % 2 == 0 && y == n / 2 && x + 1 == y;
    return (struct walk){
        .step = middle ? 0 : swap_steps(f) + n - 1 - y, .hops = y - x, .stride = 1};
}

/* Ring: first all blocks that go +, then all that go -, so that every node sends and receives one
 * message in every step.
 *
 * Array: likewise; blocks that go - mirror those that go +. A node in the middle sends n-1 blocks
 * of its own, and relays the blocks from one side to the other: floor((n^2-1)/2) in all, and the
 * exchange takes as long. If n is odd, each half takes floor(n^2/4). If n is even, the middle
 * channels are the only ones with n^2/4 blocks, and each carries one of these in the swap at the
 * beginning.
 *
 * Complete graph: node i sends to i+1, i+2, ...
 *
 * Other graphs: graph_exchange.h. */
struct walk factor_walk(const struct factor *f, uint32_t from, uint32_t to)
{
    uint32_t forth = offset(f, from, to), back = f->nodes - forth;
    struct walk walk;

    switch (f->kind) {
    case FACTOR_RING:
        if (forth <= f->nodes / 2)
            return (struct walk){.step = 0, .hops = forth, .stride = 1};
        return (struct walk){.step = f->nodes / 2, .hops = back, .stride = -1};
    case FACTOR_ARRAY:
        if (from <= to)
            return array_walk(f, from, to);
        walk = array_walk(f, f->nodes - 1 - from, f->nodes - 1 - to);
        walk.step += walk.step >= swap_steps(f) ? f->nodes - 1 : 0;
        walk.stride = -1;
        return walk;
    case FACTOR_COMPLETE:
        return (struct walk){
            .step = forth == 0 ? 0 : forth - 1, .hops = forth != 0, .stride = (int32_t)forth};
    case FACTOR_GRAPH:
        return (struct walk){
            .hops = graph_distance(f->graph, from, to),
            .path = graph_exchange_path(graph_exchange(f->graph, GRAPH_ONE_PORT), from, to)};
    }
    return (struct walk){0};
}

bool factor_has_exchange(const struct factor *f)
{
    return f->kind != FACTOR_GRAPH || graph_exchange(f->graph, GRAPH_ONE_PORT) != NULL;
}

uint32_t factor_steps(const struct factor *f)
{
    uint32_t n = f->nodes;

    if (f->kind == FACTOR_GRAPH)
        return factor_has_exchange(f) ? graph_exchange(f->graph, GRAPH_ONE_PORT)->steps : 0;

    if (f->kind != FACTOR_ARRAY || n <= 2)
        return n - 1;
    return swap_steps(f) + 2 * (n - 1);
}

uint64_t factor_blocks(const struct factor *f)
{
    uint64_t n = f->nodes;

    switch (f->kind) {
    case FACTOR_RING:
        return n * n / 4;
    case FACTOR_ARRAY:
        return (n * n - 1) / 2;
    case FACTOR_COMPLETE:
        return n - 1;
    case FACTOR_GRAPH:
        return factor_steps(f);
    }
    return 0;
}

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
