#include "client/cli/drawing/node_positions.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/lib/schedule/graph/graph.h"
#include "daemon/lib/schedule/torus.h"

static const double pi = 3.14159265358979323846;

unsigned plane_dims(const struct torus *t, unsigned dim[2])
{
    unsigned count = 0;

    dim[0] = dim[1] = TORUS_MAX_DIMS;
    for (unsigned i = t->dims; i-- > 0;)
        if (t->size[i] > 1 && count++ < 2)
            dim[count - 1] = i;
    return count;
}

char *coordinates_text(const struct torus *t, uint32_t node, const unsigned *dim, char *text,
                       size_t size)
{
    uint32_t at[TORUS_MAX_DIMS];
    size_t used = 1;

    torus_coordinates(t, node, at);
    (void)snprintf(text, size, "(");
    for (unsigned i = 0; i < t->dims && used < size; i++) {
        const bool any = dim != NULL && (i == dim[0] || i == dim[1]);
        const char *comma = i > 0 ? ", " : "";
        used += (size_t)(any ? snprintf(text + used, size - used, "%s*", comma)
                             : snprintf(text + used, size - used, "%s%" PRIu32, comma, at[i]));
    }
    if (used < size)
        (void)snprintf(text + used, size - used, ")");
    return text;
}

/* ---- The part that is shown ------------------------------------------------------------------ */

/* How many dimensions of more than one node come after this one: 0 and 1 make a plane. */
static unsigned axis_of(const struct torus *t, unsigned dim)
{
    unsigned axis = 0;

    for (unsigned i = dim + 1; i < t->dims; i++)
        axis += t->size[i] > 1;
    return axis;
}

/* The dimension to be cut next: the outermost one of planes, else the longer side of a plane. */
static unsigned dimension_to_cut(const struct drawing_part *p, const struct torus *t)
{
    unsigned longest = 0;

    for (unsigned i = 0; i < t->dims; i++) {
        if (p->count[i] > 1 && axis_of(t, i) > 1)
            return i;
        if (p->count[i] > p->count[longest])
            longest = i;
    }
    return longest;
}

uint32_t drawing_part_nodes(const struct drawing_part *p, const struct torus *t)
{
    uint32_t nodes = 1;

    for (unsigned i = 0; i < t->dims; i++)
        nodes *= p->count[i];
    return nodes;
}

struct drawing_part drawing_part_choose(const struct torus *t, uint32_t most, uint32_t node)
{
    struct drawing_part p = {0};
    uint32_t at[TORUS_MAX_DIMS] = {0};

    for (unsigned i = 0; i < t->dims; i++)
        p.count[i] = t->size[i];
    while (drawing_part_nodes(&p, t) > most)
        p.count[dimension_to_cut(&p, t)]--;
    if (node != TORUS_NO_NODE)
        torus_coordinates(t, node, at);
    for (unsigned i = 0; i < t->dims; i++) {
        uint32_t before = p.count[i] / 2, last = t->size[i] - p.count[i];
        p.first[i] = at[i] > before ? at[i] - before : 0;
        if (p.first[i] > last)
            p.first[i] = last;
    }
    return p;
}

bool drawing_part_is_whole(const struct drawing_part *p, const struct torus *t)
{
    return drawing_part_nodes(p, t) == t->nodes;
}

bool drawing_part_has(const struct drawing_part *p, const struct torus *t, uint32_t node)
{
    uint32_t at[TORUS_MAX_DIMS];

    torus_coordinates(t, node, at);
    for (unsigned i = 0; i < t->dims; i++)
        if (at[i] < p->first[i] || at[i] - p->first[i] >= p->count[i])
            return false;
    return true;
}

bool drawing_part_has_line(const struct drawing_part *p, const struct torus *t, uint32_t start,
                           const struct leg *leg, uint32_t *from)
{
    uint32_t at[TORUS_MAX_DIMS], size = t->size[leg->dim], first = p->first[leg->dim];

    torus_coordinates(t, start, at);
    for (unsigned i = 0; i < t->dims; i++)
        if (i != leg->dim && (at[i] < p->first[i] || at[i] - p->first[i] >= p->count[i]))
            return false;
    if (leg->direction > 0)
        *from = (at[leg->dim] + size - first) % size;
    else
        *from = (first + p->count[leg->dim] - 1 + size - at[leg->dim]) % size;
    return true;
}

