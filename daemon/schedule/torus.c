#include "daemon/schedule/torus.h"

#include <stdio.h>

/* Difference in rank between neighbours along `dim`. */
static uint32_t stride(const struct torus *t, unsigned dim)
{
    uint32_t product = 1;
    for (unsigned i = dim + 1; i < t->dims; i++)
        product *= t->size[i];
    return product;
}

int torus_parse(struct torus *t, const char *text, struct error *e)
{
    struct torus result = {.nodes = 1};
    const char *p = text;

    for (;;) {
        const char *digits = p;
        uint32_t size = 0;

        if (result.dims == TORUS_MAX_DIMS)
            return error_set(e, ERROR_USAGE, "torus \"%.64s\" has more than %d dimensions", text,
                             TORUS_MAX_DIMS);
        for (; *p >= '0' && *p <= '9'; p++) {
            size = 10 * size + (uint32_t)(*p - '0');
            if (size > TORUS_MAX_NODES)
                break; /* refused below, before it can overflow */
        }
        if (p == digits)
            return error_set(e, ERROR_USAGE,
                             "torus \"%.64s\": expected a size at \"%.16s\", as in 4x8 or 4x8m",
                             text, p);
        if (size == 0)
            return error_set(e, ERROR_USAGE, "torus \"%.64s\": sizes start at 1", text);
        if (size > TORUS_MAX_NODES / result.nodes)
            return error_set(e, ERROR_USAGE, "torus \"%.64s\" has more than %u nodes", text,
                             TORUS_MAX_NODES);
        result.nodes *= size;
        result.size[result.dims] = size;
        result.wrap[result.dims++] = *p != 'm';
        if (*p == 'm')
            p++;
        if (*p == '\0')
            break;
        if (*p++ != 'x')
            return error_set(e, ERROR_USAGE,
                             "torus \"%.64s\": expected x between sizes, not \"%.16s\"", text,
                             p - 1);
    }
    *t = result;
    return 0;
}

char *torus_format(const struct torus *t, char *text)
{
    size_t used = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < t->dims; i++) {
        int n = snprintf(text + used, TORUS_TEXT_SIZE - used, "%s%u%s", i == 0 ? "" : "x",
                         t->size[i], t->wrap[i] ? "" : "m");
        used += (size_t)n;
    }
    return text;
}

bool torus_equal(const struct torus *a, const struct torus *b)
{
    if (a->dims != b->dims)
        return false;
    for (unsigned i = 0; i < a->dims; i++)
        if (a->size[i] != b->size[i] || a->wrap[i] != b->wrap[i])
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

uint32_t torus_walk(const struct torus *t, uint32_t rank, unsigned dim, int direction,
                    uint32_t hops)
{
    uint32_t n = t->size[dim];
    uint32_t step = stride(t, dim);
    uint32_t from = rank / step % n;
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
    return torus_walk(t, rank, torus_port_dim(port), torus_port_direction(port), 1);
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

char *torus_port_name(unsigned port, char *name)
{
    name[0] = torus_port_direction(port) > 0 ? '+' : '-';
    name[1] = (char)('0' + torus_port_dim(port));
    name[2] = '\0';
    return name;
}

int torus_port_parse(const struct torus *t, const char *name)
{
    if ((name[0] != '+' && name[0] != '-') || name[1] < '0' || name[1] > '9' || name[2] != '\0')
        return -1;
    unsigned dim = (unsigned)(name[1] - '0');
    return dim < t->dims ? (int)torus_port(dim, name[0] == '+' ? 1 : -1) : -1;
}

uint32_t torus_distance(const struct torus *t, uint32_t a, uint32_t b)
{
    uint32_t from[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS];
    uint32_t hops = 0;
    int direction;

    torus_coordinates(t, a, from);
    torus_coordinates(t, b, to);
    for (unsigned i = 0; i < t->dims; i++)
        hops += torus_shortest(t, i, from[i], to[i], &direction);
    return hops;
}

uint32_t torus_longest_way(const struct torus *t, unsigned dim)
{
    return t->wrap[dim] ? t->size[dim] / 2 : t->size[dim] - 1;
}

uint32_t torus_diameter(const struct torus *t)
{
    uint32_t hops = 0;

    for (unsigned i = 0; i < t->dims; i++)
        hops += torus_longest_way(t, i);
    return hops;
}

void torus_full_period(const struct torus *t, uint32_t *period)
{
    for (unsigned i = 0; i < t->dims; i++)
        period[i] = t->wrap[i] ? 1 : t->size[i];
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
        if (t->size[i] > 1)
            links += t->wrap[i] ? 2 : 1;
    return links;
}

double torus_bound_broadcast(const struct torus *t)
{
    unsigned links = torus_fewest_links(t);
    return links == 0 ? 0 : (t->nodes - 1 + links - 1) / links;
}
