#include "client/cli/drawing/svg.h"

#include <inttypes.h>
#include <string.h>

#include "client/cli/drawing/svg_arrow.h"
#include "client/cli/drawing/svg_layout.h"
#include "proto/text.h"

enum {
    BORDER = 24,        /* around the page */
    BETWEEN = 26,       /* steps */
    LEAST_WIDTH = 660,  /* of the page: for the heading */
    LEAST_STEP = 228,   /* of a step: for its caption */
    LINE = 17,          /* of text */
    CAPTION = 22,       /* a step's number */
    MOST_NUMBERS = 600, /* arrows of a step that are numbered */
    MOST_NOTES = 8,
    PORT_ROOM = 52, /* of a port in the legend */
};
static const double thinnest = 1;

/* The page: its layout and what the heading has to say. */
struct page {
    FILE *out;
    struct drawing *drawing;
    struct svg_layout layout;
    const struct schedule_report *report;
    char name[96], torus[TORUS_TEXT_SIZE]; /* fit for XML */
    char note[MOST_NOTES][160];
    unsigned notes;
    bool shaded;   /* nodes by their group */
    bool crowded;  /* some shown step is contended */
    double widest; /* arrow */
    int step_width, step_height, step_caption;
    uint32_t columns;
    int heading, width, height;
};

/* Colours in pairs of a dimension's ports, for a light and a dark background alike. */
static const char *const port_colour[TORUS_MAX_PORTS] = {
    "#1a7fc1", "#62b8ea", "#d55e00", "#e69f00", "#0a8f72", "#55b95f", "#b0488c", "#d58bbd",
    "#94683f", "#b98a5e", "#6d6de0", "#9a9af0", "#868600", "#b5b53c", "#6b7d8b", "#93a4b1",
};

/* ---- Texts ----------------------------------------------------------------------------------- */

/* Copies a text, cut to what fits, as XML. */
static void escape(char *out, size_t size, const char *text)
{
    static const struct {
        char character;
        const char *entity;
    } entities[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}};
    char printable[64];
    size_t used = 0;

    (void)text_printable(printable, sizeof printable, text);
    for (const char *c = printable; *c != '\0'; c++) {
        char one[2] = {*c, '\0'};
        const char *put = one;
        for (size_t i = 0; i < sizeof entities / sizeof entities[0]; i++)
            if (entities[i].character == *c)
                put = entities[i].entity;
        if (used + strlen(put) >= size)
            break;
        memcpy(out + used, put, strlen(put));
        used += strlen(put);
    }
    out[used] = '\0';
}

static double blocks(const struct page *p, uint64_t segments)
{
    return (double)segments / p->drawing->algorithm->segments;
}

/* "4 blocks", "1 block". */
static char *blocks_text(const struct page *p, uint64_t segments, char *text, size_t size)
{
    double count = blocks(p, segments);
    (void)snprintf(text, size, "%.10g %s", count, count > 0 && count <= 1 ? "block" : "blocks");
    return text;
}

static void put_text(const struct page *p, const char *class, int x, int y, const char *text)
{
    (void)fprintf(p->out, "<text class=\"%s\" x=\"%d\" y=\"%d\">%s</text>\n", class, x, y, text);
}

static void add_note(struct page *p, const char *text)
{
    if (p->notes < MOST_NOTES)
        (void)snprintf(p->note[p->notes++], sizeof p->note[0], "%s", text);
}

static void note_choice(struct page *p)
{
    const struct drawing_choice *c = &p->drawing->choice;
    char text[160];

    if (c->steps != NULL) {
        (void)snprintf(text, sizeof text, "Only step%s %.32s of 0 to %" PRIu32 ".",
                       strchr(c->steps, '-') != NULL ? "s" : "", c->steps, p->drawing->last_step);
        add_note(p, text);
    }
    if (c->load)
        add_note(p, "An arrow is a channel, with all blocks that cross it.");
    if (c->source != TORUS_NO_NODE) {
        (void)snprintf(text, sizeof text, "Only blocks whose source is node %" PRIu32 ".",
                       c->source);
        add_note(p, text);
    }
    if (c->node != TORUS_NO_NODE) {
        (void)snprintf(text, sizeof text,
                       "Only messages that node %" PRIu32 " sends, relays or receives.", c->node);
        add_note(p, text);
    }
}

