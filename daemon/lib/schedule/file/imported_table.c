/* Where the routes of a schedule are stored, and which torus it is for. */
#include "daemon/lib/schedule/file/imported_parts.h"

static uint32_t class_of(const struct imported *s, const uint32_t *at)
{
    uint32_t class = 0;

    for (unsigned i = 0; i < s->torus.dims; i++)
        class = class * s->period[i] + at[i] % s->period[i];
    return class;
}

struct imported_route *imported_route_at(const struct imported *s, uint32_t class,
                                         uint32_t destination, uint32_t segment)
{
    return &s->route[((size_t) class * s->torus.nodes + destination) * s->algorithm.segments +
                     segment];
}

struct imported_route *imported_find_route(const struct imported *s, uint32_t source,
                                           uint32_t destination, uint32_t segment)
{
    const struct torus *t = &s->torus;
    uint32_t from[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS];

    torus_coordinates(t, source, from);
    torus_coordinates(t, destination, to);
    for (unsigned i = 0; i < t->dims; i++)
        to[i] = (to[i] + t->size[i] - from[i] / s->period[i] * s->period[i]) % t->size[i];
    return imported_route_at(s, class_of(s, from), torus_rank(t, to), segment);
}

uint32_t imported_representative(const struct imported *s, uint32_t class)
{
    uint32_t at[TORUS_MAX_DIMS];

    for (unsigned i = s->torus.dims; i-- > 0;) {
        at[i] = class % s->period[i];
        class /= s->period[i];
    }
    return torus_rank(&s->torus, at);
}

int imported_check_torus(const struct imported *s, const struct torus *t, struct error *e)
{
    char dims[TORUS_TEXT_SIZE];

    if (torus_equal(&s->torus, t))
        return 0;
    return error_set(e, ERROR_REFUSED, "schedule %s is for a torus of %s, not %s", s->name, s->dims,
                     torus_format(t, dims));
}

int imported_no_memory(struct error *e)
{
    return error_set(e, ERROR_MEMORY, "out of memory for a schedule");
}
