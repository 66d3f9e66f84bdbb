#include "client/cli/drawing/svg_arrow.h"

#include <inttypes.h>

/* Lengths are in pixels. An arrow is to the left of the line between two nodes, as seen in its direction, so that the
 * arrows of the two channels of a link do not overlap. */
enum {
    OFFSET = 5,      /* distance of an arrow of one hop from the line */
    BAND_OFFSET = 7, /* distance of the middle of a band */
    STUB_OFFSET = 3, /* distance of an arrow to another frame */
    WIDEST = 5,      /* width of the widest line */
    STUB_WIDEST = 3,
    NETWORK_WIDEST = 4, /* where links cross each other */
};
static const double contact = 8.7; /* sqrt(SVG_RADIUS^2 - OFFSET^2) */
static const double slope = 0.707; /* an arrow that passes nodes leaves its node at 45 degrees */
static const double gap = 1;       /* between an arrow's tip and the node */

/* ---- Strokes --------------------------------------------------------------------------------- */

/* Begins a path of this width; the caller writes its data and closes it. */
static void begin_stroke(FILE *out, double width)
{
    (void)fprintf(out, "<path class=\"l\" stroke-width=\"%.1f\" d=\"", width);
}

static void put_line(FILE *out, struct point from, struct point to, double width)
{
    begin_stroke(out, width);
    (void)fprintf(out, "M%.1f %.1fL%.1f %.1f\"/>", from.x, from.y, to.x, to.y);
}

/* The length of the head of an arrow. */
static double head_length(double width)
{
    return 4.5 + 0.6 * width;
}

/* Where the line of an arrow ends, a little within its head. */
static struct point behind_head(struct point tip, struct point ahead, double width)
{
    return point_plus(tip, ahead, 1 - head_length(width));
}

/* Draws a head with its tip at a point, in the direction of a unit vector. */
static void put_head(FILE *out, struct point tip, struct point ahead, double width)
{
    double length = head_length(width), half = 2.2 + 0.5 * width;
    struct point base = point_plus(tip, ahead, -length), left = point_left(ahead);
    struct point a = point_plus(base, left, half), b = point_plus(base, left, -half);

    (void)fprintf(out, "<path class=\"h\" d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1fz\"/>", tip.x, tip.y,
                  a.x, a.y, b.x, b.y);
}

static void put_text(FILE *out, struct point p, const char *anchor, const char *text)
{
    (void)fprintf(out, "<text class=\"n\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>", p.x,
                  p.y + 2.5, anchor, text);
}

/* The distance of an arrow of several hops: from `least` to `most`, by lanes. */
static double rise_of(const struct svg_arrow *a, double least, double most)
{
    return a->lanes < 2 ? least : least + (most - least) * a->lane / (a->lanes - 1);
}

/* ---- Rings and lines: within a plane --------------------------------------------------------- */

enum {
    RISE = 17,      /* height of an arc, which passes over nodes and straight arrows */
    MOST_RISE = 30, /* largest distance of arcs that share channels and lie side by side */
    ROUNDING = 9,   /* at the shoulders of an arc */
    STUB_FROM = 14, /* an arrow to another plane, clear of the arrows within the plane */
    STUB_TO = 31,
};

/* The coordinates of an arrow: s ahead of and h to the left of the centre of a node. */
struct view {
    struct point centre, ahead;
};

static struct point at(const struct view *v, double s, double h)
{
    return (struct point){v->centre.x + s * v->ahead.x + h * v->ahead.y,
                          v->centre.y + s * v->ahead.y - h * v->ahead.x};
}

static void put_point(FILE *out, char command, const struct view *v, double s, double h)
{
    struct point p = at(v, s, h);
    (void)fprintf(out, "%c%.1f %.1f", command, p.x, p.y);
}

/* Draws a straight arrow from `from` to `tip` ahead of the centre. */
static void put_arrow(FILE *out, const struct view *v, double from, double tip, double h,
                      double width)
{
    put_line(out, at(v, from, h), at(v, tip - head_length(width) + 1, h), width);
    put_head(out, at(v, tip, h), v->ahead, width);
}

/* The part of an arrow within one frame, from `from` to `to` ahead of the node of the view. Unless the arrow starts
 * or ends there, the frame cuts it. */
