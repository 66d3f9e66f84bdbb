#include "client/cli/drawing/svg_link.h"

#include <inttypes.h>

#include "client/cli/drawing/svg_stroke.h"

/* An arrow is to the left of its link, as in svg_arrow.c. */
enum {
    OFFSET = 5,      /* distance of an arrow of one hop from the link */
    BAND_OFFSET = 7, /* distance of the middle of a band */
    RISE = 15,       /* distance of an arrow that passes nodes */
    MOST_RISE = 25,  /* and of the outermost of several such arrows side by side */
    CLEAR = 15,      /* least distance of a link from nodes of others */
    APART = 14,      /* bend of the two links of a ring of two */
    STUB_FROM = 11,  /* a line to another frame */
    STUB_TO = 27,
    STUB_OFFSET = 3,
    SAMPLES = 8, /* of a bent link */
};
static const double contact = 8.7;    /* sqrt(SVG_RADIUS^2 - OFFSET^2) */
static const double gap = 1;          /* between an arrow's tip and the node */
static const double slope = 0.707;    /* an arrow that passes nodes leaves its node at 45 degrees */
static const double number_at = 0.38; /* of an arrow: links often cross in their middle */
static const double turn = 6.28318530717958647692;

/* ---- Lines between two nodes ------------------------------------------------------------------ */

/* A quadratic curve; straight if `bend` is 0. */
struct curve {
    struct point from, control, to;
    double bend; /* distance of its middle from the straight line, to the left */
};

static struct curve curve_make(struct point from, struct point to, double bend)
{
    struct point middle = {(from.x + to.x) / 2, (from.y + to.y) / 2};
    struct point left = point_left(point_towards(from, to));

    return (struct curve){from, point_plus(middle, left, 2 * bend), to, bend};
}

static struct point curve_at(const struct curve *c, double at)
{
    double a = (1 - at) * (1 - at), b = 2 * at * (1 - at), d = at * at;

    return (struct point){a * c->from.x + b * c->control.x + d * c->to.x,
                          a * c->from.y + b * c->control.y + d * c->to.y};
}

static double distance_from(const struct curve *c, struct point p)
{
    double least = point_distance(c->from, p);
    struct point before = c->from;

    for (unsigned i = 1; i <= SAMPLES; i++) {
        struct point here = curve_at(c, i / (double)SAMPLES);
        double distance = point_off_line(p, before, here);
        least = distance < least ? distance : least;
        before = here;
    }
    return least;
}

static bool same_frame(const struct svg_layout *l, uint32_t a, uint32_t b)
{
    struct point at = svg_layout_frame(l, a), other = svg_layout_frame(l, b);

    return !(point_distance(at, other) > 0);
}

static bool is_in_frame(const struct svg_layout *l, uint32_t node, uint32_t other)
{
    return svg_layout_has(l, other) && same_frame(l, node, other);
}

/* The least distance of a line within a frame, that of node a, from the nodes at which it does not end. */
static double clearance(const struct svg_layout *l, const struct curve *c, uint32_t a)
{
    const struct network_places *p = l->places;
    uint32_t inner = l->part.count[p->dim[0]];
    uint32_t outer = p->factors > 1 ? l->part.count[p->dim[1]] : 1;
    struct point frame = svg_layout_frame(l, a), middle = curve_at(c, 0.5);
    /* No node that is further from the middle of the line can be near it. */
    double reach = point_distance(c->from, c->to) / 2 + fabs(c->bend) + CLEAR, least = CLEAR;

    for (uint32_t i = 0; i < outer; i++) {
        struct point copy = {frame.x + SVG_MARGIN, frame.y + SVG_MARGIN};
        copy = p->factors > 1 ? point_plus(copy, p->at[1][i], 1) : copy;
        for (uint32_t k = 0; k < inner; k++) {
            struct point node = point_plus(copy, p->at[0][k], 1);
            if (point_distance(node, middle) <= reach && point_distance(node, c->from) > 1 &&
                point_distance(node, c->to) > 1)
                least = fmin(least, distance_from(c, node));
        }
    }
    return least;
}

