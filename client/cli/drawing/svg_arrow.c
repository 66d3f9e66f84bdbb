#include "client/cli/drawing/svg_arrow.h"

#include "client/cli/drawing/svg_stroke.h"

/* Lengths are in the units of svg_layout.h. An arrow is to the left of the line between two nodes, as seen in its
 * direction, so that the arrows of the two channels of a link do not overlap. */
enum {
    OFFSET = 5,      /* distance of a straight arrow from the line */
    RISE = 17,       /* distance of an arc, which passes nodes and straight arrows */
    MOST_RISE = 30,  /* largest distance of arcs that share channels and lie side by side */
    ROUNDING = 9,    /* at the shoulders of an arc */
    BAND_OFFSET = 7, /* distance of the middle of a band */
    WIDEST = 5,      /* width of the widest line */
    STUB_FROM = 14,  /* an arrow to another plane, clear of the arrows within the plane */
    STUB_TO = 31,
    STUB_OFFSET = 3,
    STUB_WIDEST = 3,
    NETWORK_WIDEST = 4, /* where links cross each other */
};
static const double contact = 8.7; /* sqrt(SVG_RADIUS^2 - OFFSET^2) */
static const double slope = 0.707; /* an arc leaves its node at 45 degrees */
static const double gap = 1;       /* between an arrow's tip and the node */

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

/* Draws a head with its tip at (s, h) and in the direction (x, y), in coordinates of the view. */
static void put_head(FILE *out, const struct view *v, double s, double h, double x, double y,
                     double width)
{
    struct point left = point_left(v->ahead);
    struct point ahead = {x * v->ahead.x + y * left.x, x * v->ahead.y + y * left.y};

    svg_stroke_head(out, at(v, s, h), ahead, width);
}

/* ---- Within a plane -------------------------------------------------------------------------- */

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
    double tip = p->ends ? p->to - contact - gap : p->to;
    double to = p->ends ? tip - svg_stroke_head_length(width) + 1 : p->to;

    svg_stroke_begin(out, width);
    put_point(out, 'M', &p->view, from, OFFSET);
    put_point(out, 'L', &p->view, to, OFFSET);
    (void)fputs("\"/>", out);
    if (p->ends)
        put_head(out, &p->view, tip, OFFSET, 1, 0, width);
}