/* Explains what the picture has of the things that need it. */
static void note_signs(struct page *p)
{
    const struct drawing *d = p->drawing;
    const struct torus *t = p->layout.torus;
    bool wraps = false, far = false;

    for (unsigned i = 0; i < t->dims; i++)
        wraps |= t->size[i] > 1 && t->wrap[i] && p->layout.axis[i] < 2;
    for (const struct drawn_message *m = d->message; m < d->message + d->messages; m++)
        far |= m->segments > 0 && m->leg.hops > 1 && p->layout.axis[m->leg.dim] > 1;
    if (wraps)
        add_note(p,
                 "A line cut off at the frame continues at the opposite side: a link that wraps.");
    if (p->layout.axes > 2) {
        add_note(p, "Each frame is a plane of the last two dimensions, named by the coordinates "
                    "in the others.");
        add_note(p,
                 far ? "A slanted arrow leads to another plane, and is drawn at both ends; +2: two "
                       "planes further."
                     : "A slanted arrow leads to another plane, and is drawn at both ends.");
    }
    if (p->shaded)
        add_note(p, "Nodes of one shade send the same messages, each from where it is.");
    if (p->crowded)
        add_note(p,
                 "Contention: a red band marks a channel that several messages of a step share.");
}

/* ---- The page's measures --------------------------------------------------------------------- */

static void measure_heading(struct page *p)
{
    p->shaded = p->drawing->groups > 1 && p->drawing->groups < p->layout.torus->nodes;
    p->widest = svg_arrow_widest(&p->layout, 1);
    for (uint32_t i = 0; i < p->drawing->steps; i++) {
        double widest = svg_arrow_widest(&p->layout, p->drawing->step[i].lanes);
        p->crowded |= p->drawing->step[i].crowd > 1;
        p->widest = widest < p->widest ? widest : p->widest;
    }
    note_choice(p);
    note_signs(p);
    p->heading = 30 + LINE * (int)(1 + p->notes) + 2 * 24 + 16;
}

/* As many columns as make a page that is a little wider than high. */
static void measure_steps(struct page *p)
{
    uint32_t count = p->drawing->steps > 0 ? p->drawing->steps : 1;
    double best = 0;

    p->step_caption = CAPTION + LINE + (p->crowded ? LINE : 0);
    p->step_width = p->layout.width > LEAST_STEP ? p->layout.width : LEAST_STEP;
    p->step_height = p->layout.height + p->step_caption;
    for (uint32_t columns = 1; columns <= count; columns++) {
        uint32_t rows = (count + columns - 1) / columns;
        double ratio =
            (double)columns * (p->step_width + BETWEEN) / (1.4 * rows * (p->step_height + BETWEEN));
        double fit = (ratio < 1 ? ratio : 1 / ratio) * count / (rows * columns);
        if (fit > best) {
            best = fit;
            p->columns = columns;
        }
    }
    uint32_t rows = (count + p->columns - 1) / p->columns;
    int ports = 120 + PORT_ROOM * (int)(2 * p->layout.axes);
    p->width = (int)p->columns * (p->step_width + BETWEEN) - BETWEEN;
    if (p->width < LEAST_WIDTH)
        p->width = LEAST_WIDTH;
    if (p->width < ports)
        p->width = ports;
    p->width += 2 * BORDER;
    p->height = 2 * BORDER + p->heading + (int)rows * (p->step_height + BETWEEN) - BETWEEN;
}

/* ---- What all steps have in common ----------------------------------------------------------- */

static void put_style(const struct page *p)
{
    (void)fputs(
        "<style>\n"
        "text{font-family:sans-serif;fill:#222}\n"
        ".page{fill:#fff}.frame{fill:#f7f8f9;stroke:#d5d9dd}.link{stroke:#c2c7cc}\n"
        ".node{stroke:#59626b}.s0{fill:#fff}.s1{fill:#d6dbe1}.s2{fill:#f7e4b0}.s3{fill:#c9e8cf}\n"
        ".s4{fill:#cfe3fa}.s5{fill:#f8d3d3}.s6{fill:#e4d4f4}.s7{fill:#e2dccb}\n"
        ".chosen{fill:none;stroke:#222;stroke-width:2}\n"
        ".t{font-size:17px;font-weight:bold}.b{font-size:12px}.c{font-size:14px;font-weight:bold}\n"
        ".g{font-size:11px}.w{font-size:11px;fill:#c4161c}.r{text-anchor:middle}\n"
        ".n{font-size:7px;stroke:none}.l{fill:none}.h{stroke:none}\n"
        ".crowd{fill:none;stroke:#e5262c;stroke-opacity:.3;stroke-width:13}\n",
        p->out);
    for (unsigned port = 0; port < torus_ports(p->layout.torus); port++)
        if (p->layout.torus->size[torus_port_dim(port)] > 1)
            (void)fprintf(p->out, ".p%u .l{stroke:%s}.p%u .h{fill:%s}\n", port, port_colour[port],
                          port, port_colour[port]);
    (void)fputs("@media (prefers-color-scheme:dark){text{fill:#e4e6e8}.page{fill:#15181b}"
                ".frame{fill:#1d2125;stroke:#3b4249}.link{stroke:#4d565e}.node{stroke:#98a2ac}"
                ".s0{fill:#15181b}.s1{fill:#404953}.s2{fill:#5a4a1c}.s3{fill:#1f5131}"
                ".s4{fill:#1e3f66}.s5{fill:#5d2a2c}.s6{fill:#45305f}.s7{fill:#4b4534}"
                ".chosen{stroke:#fff}.w{fill:#ff7b7b}.crowd{stroke-opacity:.5}}\n"
                "</style>\n",
                p->out);
}