bool drawing_part_is_crossed(const struct drawing_part *p, const struct torus *t, uint32_t start,
                             const struct leg *leg)
{
    uint32_t from;

    if (t->graph[leg->dim] != NULL)
        return drawing_part_has(p, t, start) ||
               drawing_part_has(p, t, torus_walk(t, start, leg->dim, leg->direction, leg->hops));
    return drawing_part_has_line(p, t, start, leg, &from) &&
           (from < p->count[leg->dim] || from + leg->hops >= t->size[leg->dim]);
}

bool drawing_part_shows(const struct drawing_part *p, const struct torus *t, uint32_t start,
                        const struct leg *leg)
{
    if (axis_of(t, leg->dim) < 2)
        return drawing_part_is_crossed(p, t, start, leg);
    return drawing_part_has(p, t, start) ||
           drawing_part_has(p, t, torus_walk(t, start, leg->dim, leg->direction, leg->hops));
}

char *drawing_part_format(const struct drawing_part *p, const struct torus *t, char *text,
                          size_t size)
{
    size_t used = 0;

    for (unsigned i = 0; i < t->dims && used < size; i++) {
        uint32_t last = p->first[i] + p->count[i] - 1;
        used += (size_t)snprintf(text + used, size - used, "%s%" PRIu32, i == 0 ? "(" : ", ",
                                 p->first[i]);
        if (p->count[i] > 1 && used < size)
            used += (size_t)snprintf(text + used, size - used, "-%" PRIu32, last);
    }
    if (used < size)
        (void)snprintf(text + used, size - used, ")");
    return text;
}

/* ---- Trees ----------------------------------------------------------------------------------- */

enum { MOST_LEAVES = 24 }; /* side by side */
static const double level_height = 1.3;

static uint32_t farthest(const struct graph *g, uint32_t from)
{
    uint32_t most = 0;

    for (uint32_t to = 0; to < g->nodes; to++)
        most = graph_distance(g, from, to) > most ? graph_distance(g, from, to) : most;
    return most;
}

static uint32_t root_of(const struct graph *g)
{
    uint32_t root = 0;

    for (uint32_t node = 1; node < g->nodes && g->kind != GRAPH_KIND_TREE; node++)
        if (farthest(g, node) < farthest(g, root))
            root = node;
    return root;
}

/* A walk through the tree: at each level the node, and the direction to be followed next. */
struct level {
    uint32_t node;
    unsigned direction;
    double first; /* place of the first child */
    unsigned children;
};

/* Stores the place of each node along its level in `at[].x`: leaves are 1 apart, other nodes are above the middle of
 * their children. Stores the level in `at[].y`. Returns how many leaves there are. */
static uint32_t place(const struct graph *g, uint32_t root, struct level *path, struct point *at)
{
    uint32_t leaves = 0, depth = 0;

    path[0] = (struct level){.node = root};
    for (;;) {
        struct level *here = &path[depth];
        uint32_t next = GRAPH_NO_NODE;
        while (next == GRAPH_NO_NODE && here->direction < g->directions) {
            next = graph_neighbour(g, here->node, here->direction++);
            if (next != GRAPH_NO_NODE && depth > 0 && next == path[depth - 1].node)
                next = GRAPH_NO_NODE;
        }
        if (next != GRAPH_NO_NODE) {
            path[++depth] = (struct level){.node = next};
            continue;
        }
        struct point *p = &at[here->node];
        p->x = here->children == 0 ? leaves++ : (here->first + p->x) / 2;
        p->y = depth;
        if (depth == 0)
            return leaves;
        struct level *above = &path[--depth];
        if (above->children++ == 0)
            above->first = p->x;
        at[above->node].x = p->x; /* the last child so far */
    }
}

