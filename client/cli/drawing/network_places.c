#include "client/cli/drawing/network_places.h"

#include <stdlib.h>

#include "client/cli/drawing/factor_shape.h"

/* In pixels. */
static const double node_pitch =
    52; /* between two nodes of a factor, and how much more for each link of a node */
static const double link_pitch = 7;
static const double between = 80;       /* between two copies of a factor */
static const double enough = 24;        /* between a node and a link of others */
static const double right_angle = 1.57; /* a little less, so that no factor stays as it is */
enum { TURNS = 24, MOST_LINKS = 6 };

struct extent {
    struct point least, most;
};

static struct extent extent_of(const struct point *at, uint32_t count)
{
    struct extent e = {at[0], at[0]};

    for (uint32_t i = 1; i < count; i++) {
        e.least.x = fmin(e.least.x, at[i].x);
        e.least.y = fmin(e.least.y, at[i].y);
        e.most.x = fmax(e.most.x, at[i].x);
        e.most.y = fmax(e.most.y, at[i].y);
    }
    return e;
}

/* The distance of two nodes of a factor: more links need more room for arrows and numbers. */
static double pitch_of(const struct torus *t, unsigned dim)
{
    unsigned links = t->graph[dim] == NULL ? 2 : t->graph[dim]->directions;

    return node_pitch + link_pitch * (links < MOST_LINKS ? links : MOST_LINKS);
}

static void scale(struct point *at, uint32_t count, double factor)
{
    for (uint32_t i = 0; i < count; i++)
        at[i] = (struct point){at[i].x * factor, at[i].y * factor};
}

static void rotate(struct point *at, uint32_t count, double angle)
{
    double c = cos(angle), s = sin(angle);

    for (uint32_t i = 0; i < count; i++)
        at[i] = (struct point){c * at[i].x - s * at[i].y, s * at[i].x + c * at[i].y};
}

/* The largest distance of two nodes. */
static double longest(const struct point *at, uint32_t count)
{
    double most = 0;

    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = i + 1; j < count; j++)
            most = fmax(most, point_distance(at[i], at[j]));
    return most;
}

/* How near a node of the inner factor comes to the links of the outer factor, which lead from each node of a copy to
 * the same node of another copy. Other copies are further away from such a link than its own ends, or on its line. */
static double clearance(const struct torus *t, const struct network_places *p,
                        const struct drawing_part *part)
{
    uint32_t inner = part->count[p->dim[0]], outer = part->count[p->dim[1]];
    double least = enough;

    for (uint32_t a = 0; a < outer; a++)
        for (uint32_t b = a + 1; b < outer; b++) {
            uint32_t from = part->first[p->dim[1]] + a, to = part->first[p->dim[1]] + b;
            if (torus_dim_distance(t, p->dim[1], from, to) != 1)
                continue;
            struct point way = {p->at[1][b].x - p->at[1][a].x, p->at[1][b].y - p->at[1][a].y};
            for (uint32_t i = 0; i < inner; i++)
                for (uint32_t j = 0; j < inner; j++) {
                    struct point end = point_plus(p->at[0][i], way, 1);
                    if (j != i)
                        least = fmin(least, point_off_line(p->at[0][j], p->at[0][i], end));
                }
        }
    return least;
}

/* Turns the inner factor so that the links between its copies pass its nodes in some distance. */
static void turn(const struct torus *t, struct network_places *p, const struct drawing_part *part)
{
    uint32_t inner = part->count[p->dim[0]];
    double best = clearance(t, p, part);
    unsigned turned = 0;

    for (unsigned i = 1; i < TURNS && best < enough; i++) {
        rotate(p->at[0], inner, right_angle / TURNS);
        double is = clearance(t, p, part);
        if (is > best + 0.5) {
            best = is;
            turned = i;
        }
        if (i == TURNS - 1 && best < enough)
            rotate(p->at[0], inner, right_angle / TURNS * (turned - (double)i));
    }
}

/* Moves the places so that the extent begins at 0. */
static void normalize(struct network_places *p, const struct drawing_part *part)
{
    p->width = p->height = 0;
    for (unsigned i = 0; i < p->factors; i++) {
        uint32_t count = part->count[p->dim[i]];
        struct extent e = extent_of(p->at[i], count);
        for (uint32_t k = 0; k < count; k++)
            p->at[i][k] = point_plus(p->at[i][k], e.least, -1);
        p->width += e.most.x - e.least.x;
        p->height += e.most.y - e.least.y;
    }
}

int network_places_make(struct network_places *p, const struct torus *t,
                        const struct drawing_part *part)
{
    *p = (struct network_places){.used = !torus_is_plain(t)};
    for (unsigned i = t->dims; i-- > 0 && p->used && p->factors < 2;)
        if (t->size[i] > 1)
            p->dim[p->factors++] = i;
    for (unsigned i = 0; i < p->factors; i++) {
        unsigned dim = p->dim[i];
        p->at[i] = calloc(part->count[dim], sizeof *p->at[i]);
        if (p->at[i] == NULL ||
            factor_shape(t, dim, part->first[dim], part->count[dim], p->at[i]) != 0) {
            network_places_free(p);
            return -1;
        }
    }
    if (p->factors > 0)
        scale(p->at[0], part->count[p->dim[0]], pitch_of(t, p->dim[0]));
    if (p->factors > 1) {
        double across = longest(p->at[0], part->count[p->dim[0]]);
        scale(p->at[1], part->count[p->dim[1]], across + between);
        turn(t, p, part);
    }
    normalize(p, part);
    return 0;
}

void network_places_free(struct network_places *p)
{
    free(p->at[0]);
    free(p->at[1]);
    *p = (struct network_places){0};
}

struct point network_place(const struct network_places *p, const struct torus *t,
                           const struct drawing_part *part, uint32_t node)
{
    uint32_t coordinates[TORUS_MAX_DIMS];
    struct point place = {0, 0};

    torus_coordinates(t, node, coordinates);
    for (unsigned i = 0; i < p->factors; i++)
        place = point_plus(place, p->at[i][coordinates[p->dim[i]] - part->first[p->dim[i]]], 1);
    return place;
}
