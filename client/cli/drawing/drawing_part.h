/* The part of a torus that a picture shows: all of it, or a box of nodes if it is too large. */
#pragma once

#include "daemon/lib/schedule/algorithm.h"

/* By dimension: the first coordinate, and how many there are. */
struct drawing_part {
    uint32_t first[TORUS_MAX_DIMS], count[TORUS_MAX_DIMS];
};

#define DRAWING_PART_TEXT_SIZE 120

/* Returns a part of at most `most` nodes, with `node` in it unless that is TORUS_NO_NODE. Planes of the
 * last two dimensions stay whole as long as one of them fits. */
struct drawing_part drawing_part_choose(const struct torus *t, uint32_t most, uint32_t node);

bool drawing_part_is_whole(const struct drawing_part *p, const struct torus *t);
uint32_t drawing_part_nodes(const struct drawing_part *p, const struct torus *t);
bool drawing_part_has(const struct drawing_part *p, const struct torus *t, uint32_t node);

/* Whether the row or column of a leg that begins at this node is in the part. If so, *from is how many hops
 * its start is behind the first node of the row or column in the part, as seen in its direction: on a ring
 * from 0 to its size - 1. */
bool drawing_part_has_line(const struct drawing_part *p, const struct torus *t, uint32_t start,
                           const struct leg *leg, uint32_t *from);

/* Whether a leg that begins at this node starts, ends or passes in the part. */
bool drawing_part_is_crossed(const struct drawing_part *p, const struct torus *t, uint32_t start,
                             const struct leg *leg);

/* Whether the part shows anything of such a leg: a picture has no arrows for legs that only pass through
 * a plane, from one plane to another. */
bool drawing_part_shows(const struct drawing_part *p, const struct torus *t, uint32_t start,
                        const struct leg *leg);

/* "(0-3, 0-15, 7)", cut to the size. Returns `text`. */
char *drawing_part_format(const struct drawing_part *p, const struct torus *t, char *text,
                          size_t size);
