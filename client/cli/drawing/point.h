/* A place in a picture, or a vector. Lengths are in pixels; y grows downwards. */
#pragma once

#include <math.h>

struct point {
    double x, y;
};

static inline struct point point_plus(struct point a, struct point b, double factor)
{
    return (struct point){a.x + factor * b.x, a.y + factor * b.y};
}

static inline double point_distance(struct point a, struct point b)
{
    return hypot(a.x - b.x, a.y - b.y);
}

/* The unit vector from one point to another; to the right if both are the same. */
static inline struct point point_towards(struct point from, struct point to)
{
    double length = point_distance(from, to);

    if (!(length > 0))
        return (struct point){1, 0};
    return (struct point){(to.x - from.x) / length, (to.y - from.y) / length};
}

/* A vector turned to the left by 90 degrees, as seen in its direction. */
static inline struct point point_left(struct point v)
{
    return (struct point){v.y, -v.x};
}

/* The distance of a point from a straight line between two others. */
static inline double point_off_line(struct point p, struct point a, struct point b)
{
    double length = point_distance(a, b);
    struct point along = point_towards(a, b);
    double at = (p.x - a.x) * along.x + (p.y - a.y) * along.y;

    at = at < 0 ? 0 : at > length ? length : at;
    return point_distance(p, point_plus(a, along, at));
}