struct part {
    struct view view;
    double from, to;
    bool starts, ends;
};

static void straight_part(FILE *out, const struct part *p, double width)
{
    double from = p->starts ? p->from + contact : p->from;

    if (p->ends)
        put_arrow(out, &p->view, from, p->to - contact - gap, OFFSET, width);
    else
        put_line(out, at(&p->view, from, OFFSET), at(&p->view, p->to, OFFSET), width);
}

static void arc_part(FILE *out, const struct part *p, double rise, double width)
{
    const struct view *v = &p->view;
    double touch = (SVG_RADIUS + gap) * slope;
    double end = (SVG_RADIUS + gap + head_length(width) - 1) * slope;
    struct point left = point_left(v->ahead);

    begin_stroke(out, width);
    if (p->starts) {
        put_point(out, 'M', v, p->from + SVG_RADIUS * slope, SVG_RADIUS * slope);
        put_point(out, 'Q', v, p->from + rise, rise);
        put_point(out, ' ', v, p->from + rise + ROUNDING, rise);
    } else {
        put_point(out, 'M', v, p->from, rise);
    }
    if (p->ends) {
        put_point(out, 'L', v, p->to - rise - ROUNDING, rise);
        put_point(out, 'Q', v, p->to - rise, rise);
        put_point(out, ' ', v, p->to - end, end);
    } else {
        put_point(out, 'L', v, p->to, rise);
    }
    (void)fputs("\"/>", out);
    if (p->ends)
        put_head(out, at(v, p->to - touch, touch),
                 (struct point){slope * v->ahead.x - slope * left.x,
                                slope * v->ahead.y - slope * left.y},
                 width);
}

/* As split(), for a torus of which only a part is shown: the arrow may start or end outside. The view is that of the
 * first node of the row or column in the direction of the arrow. Returns 0 if the row or column is not shown. */
static unsigned split_cut(const struct svg_layout *l, const struct leg *leg, uint32_t start,
                          struct part *parts)
{
    uint32_t at[TORUS_MAX_DIMS], from, to, size = l->torus->size[leg->dim],
                                           n = l->part.count[leg->dim];
    double beyond = (n - 1) * (double)l->pitch + SVG_MARGIN;
    unsigned count = 0;

    if (!drawing_part_has_line(&l->part, l->torus, start, leg, &from))
        return 0;
    to = from + leg->hops;
    torus_coordinates(l->torus, start, at);
    at[leg->dim] = l->part.first[leg->dim] + (leg->direction > 0 ? 0 : n - 1);
    struct view view = {svg_layout_node(l, torus_rank(l->torus, at)),
                        svg_layout_port(l, torus_port(l->torus, leg->dim, leg->direction))};
    if (from < n)
        parts[count++] = (struct part){.view = view,
                                       .from = from * (double)l->pitch,
                                       .to = to < n ? to * (double)l->pitch : beyond,
                                       .starts = true,
                                       .ends = to < n};
    if (to >= size)
        parts[count++] =
            (struct part){.view = view,
                          .from = -SVG_MARGIN,
                          .to = to - size < n ? (to - size) * (double)l->pitch : beyond,
                          .ends = to - size < n};
    return count;
}

/* Splits an arrow along a row or column where it leaves the frame. Returns how many parts there
 * are, at most 3. */
static unsigned split(const struct svg_layout *l, const struct leg *leg, uint32_t start,
                      struct part *parts)
{
    uint32_t coordinates[TORUS_MAX_DIMS], n = l->torus->size[leg->dim];

    if (!drawing_part_is_whole(&l->part, l->torus))
        return split_cut(l, leg, start, parts);
    uint32_t end = torus_walk(l->torus, start, leg->dim, leg->direction, leg->hops);
    struct point ahead = svg_layout_port(l, torus_port(l->torus, leg->dim, leg->direction));