/* "(2, *, *)": the coordinates of a plane. */
static void put_plane_name(const struct page *p, uint32_t node, struct point frame)
{
    uint32_t at[TORUS_MAX_DIMS];
    const struct torus *t = p->layout.torus;

    torus_coordinates(t, node, at);
    (void)fprintf(p->out, "<text class=\"g\" x=\"%.0f\" y=\"%.0f\">(", frame.x, frame.y - 5);
    for (unsigned i = 0; i < t->dims; i++) {
        (void)fputs(i > 0 ? ", " : "", p->out);
        if (t->size[i] > 1 && p->layout.axis[i] < 2)
            (void)fputs("*", p->out);
        else
            (void)fprintf(p->out, "%" PRIu32, at[i]);
    }
    (void)fputs(")</text>\n", p->out);
}

static void put_frames(const struct page *p)
{
    for (uint32_t node = 0; node < p->layout.torus->nodes; node++) {
        struct point frame = svg_layout_frame(&p->layout, node);
        if (!svg_layout_begins_plane(&p->layout, node))
            continue;
        (void)fprintf(p->out,
                      "<rect class=\"frame\" x=\"%.0f\" y=\"%.0f\" width=\"%d\" height=\"%d\"/>\n",
                      frame.x, frame.y, p->layout.frame_width, p->layout.frame_height);
        if (p->layout.axes > 2)
            put_plane_name(p, node, frame);
    }
}

/* The links of a node within its plane: whole ones to the next node, and halves of those that wrap
 * at both sides. */
static void put_links(const struct page *p, uint32_t node)
{
    const struct torus *t = p->layout.torus;
    struct point c = svg_layout_node(&p->layout, node);
    uint32_t at[TORUS_MAX_DIMS];

    torus_coordinates(t, node, at);
    for (unsigned port = 0; port < torus_ports(t); port++) {
        unsigned dim = torus_port_dim(port);
        bool plus = torus_port_direction(port) > 0;
        if (torus_neighbour(t, node, port) == TORUS_NO_NODE ||
            svg_layout_leaves_plane(&p->layout, port))
            continue;
        struct point v = svg_layout_port(&p->layout, port);
        bool outermost = at[dim] == (plus ? t->size[dim] - 1 : 0);
        int length = outermost ? SVG_MARGIN : p->layout.pitch;
        if (outermost || plus)
            (void)fprintf(p->out, "<path class=\"link\" d=\"M%.0f %.0fL%.0f %.0f\"/>\n", c.x, c.y,
                          c.x + length * v.x, c.y + length * v.y);
    }
}

static void put_nodes(const struct page *p)
{
    const struct drawing_choice *c = &p->drawing->choice;

    for (uint32_t node = 0; node < p->layout.torus->nodes; node++) {
        struct point at = svg_layout_node(&p->layout, node);
        (void)fprintf(p->out,
                      "<circle class=\"node s%" PRIu32 "\" cx=\"%.0f\" cy=\"%.0f\" r=\"%d\"/>",
                      p->shaded ? p->drawing->group[node] : 0, at.x, at.y, SVG_RADIUS);
        if (node == c->node || node == c->source)
            (void)fprintf(p->out, "<circle class=\"chosen\" cx=\"%.0f\" cy=\"%.0f\" r=\"%d\"/>",
                          at.x, at.y, SVG_RADIUS);
        (void)fprintf(
            p->out, "<text class=\"r\" font-size=\"%d\" x=\"%.0f\" y=\"%.0f\">%" PRIu32 "</text>\n",
            node < 100 ? 9 : 8 - (node > 999), at.x, at.y + 3, node);
    }
}