static void arc_part(FILE *out, const struct part *p, double rise, double width)
{
    double touch = SVG_RADIUS + gap, end = touch + svg_stroke_head_length(width) - 1;

    svg_stroke_begin(out, width);
    if (p->starts) {
        put_point(out, 'M', &p->view, p->from + SVG_RADIUS * slope, SVG_RADIUS * slope);
        put_point(out, 'Q', &p->view, p->from + rise, rise);
        put_point(out, ' ', &p->view, p->from + rise + ROUNDING, rise);
    } else {
        put_point(out, 'M', &p->view, p->from, rise);
    }
    if (p->ends) {
        put_point(out, 'L', &p->view, p->to - rise - ROUNDING, rise);
        put_point(out, 'Q', &p->view, p->to - rise, rise);
        put_point(out, ' ', &p->view, p->to - end * slope, end * slope);
        (void)fputs("\"/>", out);
        put_head(out, &p->view, p->to - touch * slope, touch * slope, slope, -slope, width);
    } else {
        put_point(out, 'L', &p->view, p->to, rise);
        (void)fputs("\"/>", out);
    }
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

static double rise_of(const struct svg_arrow *a)
{
    if (a->leg.hops == 1)
        return OFFSET;
    return a->lanes < 2 ? RISE : RISE + (double)(MOST_RISE - RISE) * a->lane / (a->lanes - 1);
}

double svg_arrow_widest(const struct svg_layout *l, uint32_t lanes)
{
    double widest = l->axes > 2 ? STUB_WIDEST : l->places != NULL ? NETWORK_WIDEST : WIDEST;
    double apart = lanes < 2 ? widest : 0.7 * (MOST_RISE - RISE) / (lanes - 1);
    return apart < widest ? apart : widest;
}

/* Writes a number beside the middle of the arrow, on its outer side. */
static void put_number(FILE *out, const struct part *p, double rise, const struct svg_arrow *a)
{
    struct point middle = at(&p->view, (p->from + p->to) / 2, rise + a->width / 2 + 5.5);
    const char *anchor = "middle";

    if (p->view.ahead.y > 0.5)
        anchor = "start";
    if (p->view.ahead.y < -0.5)
        anchor = "end";
    if (anchor[0] != 'm')
        middle = at(&p->view, (p->from + p->to) / 2, rise + a->width / 2 + 1.5);
    (void)fprintf(out, "<text class=\"n\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>",
                  middle.x, middle.y + 2.5, anchor, a->text);
}

static void draw_within(FILE *out, const struct svg_layout *l, const struct svg_arrow *a)
{
    struct part parts[3];
    unsigned count = split(l, &a->leg, a->start, parts);
    double rise = rise_of(a);

    for (unsigned i = 0; i < count; i++) {
        if (a->leg.hops == 1)
            straight_part(out, &parts[i], a->width);
        else
            arc_part(out, &parts[i], rise, a->width);
    }
    if (a->text != NULL && count > 0)
        put_number(out, &parts[0], rise, a);
}

/* ---- To another plane ------------------------------------------------------------------------ */

static void draw_stub(FILE *out, const struct view *v, double from, double to, double width)
{
    double tip = to, end = tip - svg_stroke_head_length(width) + 1;

    svg_stroke_begin(out, width);
    put_point(out, 'M', v, from, STUB_OFFSET);
    put_point(out, 'L', v, end, STUB_OFFSET);
    (void)fputs("\"/>", out);
    put_head(out, v, tip, STUB_OFFSET, 1, 0, width);
}

static void draw_between(FILE *out, const struct svg_layout *l, const struct svg_arrow *a)
{
    uint32_t end = torus_walk(l->torus, a->start, a->leg.dim, a->leg.direction, a->leg.hops);
    struct point ahead = svg_layout_port(l, torus_port(l->torus, a->leg.dim, a->leg.direction));
    bool starts = svg_layout_has(l, a->start), ends = svg_layout_has(l, end);
    struct view from = {.ahead = ahead}, to = {.ahead = ahead};

    if (starts) {
        from.centre = svg_layout_node(l, a->start);
        draw_stub(out, &from, STUB_FROM, STUB_TO, a->width);
    }
    if (starts && a->text != NULL) {
        struct point p = at(&from, (STUB_FROM + STUB_TO) / 2.0, STUB_OFFSET + a->width / 2 + 6);
        (void)fprintf(out,
                      "<text class=\"n\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">"
                      "%s</text>",
                      p.x, p.y + 2.5, a->text);
    }
    if (ends) {
        to.centre = svg_layout_node(l, end);
        draw_stub(out, &to, -STUB_TO, -STUB_FROM, a->width);
    }
    if (starts && a->leg.hops > 1) {
        struct point p = at(&from, STUB_TO + 5, STUB_OFFSET);
        (void)fprintf(out,
                      "<text class=\"n\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">"
                      "%+d</text>",
                      p.x, p.y + 2.5, a->leg.direction * a->leg.hops);
    }
}

void svg_arrow_draw(FILE *out, const struct svg_layout *l, const struct svg_arrow *a)
{
    unsigned port = torus_port(l->torus, a->leg.dim, a->leg.direction);

    (void)fprintf(out, "<g class=\"p%u\">", port);
    if (svg_layout_leaves_plane(l, port))
        draw_between(out, l, a);
    else
        draw_within(out, l, a);
    (void)fputs("</g>", out);
}

void svg_arrow_mark(FILE *out, const struct svg_layout *l, uint32_t node, unsigned port)
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

void svg_arrow_sample(FILE *out, const struct svg_layout *l, unsigned port, struct point centre,
                      double length, double width)
{
    struct view v = {centre, svg_layout_port(l, port)};

    (void)fprintf(out, "<g class=\"p%u\">", port);
    svg_stroke_begin(out, width);
    put_point(out, 'M', &v, -length / 2, 0);
    put_point(out, 'L', &v, length / 2 - svg_stroke_head_length(width) + 1, 0);
    (void)fputs("\"/>", out);
    put_head(out, &v, length / 2, 0, 1, 0, width);
    (void)fputs("</g>\n", out);
}