    torus_coordinates(l->torus, start, coordinates);
    uint32_t from = coordinates[leg->dim]; /* distance from the side where arrows enter the frame */
    torus_coordinates(l->torus, end, coordinates);
    uint32_t to = coordinates[leg->dim];
    if (leg->direction < 0) {
        from = n - 1 - from;
        to = n - 1 - to;
    }
    parts[0] = (struct part){.view = {svg_layout_node(l, start), ahead}, .starts = true};
    if (leg->hops <= n - 1 - from) {
        parts[0].to = leg->hops * l->pitch;
        parts[0].ends = true;
        return 1;
    }
    parts[0].to = (n - 1 - from) * (double)l->pitch + SVG_MARGIN;
    parts[1] = (struct part){.view = {svg_layout_node(l, end), ahead}, .ends = true};
    parts[1].from = -(to * (double)l->pitch + SVG_MARGIN);
    if (leg->hops == n - from + to)
        return 2;
    /* More than once around the ring: the third part is the whole row or column. */
    parts[2] = (struct part){.view = parts[1].view, .from = parts[1].from};
    parts[2].to = parts[2].from + (n - 1) * (double)l->pitch + 2 * SVG_MARGIN;
    return 3;
}

/* Writes a number beside the middle of the arrow, on its outer side. */
static void put_part_number(FILE *out, const struct part *p, double rise, const struct svg_arrow *a)
{
    const double y = p->view.ahead.y;
    const char *anchor = y > 0.5 ? "start" : y < -0.5 ? "end" : "middle";
    double beside = anchor[0] == 'm' ? 5.5 : 1.5;

    put_text(out, at(&p->view, (p->from + p->to) / 2, rise + a->width / 2 + beside), anchor,
             a->text);
}

static void draw_within(FILE *out, const struct svg_layout *l, const struct svg_arrow *a)
{
    struct part parts[3];
    unsigned count = split(l, &a->leg, a->start, parts);
    double rise = a->leg.hops == 1 ? OFFSET : rise_of(a, RISE, MOST_RISE);

    for (unsigned i = 0; i < count; i++) {
        if (a->leg.hops == 1)
            straight_part(out, &parts[i], a->width);
        else
            arc_part(out, &parts[i], rise, a->width);
    }
    if (a->text != NULL && count > 0)
        put_part_number(out, &parts[0], rise, a);
}

/* ---- Rings and lines: to another plane ------------------------------------------------------- */

static void draw_between(FILE *out, const struct svg_layout *l, const struct svg_arrow *a)
{
    uint32_t end = torus_walk(l->torus, a->start, a->leg.dim, a->leg.direction, a->leg.hops);
    struct point ahead = svg_layout_port(l, torus_port(l->torus, a->leg.dim, a->leg.direction));

    if (svg_layout_has(l, a->start)) {
        const struct view from = {svg_layout_node(l, a->start), ahead};
        put_arrow(out, &from, STUB_FROM, STUB_TO, STUB_OFFSET, a->width);
        if (a->text != NULL)
            put_text(out, at(&from, (STUB_FROM + STUB_TO) / 2.0, STUB_OFFSET + a->width / 2 + 6),
                     "middle", a->text);
    }
    if (svg_layout_has(l, end)) {
        const struct view to = {svg_layout_node(l, end), ahead};
        put_arrow(out, &to, -STUB_TO, -STUB_FROM, STUB_OFFSET, a->width);
    }
    if (svg_layout_has(l, a->start) && a->leg.hops > 1) {
        const struct view from = {svg_layout_node(l, a->start), ahead};
        char planes[16];
        (void)snprintf(planes, sizeof planes, "%+d", a->leg.direction * a->leg.hops);
        put_text(out, at(&from, STUB_TO + 5, STUB_OFFSET), "middle", planes);
    }
}

static void mark_plain(FILE *out, const struct svg_layout *l, uint32_t node, unsigned port)
{
    const struct leg hop = {
        .hops = 1,
        .dim = (uint8_t)torus_port_dim(l->torus, port),
        .direction = (int8_t)torus_port_direction(l->torus, port),
    };
    bool leaves = svg_layout_leaves_plane(l, port);
    if (leaves && !svg_layout_has(l, node))
        return;
    struct part parts[3] = {{.to = STUB_TO, .starts = true}};
    if (leaves)
        parts[0].view = (struct view){svg_layout_node(l, node), svg_layout_port(l, port)};
    unsigned count = leaves ? 1 : split(l, &hop, node, parts);
    double offset = leaves ? STUB_OFFSET : BAND_OFFSET;

    for (unsigned i = 0; i < count; i++) {
        const struct part *p = &parts[i];
        (void)fputs("<path class=\"crowd\" d=\"", out);
        put_point(out, 'M', &p->view, p->from + (p->starts ? SVG_RADIUS : 0), offset);
        put_point(out, 'L', &p->view, p->to - (p->ends ? SVG_RADIUS : 0), offset);
        (void)fputs("\"/>", out);
    }
}

