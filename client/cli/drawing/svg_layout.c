#include "client/cli/drawing/svg_layout.h"

enum {
    PITCH = 48,
    PITCH_OF_PLANES = 62, /* with space for arrows to other planes */
    GAP = 14,             /* between frames */
    CAPTION = 16,         /* above each frame, if there are several */
};

/* The direction of each axis. Arrows to planes side by side point to the upper right, arrows to planes below each other
 * to the lower right, and arrows of further axes between these. */
static const struct point axis_vector[TORUS_MAX_DIMS] = {
    {1, 0},          {0, 1},         {0.707, -0.707}, {0.707, 0.707},
    {0.924, -0.383}, {0.383, 0.924}, {0.383, -0.924}, {0.924, 0.383},
};

struct svg_layout svg_layout_make(const struct torus *t, const struct drawing_part *part,
                                  const struct network_places *places)
{
    struct svg_layout l = {.torus = t,
                           .part = *part,
                           .places = places->used ? places : NULL,
                           .across = 1,
                           .down = 1,
                           .planes_across = 1,
                           .planes_down = 1};

    for (unsigned i = t->dims; i-- > 0;) {
        if (t->size[i] == 1)
            continue;
        uint32_t *const extents[] = {&l.across, &l.down, &l.planes_across, &l.planes_down};
        *extents[l.axes < 2 ? l.axes : 2 + l.axes % 2] *= part->count[i];
        l.axis[i] = (uint8_t)l.axes++;
    }
    l.pitch = l.axes > 2 ? PITCH_OF_PLANES : PITCH;
    l.frame_width = (int)(l.across - 1) * l.pitch + 2 * SVG_MARGIN;
    l.frame_height = (int)(l.down - 1) * l.pitch + 2 * SVG_MARGIN;
    if (l.places != NULL) {
        l.frame_width = (int)places->width + 2 * SVG_MARGIN;
        l.frame_height = (int)places->height + 2 * SVG_MARGIN;
    }
    l.plane_width = l.frame_width + GAP;
    l.plane_height = l.frame_height + GAP + (l.axes > 2 ? CAPTION : 0);
    l.width = (int)l.planes_across * l.plane_width - GAP;
    l.height = (int)l.planes_down * l.plane_height - GAP;
    return l;
}

/* Stores the place of a node along right, down, planes to the right, planes down. As in ranks, the first dimensions
 * vary slowest. */
static void places(const struct svg_layout *l, uint32_t node, uint32_t *place)
{
    uint32_t at[TORUS_MAX_DIMS];

    torus_coordinates(l->torus, node, at);
    for (unsigned i = 0; i < 4; i++)
        place[i] = 0;
    for (unsigned i = 0; i < l->torus->dims; i++) {
        if (l->torus->size[i] == 1)
            continue;
        unsigned axis = l->axis[i] < 2 ? l->axis[i] : 2u + l->axis[i] % 2;
        place[axis] = place[axis] * l->part.count[i] + at[i] - l->part.first[i];
    }
}

bool svg_layout_has(const struct svg_layout *l, uint32_t node)
{
    return drawing_part_has(&l->part, l->torus, node);
}

struct point svg_layout_frame(const struct svg_layout *l, uint32_t node)
{
    uint32_t place[4];

    places(l, node, place);
    return (struct point){(int)place[2] * l->plane_width,
                          (int)place[3] * l->plane_height + (l->axes > 2 ? CAPTION : 0)};
}

struct point svg_layout_node(const struct svg_layout *l, uint32_t node)
{
    struct point p = svg_layout_frame(l, node);
    uint32_t place[4];

    if (l->places != NULL)
        return point_plus(point_plus(p, (struct point){SVG_MARGIN, SVG_MARGIN}, 1),
                          network_place(l->places, l->torus, &l->part, node), 1);
    places(l, node, place);
    p.x += SVG_MARGIN + (int)place[0] * l->pitch;
    p.y += SVG_MARGIN + (int)place[1] * l->pitch;
    return p;
}

bool svg_layout_begins_plane(const struct svg_layout *l, uint32_t node)
{
    uint32_t place[4];

    places(l, node, place);
    return place[0] == 0 && place[1] == 0;
}

struct point svg_layout_port(const struct svg_layout *l, unsigned port)
{
    if (l->places != NULL)
        return (struct point){1, 0};
    struct point v = axis_vector[l->axis[torus_port_dim(l->torus, port)]];
    int direction = torus_port_direction(l->torus, port);

    return (struct point){direction * v.x, direction * v.y};
}
