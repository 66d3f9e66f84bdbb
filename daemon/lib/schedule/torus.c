#include "daemon/lib/schedule/torus.h"

#include <stdio.h>
#include <string.h>

#include "daemon/lib/schedule/factor.h"

/* Difference in rank between neighbours along `dim`. */
static uint32_t stride(const struct torus *t, unsigned dim)
{
    uint32_t product = 1;
    for (unsigned i = dim + 1; i < t->dims; i++)
        product *= t->size[i];
    return product;
}

/* Numbers the ports of a new dimension, the last one. */
static void number_ports(struct torus *t, unsigned dim)
{
    const struct graph *g = t->graph[dim];
    unsigned directions = g != NULL ? g->directions : 2;

    t->first_port[dim] = (uint8_t)t->ports;
    for (unsigned i = 0; i < directions; i++) {
        t->dim_of_port[t->ports + i] = (uint8_t)dim;
        t->opposite[t->ports + i] = (uint8_t)(t->ports + (g != NULL ? g->opposite[i] : 1 - i));
    }
    t->ports += directions;
}

int torus_append(struct torus *t, uint32_t size, bool wrap, const struct graph *graph)
{
    unsigned directions = graph != NULL ? graph->directions : 2;
    uint32_t nodes = graph != NULL ? graph->nodes : size;

    if (t->dims == TORUS_MAX_DIMS || nodes > TORUS_MAX_NODES / t->nodes ||
        t->ports + directions > TORUS_MAX_PORTS)
        return -1;
    t->size[t->dims] = nodes;
    t->wrap[t->dims] = graph == NULL && wrap;
    t->graph[t->dims] = graph;
    t->graphs += graph != NULL;
    t->nodes *= nodes;
    number_ports(t, t->dims++);
    return 0;
}

bool torus_equal(const struct torus *a, const struct torus *b)
{
    if (a->dims != b->dims)
        return false;
    for (unsigned i = 0; i < a->dims; i++)
        if (a->size[i] != b->size[i] || a->wrap[i] != b->wrap[i] || a->graph[i] != b->graph[i])
            return false;
    return true;
}

uint32_t torus_rank(const struct torus *t, const uint32_t *coordinates)
{
    uint32_t rank = 0;
    for (unsigned i = 0; i < t->dims; i++)
        rank = rank * t->size[i] + coordinates[i];
    return rank;
}

void torus_coordinates(const struct torus *t, uint32_t rank, uint32_t *coordinates)
{
    for (unsigned i = t->dims; i-- > 0; rank /= t->size[i])
        coordinates[i] = rank % t->size[i];
}

/* `step` is the distance in rank between neighbouring coordinates. */
static uint32_t walk_graph(const struct graph *g, uint32_t rank, uint32_t step, unsigned direction,
                           uint32_t hops)
{
    uint32_t from = rank / step % g->nodes, to = from;

    for (uint32_t i = 0; i < hops && to != GRAPH_NO_NODE; i++)
        to = graph_neighbour(g, to, direction);
    return to == GRAPH_NO_NODE ? TORUS_NO_NODE : rank - from * step + to * step;
}

uint32_t torus_walk(const struct torus *t, uint32_t rank, unsigned dim, int direction,
                    uint32_t hops)
{
    uint32_t n = t->size[dim];
    uint32_t step = stride(t, dim);
    uint32_t from = rank / step % n;

    if (t->graphs != 0 && t->graph[dim] != NULL)
        return walk_graph(t->graph[dim], rank, step, (unsigned)direction - 1, hops);
    uint32_t room = direction > 0 ? n - 1 - from : from; /* hops before the coordinates end */
    uint32_t to;

    if (hops <= room) {
        to = direction > 0 ? from + hops : from - hops;
    } else {
        if (!t->wrap[dim] || n == 1)
            return TORUS_NO_NODE;
        hops %= n;
        to = (direction > 0 ? from + hops : from + n - hops) % n;
    }
    return rank - from * step + to * step;
}

uint32_t torus_neighbour(const struct torus *t, uint32_t rank, unsigned port)
{
    return torus_walk(t, rank, torus_port_dim(t, port), torus_port_direction(t, port), 1);
}