/* Draws the links of a node within its plane: a line to the next node, and half a line at each side for a link that
 * wraps. */
static void put_plain_links(FILE *out, const struct svg_layout *l, uint32_t node)
{
    const struct torus *t = l->torus;
    struct point c = svg_layout_node(l, node);
    uint32_t at[TORUS_MAX_DIMS];

    torus_coordinates(t, node, at);
    for (unsigned port = 0; port < torus_ports(t); port++) {
        unsigned dim = torus_port_dim(t, port);
        bool plus = torus_port_direction(t, port) > 0;
        if (torus_neighbour(t, node, port) == TORUS_NO_NODE || svg_layout_leaves_plane(l, port))
            continue;
        struct point v = svg_layout_port(l, port);
        const struct drawing_part *part = &l->part;
        bool outermost = at[dim] == part->first[dim] + (plus ? part->count[dim] - 1 : 0);
        int length = outermost ? SVG_MARGIN : l->pitch;
        if (outermost || plus)
            (void)fprintf(out, "<path class=\"link\" d=\"M%.0f %.0fL%.0f %.0f\"/>\n", c.x, c.y,
                          c.x + length * v.x, c.y + length * v.y);
    }
}

/* ---- Networks with other factors ----------------------------------------------------------------
 *
 * A link is a line between two nodes of a frame, bent if it would cross a third node; a link that leaves the frame is a
 * short line at both ends, with the number of the node at the other end. */

enum {
    NETWORK_RISE = 15,      /* distance of an arrow that passes nodes */
    NETWORK_MOST_RISE = 25, /* and of the outermost of several such arrows side by side */
    CLEAR = 15,             /* least distance of a link from nodes of others */
    APART = 14,             /* bend of the two links of a ring of two */
    NETWORK_STUB_FROM = 11, /* a line to another frame */
    NETWORK_STUB_TO = 27,
    SAMPLES = 8, /* of a bent link */
};
static const double number_at = 0.38; /* of an arrow: links often cross in their middle */
static const double turn = 6.28318530717958647692;

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
    const struct network_positions *p = &l->places;
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
    if (text != NULL)
        put_text(out, point_plus(place, left, width / 2 + 5), "middle", text);
}

static void hop_arrow(FILE *out, const struct svg_layout *l, const struct svg_arrow *a,
                      unsigned port)
{
    struct curve line = line_of(l, a->start, port);
    struct curve arrow = moved(&line, OFFSET, contact, contact + gap);
    struct point tip = arrow.to,
                 ahead = point_towards(line.bend != 0 ? line.control : line.from, line.to);

    arrow.to = behind_head(tip, ahead, a->width);
    begin_stroke(out, a->width);
    put_curve(out, &arrow);
    (void)fputs("\"/>", out);
    put_head(out, tip, ahead, a->width);
    put_number(out, curve_at(&arrow, number_at), point_left(point_towards(line.from, line.to)),
               a->width, a->text);
}

/* ---- Past nodes -------------------------------------------------------------------------------- */

/* The place beside a node that an arrow passes, between its two neighbours. */
static struct point beside(struct point before, struct point node, struct point after, double rise)
{
    struct point in = point_left(point_towards(before, node)),
                 out = point_left(point_towards(node, after));
    double along = 1 + in.x * out.x + in.y * out.y; /* 2 on a straight way, 0 on a way back */

    along = along < 0.5 ? 0.5 : along;
    return point_plus(node, (struct point){in.x + out.x, in.y + out.y}, rise / along);
}