/* Stores the places in `at` (array of the nodes): by levels below the root, or in circles around it if there are many
 * leaves. The root is node 0 of a `tree:` factor, else a node in the middle. Returns 0, or -1 if there is no memory. */
static int tree_shape(const struct graph *g, struct point *at)
{
    struct level *path = calloc(g->nodes, sizeof *path);
    uint32_t root = root_of(g), leaves;

    if (path == NULL)
        return -1;
    leaves = place(g, root, path, at);
    free(path);
    double radius = leaves / (2 * pi) / farthest(g, root);
    radius = radius < level_height ? level_height : radius;
    for (uint32_t node = 0; node < g->nodes; node++) {
        double angle = 2 * pi * at[node].x / leaves, level = at[node].y;
        at[node].y = level * level_height;
        if (leaves > MOST_LEAVES)
            at[node] = (struct point){level * radius * cos(angle), level * radius * sin(angle)};
    }
    return 0;
}

/* ---- One factor ------------------------------------------------------------------------------ */

/* The places of the nodes of one factor of a network: rings and complete graphs on a circle, lines in a row, stars
 * around their middle, trees by levels, and other graphs so that the distance of two nodes is about the hops between
 * them. The same factor always has the same shape. */

/* Rounds of moves towards the wanted distances, and away from nodes and links that are too near. */
enum {
    STRESS_ROUNDS = 300,
    SPREAD_ROUNDS = 200,
    MANY_NODES = 128,
    STRESS_OF_MANY = 60,
    SPREAD_OF_MANY = 10
};
static const double node_room = 0.8; /* the least distance of two nodes, in lengths of links */
static const double link_room = 0.4; /* and of a node and a link of others */

static void circle(struct point *at, uint32_t count, double radius)
{
    for (uint32_t i = 0; i < count; i++) {
        double angle = 2 * pi * i / count - pi / 2;
        at[i] = (struct point){radius * cos(angle), radius * sin(angle)};
    }
}

/* The radius of the circle on which that many nodes are 1 apart. */
static double radius_of(uint32_t count)
{
    return count < 2 ? 0 : 0.5 / sin(pi / count);
}

static void row(struct point *at, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        at[i] = (struct point){i, 0};
}

/* Places one node in the middle, and the others on a circle. */
static void star(struct point *at, uint32_t count)
{
    double radius = radius_of(count - 1);

    at[0] = (struct point){0, 0};
    circle(at + 1, count - 1, radius < 1.2 ? 1.2 : radius);
}

/* Moves every node to the mean of the places that the other nodes want for it: as far from each as there are hops
 * between them. Near nodes count more (stress majorization, by Gansner, Koren, North: Graph Drawing by Stress
 * Majorization, 2005). */
static void settle(const struct graph *g, struct point *at, struct point *next)
{
    unsigned rounds = g->nodes > MANY_NODES ? STRESS_OF_MANY : STRESS_ROUNDS;

    for (unsigned round = 0; round < rounds; round++) {
        for (uint32_t i = 0; i < g->nodes; i++) {
            struct point sum = {0, 0};
            double weights = 0;
            for (uint32_t j = 0; j < g->nodes; j++) {
                double hops = graph_distance(g, i, j);
                if (j == i)
                    continue;
                struct point wanted = point_plus(at[j], point_towards(at[j], at[i]), hops);
                sum = point_plus(sum, wanted, 1 / (hops * hops));
                weights += 1 / (hops * hops);
            }
            next[i] = (struct point){sum.x / weights, sum.y / weights};
        }
        for (uint32_t i = 0; i < g->nodes; i++)
            at[i] = next[i];
    }
}

static void spread_nodes(const struct graph *g, struct point *at)
{
    for (uint32_t i = 0; i < g->nodes; i++)
        for (uint32_t j = i + 1; j < g->nodes; j++) {
            double lacks = node_room - point_distance(at[i], at[j]);
            if (lacks <= 0)
                continue;
            struct point away = point_towards(at[i], at[j]);
            at[i] = point_plus(at[i], away, -lacks / 2);
            at[j] = point_plus(at[j], away, lacks / 2);
        }
}