/* The line from a node by a port, to a node of the same frame. Both ends find the same line. */
static struct curve line_of(const struct svg_layout *l, uint32_t node, unsigned port)
{
    static const double bends[] = {0, 12, -12, 20, -20, 30, -30, 42, -42};
    const struct torus *t = l->torus;
    unsigned dim = torus_port_dim(t, port);
    uint32_t other = torus_neighbour(t, node, port);
    struct point from = svg_layout_node(l, node), to = svg_layout_node(l, other);
    double best = -1, bend = 0, sign = node < other ? 1 : -1;

    if (t->graph[dim] == NULL && t->wrap[dim] && t->size[dim] == 2)
        return curve_make(from, to, torus_port_direction(t, port) * APART);
    for (size_t i = 0; i < sizeof bends / sizeof bends[0] && best < CLEAR; i++) {
        struct curve c = curve_make(from, to, sign * bends[i]);
        double is = clearance(l, &c, node);
        if (is > best + 0.1) {
            best = is;
            bend = sign * bends[i];
        }
    }
    return curve_make(from, to, bend);
}

/* The same line, moved to the left, from `start` behind its beginning to `end` before its end. */
static struct curve moved(const struct curve *c, double offset, double start, double end)
{
    struct point begins = point_towards(c->from, c->bend != 0 ? c->control : c->to);
    struct point ends = point_towards(c->bend != 0 ? c->control : c->from, c->to);
    struct point left = point_left(point_towards(c->from, c->to));

    return (struct curve){
        .from = point_plus(point_plus(c->from, begins, start), point_left(begins), offset),
        .control = point_plus(c->control, left, offset),
        .to = point_plus(point_plus(c->to, ends, -end), point_left(ends), offset),
        .bend = c->bend,
    };
}

/* Writes the line as the data of a path. */
static void put_curve(FILE *out, const struct curve *c)
{
    (void)fprintf(out, "M%.1f %.1f", c->from.x, c->from.y);
    if (c->bend != 0)
        (void)fprintf(out, "Q%.1f %.1f %.1f %.1f", c->control.x, c->control.y, c->to.x, c->to.y);
    else
        (void)fprintf(out, "L%.1f %.1f", c->to.x, c->to.y);
}

/* Writes a number beside a point of an arrow, on its outer side. */
static void put_number(FILE *out, struct point place, struct point left, double width,
                       const char *text)
{
    struct point p = point_plus(place, left, width / 2 + 5);

    (void)fprintf(out, "<text class=\"n\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>",
                  p.x, p.y + 2.5, text);
}

static void hop_arrow(FILE *out, const struct svg_layout *l, const struct svg_arrow *a,
                      unsigned port)
{
    struct curve line = line_of(l, a->start, port);
    struct curve arrow = moved(&line, OFFSET, contact, contact + gap);
    struct point tip = arrow.to,
                 ahead = point_towards(line.bend != 0 ? line.control : line.from, line.to);

    arrow.to = point_plus(tip, ahead, 1 - svg_stroke_head_length(a->width));
    svg_stroke_begin(out, a->width);
    put_curve(out, &arrow);
    (void)fputs("\"/>", out);
    svg_stroke_head(out, tip, ahead, a->width);
    if (a->text != NULL)
        put_number(out, curve_at(&arrow, number_at), point_left(point_towards(line.from, line.to)),
                   a->width, a->text);
}

/* ---- Past nodes -------------------------------------------------------------------------------- */

static double rise_of(const struct svg_arrow *a)
{
    return a->lanes < 2 ? RISE : RISE + (double)(MOST_RISE - RISE) * a->lane / (a->lanes - 1);
}

/* The place beside a node that an arrow passes, between its two neighbours. */
static struct point beside(struct point before, struct point node, struct point after, double rise)
{
    struct point in = point_left(point_towards(before, node)),
                 out = point_left(point_towards(node, after));
    double along = 1 + in.x * out.x + in.y * out.y; /* 2 on a straight way, 0 on a way back */