static uint32_t coordinate(const struct torus *t, uint32_t rank, unsigned dim)
{
    return rank / stride(t, dim) % t->size[dim];
}

bool torus_port_dials(const struct torus *t, uint32_t rank, unsigned port)
{
    unsigned dim = torus_port_dim(t, port);
    int direction = torus_port_direction(t, port);

    if (t->graphs == 0 || t->graph[dim] == NULL)
        return direction > 0 && torus_neighbour(t, rank, port) != TORUS_NO_NODE;
    uint32_t here = coordinate(t, rank, dim);
    uint32_t there = graph_neighbour(t->graph[dim], here, (unsigned)direction - 1);
    return there != GRAPH_NO_NODE && here < there;
}

uint32_t torus_shortest(const struct torus *t, unsigned dim, uint32_t from, uint32_t to,
                        int *direction)
{
    uint32_t straight = to > from ? to - from : from - to;
    uint32_t around = t->wrap[dim] ? t->size[dim] - straight : UINT32_MAX;

    if (straight != around && straight != 0)
        *direction = (to > from) == (straight < around) ? 1 : -1;
    return straight < around ? straight : around;
}

uint32_t torus_dim_distance(const struct torus *t, unsigned dim, uint32_t from, uint32_t to)
{
    int direction;

    return t->graphs != 0 && t->graph[dim] != NULL ? graph_distance(t->graph[dim], from, to)
                                                   : torus_shortest(t, dim, from, to, &direction);
}

uint32_t torus_distance(const struct torus *t, uint32_t a, uint32_t b)
{
    uint32_t from[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS];
    uint32_t hops = 0;

    torus_coordinates(t, a, from);
    torus_coordinates(t, b, to);
    for (unsigned i = 0; i < t->dims; i++)
        hops += torus_dim_distance(t, i, from[i], to[i]);
    return hops;
}

uint32_t torus_farthest(const struct torus *t, unsigned dim, uint32_t from)
{
    uint32_t farthest = 0;

    if (t->graph[dim] == NULL)
        return t->wrap[dim]                     ? t->size[dim] / 2
               : from > t->size[dim] - 1 - from ? from
                                                : t->size[dim] - 1 - from;
    for (uint32_t to = 0; to < t->size[dim]; to++)
        if (graph_distance(t->graph[dim], from, to) > farthest)
            farthest = graph_distance(t->graph[dim], from, to);
    return farthest;
}

uint32_t torus_centre(const struct torus *t, unsigned dim)
{
    if (t->graph[dim] != NULL)
        return t->graph[dim]->centre;
    return t->wrap[dim] ? 0 : (t->size[dim] - 1) / 2;
}

uint32_t torus_longest_path(const struct torus *t, unsigned dim)
{
    if (t->graph[dim] != NULL)
        return t->graph[dim]->diameter;
    return t->wrap[dim] ? t->size[dim] / 2 : t->size[dim] - 1;
}

uint32_t torus_diameter(const struct torus *t)
{
    uint32_t hops = 0;

    for (unsigned i = 0; i < t->dims; i++)
        hops += torus_longest_path(t, i);
    return hops;
}

void torus_full_period(const struct torus *t, uint32_t *period)
{
    for (unsigned i = 0; i < t->dims; i++)
        period[i] = t->wrap[i] || (t->graph[i] != NULL && t->graph[i]->moves) ? 1 : t->size[i];
}

void torus_no_period(const struct torus *t, uint32_t *period)
{
    for (unsigned i = 0; i < t->dims; i++)
        period[i] = t->size[i];
}

double torus_bound_all_port(const struct torus *t)
{
    double bound = 0;

    for (unsigned i = 0; i < t->dims; i++) {
        double lines = (double)(t->nodes / t->size[i]);
        uint64_t n = t->size[i];
        /* A cut into two halves is crossed by floor(n/2) * ceil(n/2) = floor(n^2/4) blocks of each
         * line in each direction. A mesh is cut at one place, a ring at two. */
        double across = lines * (double)(n * n / 4);
        double load = t->wrap[i] ? across / 2 : across;
        if (t->graph[i] != NULL)
            load = lines * t->graph[i]->least_load;
        if (load > bound)
            bound = load;
    }
    return bound;
}