/* Moves a node away from a link of two others that passes it too closely. */
static void spread_link(struct point *at, uint32_t node, uint32_t a, uint32_t b)
{
    double lacks = link_room - point_off_line(at[node], at[a], at[b]);

    if (lacks <= 0)
        return;
    struct point left = point_left(point_towards(at[a], at[b]));
    double side = (at[node].x - at[a].x) * left.x + (at[node].y - at[a].y) * left.y;
    double move = (side < 0 ? -lacks : lacks) / 3;
    at[node] = point_plus(at[node], left, move);
    at[a] = point_plus(at[a], left, -move);
    at[b] = point_plus(at[b], left, -move);
}

static void spread_links(const struct graph *g, struct point *at)
{
    for (uint32_t a = 0; a < g->nodes; a++)
        for (unsigned direction = 0; direction < g->directions; direction++) {
            uint32_t b = graph_neighbour(g, a, direction);
            if (b == GRAPH_NO_NODE || b < a)
                continue;
            for (uint32_t node = 0; node < g->nodes; node++)
                if (node != a && node != b)
                    spread_link(at, node, a, b);
        }
}

static int any_graph(const struct graph *g, struct point *at)
{
    struct point *next = calloc(g->nodes, sizeof *next);
    unsigned rounds = g->nodes > MANY_NODES ? SPREAD_OF_MANY : SPREAD_ROUNDS;

    if (next == NULL)
        return -1;
    circle(at, g->nodes, radius_of(g->nodes));
    settle(g, at, next);
    for (unsigned round = 0; round < rounds; round++) {
        spread_nodes(g, at);
        spread_links(g, at);
    }
    free(next);
    return 0;
}

static int whole_graph(const struct graph *g, struct point *at)
{
    if (g->kind == GRAPH_KIND_STAR)
        star(at, g->nodes);
    else if (g->links == g->nodes - 1)
        return tree_shape(g, at);
    else if (g->links == g->nodes * (g->nodes - 1) / 2)
        circle(at, g->nodes, radius_of(g->nodes));
    else
        return any_graph(g, at);
    return 0;
}

/* Stores the places of the nodes from coordinate `first` on of dimension `dim` in `at` (array of `count`). The
 * distance between two nodes is about 1 or more. Returns 0, or -1 if memory is short. */
static int factor_shape(const struct torus *t, unsigned dim, uint32_t first, uint32_t count,
                        struct point *at)
{
    const struct graph *g = t->graph[dim];
    struct point *all;

    if (g == NULL) {
        if (t->wrap[dim] && count == t->size[dim])
            circle(at, count, radius_of(count));
        else
            row(at, count);
        return 0;
    }
    all = calloc(g->nodes, sizeof *all);
    int rc = all == NULL ? -1 : whole_graph(g, all);
    for (uint32_t i = 0; rc == 0 && i < count; i++)
        at[i] = all[first + i];
    free(all);
    return rc;
}