    along = along < 0.5 ? 0.5 : along;
    return point_plus(node, (struct point){in.x + out.x, in.y + out.y}, rise / along);
}

/* An arrow along a ring or line, past the nodes that relay the message. */
static void passing_arrow(FILE *out, const struct svg_layout *l, const struct svg_arrow *a,
                          unsigned port)
{
    double rise = rise_of(a), touch = SVG_RADIUS + gap;
    uint32_t node = a->start, next = torus_neighbour(l->torus, node, port);
    struct point before = svg_layout_node(l, node), here = svg_layout_node(l, next), last = before;
    struct point ahead = point_towards(before, here), left = point_left(ahead), middle = before;

    svg_stroke_begin(out, a->width);
    struct point p =
        point_plus(point_plus(before, ahead, SVG_RADIUS * slope), left, SVG_RADIUS * slope);
    (void)fprintf(out, "M%.1f %.1f", p.x, p.y);
    p = point_plus(point_plus(before, ahead, rise), left, rise);
    (void)fprintf(out, "L%.1f %.1f", p.x, p.y);
    for (uint16_t hop = 1; hop < a->leg.hops; hop++) {
        node = next;
        next = torus_neighbour(l->torus, node, port);
        struct point after = svg_layout_node(l, next);
        p = beside(before, here, after, rise);
        (void)fprintf(out, "L%.1f %.1f", p.x, p.y);
        middle = hop == a->leg.hops / 2 ? p : middle;
        left = hop == a->leg.hops / 2 ? point_towards(here, p) : left;
        before = here;
        here = after;
        last = before;
    }
    struct point to = point_towards(last, here), side = point_left(to);
    p = point_plus(point_plus(here, to, -rise), side, rise);
    struct point tip = point_plus(point_plus(here, to, -touch * slope), side, touch * slope);
    struct point down = point_towards(p, tip);
    struct point end = point_plus(tip, down, 1 - svg_stroke_head_length(a->width));
    (void)fprintf(out, "L%.1f %.1fL%.1f %.1f\"/>", p.x, p.y, end.x, end.y);
    svg_stroke_head(out, tip, down, a->width);
    if (a->text != NULL)
        put_number(out, middle, left, a->width, a->text);
}

/* ---- To other frames --------------------------------------------------------------------------- */

static bool is_out(const struct svg_layout *l, unsigned port)
{
    return svg_layout_leaves_plane(l, port) || !drawing_part_is_whole(&l->part, l->torus);
}

/* The direction of the short line at a node, the same for all nodes: the ports that may leave a frame share the
 * circle. */
static struct point stub_direction(const struct svg_layout *l, unsigned port)
{
    unsigned count = 0, number = 0;

    for (unsigned i = 0; i < torus_ports(l->torus); i++)
        if (l->torus->size[torus_port_dim(l->torus, i)] > 1 && is_out(l, i)) {
            number += i < port;
            count++;
        }
    double angle = turn * (number + 0.5) / (count > 0 ? count : 1) - turn / 8;
    return (struct point){cos(angle), sin(angle)};
}

/* Draws an arrow beside the short line of a node: away from the node, or towards it. */
static void stub_arrow(FILE *out, const struct svg_layout *l, uint32_t node, unsigned port,
                       bool away, const struct svg_arrow *a)
{
    struct point v = stub_direction(l, port), centre = svg_layout_node(l, node);
    struct point ahead = {away ? v.x : -v.x, away ? v.y : -v.y}, left = point_left(ahead);
    struct point from =
        point_plus(point_plus(centre, v, away ? STUB_FROM : STUB_TO), left, STUB_OFFSET);
    struct point tip =
        point_plus(point_plus(centre, v, away ? STUB_TO : STUB_FROM), left, STUB_OFFSET);
    struct curve line = {.from = from,
                         .to = point_plus(tip, ahead, 1 - svg_stroke_head_length(a->width))};

    svg_stroke_begin(out, a->width);
    put_curve(out, &line);
    (void)fputs("\"/>", out);
    svg_stroke_head(out, tip, ahead, a->width);
    if (away && a->text != NULL)
        put_number(out, curve_at(&(struct curve){from, from, tip, 0}, 0.5), left, a->width,
                   a->text);
}