/* Draws an arrow along a ring or line, past the nodes that relay the message. */
static void passing_arrow(FILE *out, const struct svg_layout *l, const struct svg_arrow *a,
                          unsigned port)
{
    double rise = rise_of(a, NETWORK_RISE, NETWORK_MOST_RISE), touch = SVG_RADIUS + gap;
    uint32_t node = a->start, next = torus_neighbour(l->torus, node, port);
    struct point before = svg_layout_node(l, node), here = svg_layout_node(l, next), last = before;
    struct point ahead = point_towards(before, here), left = point_left(ahead), middle = before;

    begin_stroke(out, a->width);
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
    struct point end = behind_head(tip, down, a->width);
    (void)fprintf(out, "L%.1f %.1fL%.1f %.1f\"/>", p.x, p.y, end.x, end.y);
    put_head(out, tip, down, a->width);
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
    struct point inner = point_plus(point_plus(centre, v, NETWORK_STUB_FROM), left, STUB_OFFSET);
    struct point outer = point_plus(point_plus(centre, v, NETWORK_STUB_TO), left, STUB_OFFSET);
    struct point from = away ? inner : outer, tip = away ? outer : inner;

    put_line(out, from, behind_head(tip, ahead, a->width), a->width);
    put_head(out, tip, ahead, a->width);
    if (away)
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

static void put_link(FILE *out, const struct curve *line)
{
    (void)fputs("<path class=\"link\" fill=\"none\" d=\"", out);
    put_curve(out, line);
    (void)fputs("\"/>", out);
}

static void put_network_links(FILE *out, const struct svg_layout *l, uint32_t node)
{
    const struct torus *t = l->torus;
    struct point centre = svg_layout_node(l, node);
    char number[16];

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
        struct point v = stub_direction(l, port),
                     label = point_plus(centre, v, NETWORK_STUB_TO + 7);
        put_link(out,
                 &(struct curve){.from = centre, .to = point_plus(centre, v, NETWORK_STUB_TO)});
        (void)snprintf(number, sizeof number, "%" PRIu32, other);
        put_text(out, label, "middle", number);
        (void)fputc('\n', out);
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

static void draw_in_network(FILE *out, const struct svg_layout *l, const struct svg_arrow *a,
                            unsigned port)
{
    if (!is_within(l, &a->leg, a->start, port))
        stub_arrows(out, l, a, port);
    else if (a->leg.hops > 1)
        passing_arrow(out, l, a, port);
    else
        hop_arrow(out, l, a, port);
}

static void mark_in_network(FILE *out, const struct svg_layout *l, uint32_t node, unsigned port)
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
        struct curve line = {.from = centre, .to = point_plus(centre, v, NETWORK_STUB_TO)};
        band = moved(&line, STUB_OFFSET, SVG_RADIUS, 0);
    }
    (void)fputs("<path class=\"crowd\" d=\"", out);
    put_curve(out, &band);
    (void)fputs("\"/>\n", out);
}

/* ---- All networks ---------------------------------------------------------------------------- */

void svg_arrow_draw(FILE *out, const struct svg_layout *l, const struct svg_arrow *a)
{
    unsigned port = torus_port(l->torus, a->leg.dim, a->leg.direction);

    (void)fprintf(out, "<g class=\"p%u\">", port);
    if (l->places.used)
        draw_in_network(out, l, a, port);
    else if (svg_layout_leaves_plane(l, port))
        draw_between(out, l, a);
    else
        draw_within(out, l, a);
    (void)fputs("</g>", out);
}

double svg_arrow_widest(const struct svg_layout *l, uint32_t lanes)
{
    double widest = l->axes > 2 ? STUB_WIDEST : l->places.used ? NETWORK_WIDEST : WIDEST;
    double apart = lanes < 2 ? widest : 0.7 * (MOST_RISE - RISE) / (lanes - 1);
    return apart < widest ? apart : widest;
}

void svg_arrow_mark(FILE *out, const struct svg_layout *l, uint32_t node, unsigned port)
{
    (l->places.used ? mark_in_network : mark_plain)(out, l, node, port);
}

void svg_arrow_links(FILE *out, const struct svg_layout *l, uint32_t node)
{
    (l->places.used ? put_network_links : put_plain_links)(out, l, node);
}

void svg_arrow_sample(FILE *out, const struct svg_layout *l, unsigned port, struct point centre,
                      double length, double width)
{
    struct view v = {centre, svg_layout_port(l, port)};

    (void)fprintf(out, "<g class=\"p%u\">", port);
    put_arrow(out, &v, -length / 2, length / 2, 0, width);
    (void)fputs("</g>\n", out);
}