static void put_torus(const struct page *p)
{
    (void)fputs("<defs><g id=\"torus\">\n", p->out);
    put_frames(p);
    for (uint32_t node = 0; node < p->layout.torus->nodes; node++)
        put_links(p, node);
    put_nodes(p);
    (void)fputs("</g></defs>\n", p->out);
}

/* ---- Heading --------------------------------------------------------------------------------- */

static double arrow_width(const struct page *p, uint64_t segments)
{
    double width = p->widest * (double)segments / (double)p->drawing->most;
    return width > thinnest ? width : thinnest;
}

static void put_ports(const struct page *p, int y)
{
    const struct torus *t = p->layout.torus;
    char name[TORUS_PORT_NAME_SIZE];
    int x = BORDER + 44;

    put_text(p, "b", BORDER, y + 4, "Ports");
    for (unsigned port = 0; port < torus_ports(t); port++) {
        if (t->size[torus_port_dim(port)] == 1)
            continue;
        svg_arrow_sample(p->out, &p->layout, port, (struct point){x + 12, y}, 20, 2.5);
        put_text(p, "b", x + 27, y + 4, torus_port_name(port, name));
        x += PORT_ROOM;
    }
    if (x == BORDER + 44)
        put_text(p, "b", x, y + 4, "none");
}

/* Up to three thicknesses. */
static void put_thickness(const struct page *p, int y)
{
    uint64_t least = p->drawing->most, sample[3];
    int x = BORDER + 70;
    unsigned count = 0;

    for (uint32_t i = 0; i < p->drawing->steps; i++)
        if (p->drawing->step[i].least < least)
            least = p->drawing->step[i].least;
    if (least == 0)
        return;
    sample[count++] = least;
    if (p->drawing->most > least + 1)
        sample[count++] = (least + p->drawing->most) / 2;
    if (p->drawing->most > least)
        sample[count++] = p->drawing->most;
    put_text(p, "b", BORDER, y + 4, "Thickness");
    for (unsigned i = 0; i < count; i++) {
        char text[48];
        (void)fprintf(p->out, "<path class=\"node\" d=\"M%d %dh26\" stroke-width=\"%.1f\"/>\n", x,
                      y, arrow_width(p, sample[i]));
        put_text(p, "b", x + 32, y + 4, blocks_text(p, sample[i], text, sizeof text));
        x += 112;
    }
}