static void stub_arrows(FILE *out, const struct svg_layout *l, const struct svg_arrow *a,
                        unsigned port)
{
    const struct torus *t = l->torus;
    uint32_t end = torus_walk(t, a->start, a->leg.dim, a->leg.direction, a->leg.hops);

    if (svg_layout_has(l, a->start))
        stub_arrow(out, l, a->start, port, true, a);
    if (svg_layout_has(l, end))
        stub_arrow(out, l, end, torus_port_opposite(t, port), false, a);
}

/* ---- All of them ------------------------------------------------------------------------------- */

static void put_link(FILE *out, const struct curve *line)
{
    (void)fputs("<path class=\"link\" fill=\"none\" d=\"", out);
    put_curve(out, line);
    (void)fputs("\"/>", out);
}

void svg_link_draw(FILE *out, const struct svg_layout *l, uint32_t node)
{
    const struct torus *t = l->torus;
    struct point centre = svg_layout_node(l, node);

    for (unsigned port = 0; port < torus_ports(t); port++) {
        uint32_t other = torus_neighbour(t, node, port);
        if (other == TORUS_NO_NODE)
            continue;
        if (is_in_frame(l, node, other)) {
            if (!torus_port_dials(t, node, port))
                continue;
            struct curve line = line_of(l, node, port);
            put_link(out, &line);
            continue;
        }
        struct point v = stub_direction(l, port), label = point_plus(centre, v, STUB_TO + 7);
        put_link(out, &(struct curve){.from = centre, .to = point_plus(centre, v, STUB_TO)});
        (void)fprintf(out,
                      "<text class=\"n\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%" PRIu32
                      "</text>\n",
                      label.x, label.y + 2.5, other);
    }
}

/* Whether all nodes of a leg are in one frame. */
static bool is_within(const struct svg_layout *l, const struct leg *leg, uint32_t start,
                      unsigned port)
{
    uint32_t node = start;

    if (!svg_layout_has(l, start))
        return false;
    for (uint16_t hop = 0; hop < leg->hops; hop++) {
        node = torus_neighbour(l->torus, node, port);
        if (!is_in_frame(l, start, node))
            return false;
    }
    return true;
}

void svg_link_arrow(FILE *out, const struct svg_layout *l, const struct svg_arrow *a)
{
    unsigned port = torus_port(l->torus, a->leg.dim, a->leg.direction);

    (void)fprintf(out, "<g class=\"p%u\">", port);
    if (!is_within(l, &a->leg, a->start, port))
        stub_arrows(out, l, a, port);
    else if (a->leg.hops > 1)
        passing_arrow(out, l, a, port);
    else
        hop_arrow(out, l, a, port);
    (void)fputs("</g>", out);
}

void svg_link_mark(FILE *out, const struct svg_layout *l, uint32_t node, unsigned port)
{
    uint32_t other = torus_neighbour(l->torus, node, port);
    struct curve band;

    if (!svg_layout_has(l, node))
        return;
    if (is_in_frame(l, node, other)) {
        struct curve line = line_of(l, node, port);
        band = moved(&line, BAND_OFFSET, SVG_RADIUS, SVG_RADIUS);
    } else {
        struct point centre = svg_layout_node(l, node), v = stub_direction(l, port);
        struct curve line = {.from = centre, .to = point_plus(centre, v, STUB_TO)};
        band = moved(&line, STUB_OFFSET, SVG_RADIUS, 0);
    }
    (void)fputs("<path class=\"crowd\" d=\"", out);
    put_curve(out, &band);
    (void)fputs("\"/>\n", out);
}