/* ---- A frame of a network -------------------------------------------------------------------- */

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
static double clearance(const struct torus *t, const struct network_positions *p,
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
static void turn(const struct torus *t, struct network_positions *p,
                 const struct drawing_part *part)
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
static void normalize(struct network_positions *p, const struct drawing_part *part)
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

static void network_positions_free(struct network_positions *p)
{
    free(p->at[0]);
    free(p->at[1]);
    *p = (struct network_positions){0};
}

/* Finds the places of all nodes. Returns 0 with *p, which the caller passes to network_places_free(), or -1 if memory is
 * short. */
static int network_positions_make(struct network_positions *p, const struct torus *t,
                                  const struct drawing_part *part)
{
    *p = (struct network_positions){.used = !torus_is_plain(t)};
    if (!p->used)
        return 0;
    const unsigned axes = plane_dims(t, p->dim);
    p->factors = axes < 2 ? axes : 2;
    for (unsigned i = 0; i < p->factors; i++) {
        unsigned dim = p->dim[i];
        p->at[i] = calloc(part->count[dim], sizeof *p->at[i]);
        if (p->at[i] == NULL ||
            factor_shape(t, dim, part->first[dim], part->count[dim], p->at[i]) != 0) {
            network_positions_free(p);
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

/* The place of a node that is shown, in its frame. */
static struct point network_place(const struct network_positions *p, const struct torus *t,
                                  const struct drawing_part *part, uint32_t node)
{
    uint32_t coordinates[TORUS_MAX_DIMS];
    struct point place = {0, 0};

    torus_coordinates(t, node, coordinates);
    for (unsigned i = 0; i < p->factors; i++)
        place = point_plus(place, p->at[i][coordinates[p->dim[i]] - part->first[p->dim[i]]], 1);
    return place;
}

/* ---- The whole ------------------------------------------------------------------------------- */

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

int svg_layout_make(struct svg_layout *l, const struct torus *t, const struct drawing_part *part)
{
    *l = (struct svg_layout){
        .torus = t, .part = *part, .across = 1, .down = 1, .planes_across = 1, .planes_down = 1};
    if (network_positions_make(&l->places, t, part) != 0)
        return -1;
    (void)plane_dims(t, l->dim);
    for (unsigned i = t->dims; i-- > 0;) {
        if (t->size[i] == 1)
            continue;
        uint32_t *const extents[] = {&l->across, &l->down, &l->planes_across, &l->planes_down};
        *extents[l->axes < 2 ? l->axes : 2 + l->axes % 2] *= part->count[i];
        l->axis[i] = (uint8_t)l->axes++;
    }
    l->pitch = l->axes > 2 ? PITCH_OF_PLANES : PITCH;
    l->frame_width = (int)(l->across - 1) * l->pitch + 2 * SVG_MARGIN;
    l->frame_height = (int)(l->down - 1) * l->pitch + 2 * SVG_MARGIN;
    if (l->places.used) {
        l->frame_width = (int)l->places.width + 2 * SVG_MARGIN;
        l->frame_height = (int)l->places.height + 2 * SVG_MARGIN;
    }
    l->plane_width = l->frame_width + GAP;
    l->plane_height = l->frame_height + GAP + (l->axes > 2 ? CAPTION : 0);
    l->width = (int)l->planes_across * l->plane_width - GAP;
    l->height = (int)l->planes_down * l->plane_height - GAP;
    return 0;
}

void svg_layout_free(struct svg_layout *l)
{
    network_positions_free(&l->places);
}

/* Stores the place of a node along right, down, planes to the right, planes down. As in ranks, the first dimensions
 * vary slowest. */
static void plane_place(const struct svg_layout *l, uint32_t node, uint32_t *place)
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

    plane_place(l, node, place);
    return (struct point){(int)place[2] * l->plane_width,
                          (int)place[3] * l->plane_height + (l->axes > 2 ? CAPTION : 0)};
}

struct point svg_layout_node(const struct svg_layout *l, uint32_t node)
{
    struct point p = svg_layout_frame(l, node);
    uint32_t place[4];

    if (l->places.used)
        return point_plus(point_plus(p, (struct point){SVG_MARGIN, SVG_MARGIN}, 1),
                          network_place(&l->places, l->torus, &l->part, node), 1);
    plane_place(l, node, place);
    p.x += SVG_MARGIN + (int)place[0] * l->pitch;
    p.y += SVG_MARGIN + (int)place[1] * l->pitch;
    return p;
}

bool svg_layout_begins_plane(const struct svg_layout *l, uint32_t node)
{
    uint32_t place[4];

    plane_place(l, node, place);
    return place[0] == 0 && place[1] == 0;
}

struct point svg_layout_port(const struct svg_layout *l, unsigned port)
{
    if (l->places.used)
        return (struct point){1, 0};
    struct point v = axis_vector[l->axis[torus_port_dim(l->torus, port)]];
    int direction = torus_port_direction(l->torus, port);

    return (struct point){direction * v.x, direction * v.y};
}