static void put_heading(const struct page *p)
{
    const struct algorithm *a = p->drawing->algorithm;
    const struct schedule_report *r = p->report;
    char text[256], contended[64] = "no contention";
    int y = BORDER + 14;

    (void)snprintf(text, sizeof text, "%s on %s", p->name, p->torus);
    put_text(p, "t", BORDER, y, text);
    if (r->contended_steps > 0)
        (void)snprintf(contended, sizeof contended, "contention in %" PRIu32 " of them",
                       r->contended_steps);
    (void)snprintf(text, sizeof text,
                   "%s, %s: %" PRIu32 " startup%s, %s, transmission %.10g, lower bound %.10g",
                   operation_name(a->operation), port_model_name(a->port_model), r->startups,
                   r->startups == 1 ? "" : "s", contended, blocks(p, r->transmission), r->bound);
    put_text(p, "b", BORDER, y += 22, text);
    for (unsigned i = 0; i < p->notes; i++)
        put_text(p, "b", BORDER, y += LINE, p->note[i]);
    put_ports(p, y += 24);
    put_thickness(p, y + 24);
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static void put_caption(const struct page *p, const struct drawn_step *s)
{
    char text[160], least[48], most[48];
    const char *what = p->drawing->choice.load ? "channel" : "message";
    const char *plural = s->shown == 1 ? "" : "s";

    (void)blocks_text(p, s->most, most, sizeof most);
    (void)snprintf(text, sizeof text, "Step %" PRIu32, s->step);
    put_text(p, "c", 0, 12, p->drawing->choice.load ? "Load of the channels" : text);
    (void)snprintf(least, sizeof least, "%.10g", blocks(p, s->least));
    if (s->least == s->most)
        (void)snprintf(text, sizeof text, "%zu %s%s of %s", s->shown, what, plural, most);
    else
        (void)snprintf(text, sizeof text, "%zu %s%s of %s to %s", s->shown, what, plural, least,
                       most);
    put_text(p, "g", 0, 12 + LINE, text);
    if (s->crowd > 1) {
        (void)snprintf(text, sizeof text, "contention: up to %" PRIu32 " messages on a channel",
                       s->crowd);
        put_text(p, "w", 0, 12 + 2 * LINE, text);
    }
}

/* Marks the channels of a message that others cross too, unless they are marked. */
static void mark_crowd(const struct page *p, const struct drawn_message *m)
{
    enum { MARKED = 1 << 30 };
    const struct torus *t = p->layout.torus;
    unsigned port = torus_port(m->leg.dim, m->leg.direction);
    uint32_t node = m->start;

    for (uint16_t hop = 0; hop < m->leg.hops; hop++) {
        uint32_t *crossing = &p->drawing->crossing[(size_t)node * torus_ports(t) + port];
        if (*crossing > 1 && (*crossing & MARKED) == 0) {
            svg_arrow_mark(p->out, &p->layout, node, port);
            *crossing |= MARKED;
        }
        node = torus_neighbour(t, node, port);
    }
}

/* What a viewer shows under the pointer. */
static void put_tip(const struct page *p, const struct drawn_message *m)
{
    unsigned port = torus_port(m->leg.dim, m->leg.direction);
    char name[TORUS_PORT_NAME_SIZE], text[48];

    (void)fprintf(p->out, "<title>%" PRIu32 " to %" PRIu32 ", port %s", m->start,
                  torus_walk(p->layout.torus, m->start, m->leg.dim, m->leg.direction, m->leg.hops),
                  torus_port_name(port, name));
    if (m->leg.hops > 1)
        (void)fprintf(p->out, ", %u hops", (unsigned)m->leg.hops);
    (void)fprintf(p->out, ": %s</title>", blocks_text(p, m->segments, text, sizeof text));
}

static void put_messages(const struct page *p, const struct drawn_step *s)
{
    const struct drawn_message *first = p->drawing->message + s->first;
    bool numbered = s->least < s->most && s->shown <= MOST_NUMBERS;
    char number[32];

    for (const struct drawn_message *m = first; m < first + s->count; m++)
        if (s->crowd > 1 && m->segments > 0)
            mark_crowd(p, m);
    for (const struct drawn_message *m = first; m < first + s->count; m++) {
        if (m->segments == 0)
            continue;
        (void)fputs("<g>", p->out);
        put_tip(p, m);
        (void)snprintf(number, sizeof number, "%.4g", blocks(p, m->segments));
        svg_arrow_draw(p->out, &p->layout,
                       &(struct svg_arrow){.leg = m->leg,
                                           .start = m->start,
                                           .width = arrow_width(p, m->segments),
                                           .lane = m->lane,
                                           .lanes = s->lanes,
                                           .text = numbered ? number : NULL});
        (void)fputs("</g>\n", p->out);
    }
}

static void put_step(const struct page *p, uint32_t index)
{
    int x = BORDER + (int)(index % p->columns) * (p->step_width + BETWEEN);
    int y = BORDER + p->heading + (int)(index / p->columns) * (p->step_height + BETWEEN);
    const struct drawn_step *s = &p->drawing->step[index];

    (void)fprintf(p->out, "<g transform=\"translate(%d %d)\">\n", x, y);
    if (index < p->drawing->steps)
        put_caption(p, s);
    else
        put_text(p, "c", 0, 12, "No messages");
    (void)fprintf(p->out, "<g transform=\"translate(0 %d)\">\n<use xlink:href=\"#torus\"/>\n",
                  p->step_caption);
    if (index < p->drawing->steps) {
        if (s->crowd > 1)
            (void)drawing_count_crossing(p->drawing, s);
        put_messages(p, s);
    }
    (void)fputs("</g>\n</g>\n", p->out);
}

void svg_draw(FILE *out, struct drawing *d, const struct schedule_report *report)
{
    struct page p = {
        .out = out, .drawing = d, .layout = svg_layout_make(d->torus), .report = report};

    escape(p.name, sizeof p.name, d->algorithm->name);
    (void)torus_format(d->torus, p.torus);
    measure_heading(&p);
    measure_steps(&p);
    (void)fprintf(out,
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" "
                  "xmlns:xlink=\"http://www.w3.org/1999/xlink\" version=\"1.1\" "
                  "width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n"
                  "<title>%s on %s</title>\n",
                  p.width, p.height, p.width, p.height, p.name, p.torus);
    put_style(&p);
    put_torus(&p);
    (void)fputs("<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n", out);
    put_heading(&p);
    for (uint32_t i = 0; i < d->steps || i == 0; i++)
        put_step(&p, i);
    (void)fputs("</svg>\n", out);
}