double torus_bound_one_port(const struct torus *t)
{
    double links = torus_bound_all_port(t);
    double port = (double)(t->nodes - 1);
    return links > port ? links : port;
}

unsigned torus_fewest_links(const struct torus *t)
{
    unsigned links = 0;

    for (unsigned i = 0; i < t->dims; i++)
        if (t->graph[i] != NULL)
            links += t->graph[i]->fewest_links;
        else if (t->size[i] > 1)
            links += t->wrap[i] ? 2 : 1;
    return links;
}

double torus_bound_broadcast(const struct torus *t)
{
    unsigned links = torus_fewest_links(t);
    return links == 0 ? 0 : (t->nodes - 1 + links - 1) / links;
}

uint64_t torus_links(const struct torus *t)
{
    uint64_t links = 0;

    for (unsigned i = 0; i < t->dims; i++) {
        uint64_t n = t->size[i], along = t->wrap[i] && n > 1 ? n : n - 1;
        links += t->nodes / n * (t->graph[i] != NULL ? t->graph[i]->links : along);
    }
    return links;
}

double torus_bound_reduce(const struct torus *t)
{
    return t->nodes == 1 ? 0 : 1.0 / torus_fewest_links(t);
}

double torus_bound_reduce_scatter(const struct torus *t)
{
    if (t->nodes == 1)
        return 0;
    return (t->nodes - 1.0) / ((double)t->nodes * torus_fewest_links(t));
}

double torus_bound_allreduce(const struct torus *t)
{
    double by_channels, by_node = torus_bound_reduce(t);

    if (t->nodes == 1)
        return 0;
    by_channels = 2.0 * (t->nodes - 1) / (2.0 * (double)torus_links(t));
    return by_channels > by_node ? by_channels : by_node;
}

static int too_many_dimensions(const struct factor_text *r, struct error *e)
{
    return error_set(e, ERROR_USAGE, "torus \"%.64s\" has more than %d dimensions", r->text,
                     TORUS_MAX_DIMS);
}

/* Appends a factor as many times as its power says. */
static int append(const struct factor_text *r, struct torus *t, const struct factor *f,
                  uint32_t times, struct error *e)
{
    for (; times > 0; times--) {
        if (t->dims == TORUS_MAX_DIMS)
            return too_many_dimensions(r, e);
        if (f->nodes > TORUS_MAX_NODES / t->nodes)
            return error_set(e, ERROR_USAGE, "torus \"%.64s\" has more than %u nodes", r->text,
                             TORUS_MAX_NODES);
        if (torus_append(t, f->nodes, f->kind == FACTOR_RING, f->graph) != 0)
            return error_set(e, ERROR_USAGE, "torus \"%.64s\" needs more than %d ports a node",
                             r->text, TORUS_MAX_PORTS);
    }
    return 0;
}

static int parse(struct torus *t, struct factor_text r, struct error *e)
{
    struct torus result = {.nodes = 1};
    struct factor f;
    uint32_t times;

    do {
        if (result.dims == TORUS_MAX_DIMS)
            return too_many_dimensions(&r, e);
        if (factor_text_read(&r, &f, &times, e) != 0 || append(&r, &result, &f, times, e) != 0)
            return -1;
    } while (factor_text_goes_on(&r));
    if (factor_text_end(&r, e) != 0)
        return -1;
    *t = result;
    return 0;
}

int torus_parse(struct torus *t, const char *text, struct error *e)
{
    return parse(t,
                 (struct factor_text){
                     .what = "torus", .text = text, .at = text, .links = true, .files = true},
                 e);
}

int torus_parse_named(struct torus *t, const char *text, struct error *e)
{
    return parse(t, (struct factor_text){.what = "torus", .text = text, .at = text, .links = true},
                 e);
}

int torus_parse_known(struct torus *t, const char *text, struct error *e)
{
    return parse(t,
                 (struct factor_text){
                     .what = "torus", .text = text, .at = text, .links = true, .known = true},
                 e);
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
