#include "client/cli/drawing/svg.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/drawing/drawing.h"
#include "client/cli/drawing/drawing_texts.h"
#include "client/cli/drawing/node_positions.h"
#include "client/cli/drawing/svg_arrow.h"
#include "client/cli/terminal/arguments.h"
#include "client/cli/terminal/output_file.h"
#include "daemon/lib/schedule/verify.h"
#include "proto/text.h"

/* ---- The page -------------------------------------------------------------------------------- */

enum {
    SVG_BORDER = 24,  /* around the page */
    SVG_BETWEEN = 26, /* between steps */
    SVG_LINE = 17,    /* height of a line of text */
    SVG_MOST_NOTES = 8,
    SVG_PORT_ROOM = 52, /* width of a port in the legend */
};

/* The page: its layout, and the contents of the heading. */
struct svg_page {
    FILE *out;
    struct drawing *drawing;
    const struct svg_layout *layout; /* of the drawing */
    const struct schedule_report *report;
    char name[96], torus[TORUS_TEXT_SIZE]; /* as XML */
    char note[SVG_MOST_NOTES][160];
    unsigned notes;
    bool shaded;   /* nodes are shaded by group */
    bool crowded;  /* a shown step is contended */
    double widest; /* width of the widest arrow */
    int step_width, step_height, step_caption;
    uint32_t columns;
    int heading, width, height;
};

enum {
    LEAST_WIDTH = 660, /* of the page, for the heading */
    LEAST_STEP = 228,  /* width of a step, for its caption */
    CAPTION = 22,      /* height of the number of a step */
};
static const double thinnest = 1;

/* ---- Texts ----------------------------------------------------------------------------------- */

void svg_escape(char *out, size_t size, const char *text)
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

/* Converts a number of segments to blocks. */
static double blocks_of(const struct svg_page *p, uint64_t segments)
{
    return (double)segments / p->drawing->algorithm->segments;
}

/* Writes "4 blocks" or "1 block" to `text`. Returns `text`. */
static char *blocks_text(const struct svg_page *p, uint64_t segments, char *text, size_t size)
{
    double count = blocks_of(p, segments);
    (void)snprintf(text, size, "%.10g %s", count, count > 0 && count <= 1 ? "block" : "blocks");
    return text;
}

/* Draws a text, which must be XML, in a class of the style sheet. */
static void __attribute__((format(printf, 5, 6)))
put_text(const struct svg_page *p, const char *class, int x, int y, const char *format, ...)
{
    va_list ap;

    (void)fprintf(p->out, "<text class=\"%s\" x=\"%d\" y=\"%d\">", class, x, y);
    va_start(ap, format);
    (void)vfprintf(p->out, format, ap);
    va_end(ap);
    (void)fputs("</text>\n", p->out);
}

/* Returns the width in pixels of an arrow for that many segments. */
static double arrow_width(const struct svg_page *p, uint64_t segments)
{
    double width = p->widest * (double)segments / (double)p->drawing->most;
    return width > thinnest ? width : thinnest;
}

/* ---- Notes ----------------------------------------------------------------------------------- */

static void __attribute__((format(printf, 2, 3)))
add_note(struct svg_page *p, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    if (p->notes < SVG_MOST_NOTES)
        (void)vsnprintf(p->note[p->notes++], sizeof p->note[0], format, ap);
    va_end(ap);
}

/* Says what the picture leaves out because it would be too large. */
static void add_missing_notes(struct svg_page *p)
{
    const struct drawing *d = p->drawing;
    char part[DRAWING_PART_TEXT_SIZE];

    if (!drawing_part_is_whole(&d->layout.part, d->torus))
        add_note(p,
                 "Only nodes %s are drawn, %" PRIu32 " of %" PRIu32
                 ". Arrows from and to other nodes are cut off at the frame.",
                 drawing_part_format(&d->layout.part, d->torus, part, sizeof part),
                 drawing_part_nodes(&d->layout.part, d->torus), d->torus->nodes);
    if (d->left_out && d->choice.load)
        add_note(p, "Only the messages of the first steps are counted: all steps have too many.");
    else if (d->left_out && d->steps > 0)
        add_note(p,
                 "Only steps %" PRIu32 " to %" PRIu32 " of %" PRIu32 " to %" PRIu32
                 " are drawn: more arrows do not fit into a picture.",
                 d->step[0].step, d->step[d->steps - 1].step, d->first_chosen, d->last_chosen);
}

static void add_choice_notes(struct svg_page *p)
{
    const struct drawing_choice *c = &p->drawing->choice;

    if (c->steps != NULL)
        add_note(p, "Only step%s %.32s of 0 to %" PRIu32 ".",
                 strchr(c->steps, '-') != NULL ? "s" : "", c->steps, p->drawing->last_step);
    if (c->load)
        add_note(p, "An arrow is a channel, with all blocks that cross it.");
    if (c->source != TORUS_NO_NODE)
        add_note(p, "Only blocks whose source is node %" PRIu32 ".", c->source);
    if (c->node != TORUS_NO_NODE)
        add_note(p, "Only messages that node %" PRIu32 " sends, relays or receives.", c->node);
}

/* Explains the signs that the picture uses. */
static void add_sign_notes(struct svg_page *p)
{
    const struct drawing *d = p->drawing;
    const struct torus *t = p->layout->torus;
    bool wraps = false, far = false, graphs = p->layout->places.used;

    for (unsigned i = 0; i < t->dims; i++)
        wraps |= t->size[i] > 1 && t->wrap[i] && p->layout->axis[i] < 2 &&
                 d->layout.part.count[i] == t->size[i];
    for (const struct drawn_message *m = d->message; m < d->message + d->messages; m++)
        far |= m->segments > 0 && m->leg.hops > 1 && p->layout->axis[m->leg.dim] > 1;
    if (wraps && !graphs)
        add_note(p,
                 "A line cut off at the frame continues at the opposite side: a link that wraps.");
    if (p->layout->axes > 2) {
        add_note(p, "Each frame is a plane of the last two dimensions, named by the coordinates "
                    "in the others.");
        add_note(p, "%s",
                 graphs ? "A short line leads to the node of this number in another frame; its "
                          "arrows are drawn at both ends."
                 : far
                     ? "A slanted arrow leads to another plane, and is drawn at both ends; +2: two "
                       "planes further."
                     : "A slanted arrow leads to another plane, and is drawn at both ends.");
    }
    if (p->shaded)
        add_note(p, "Nodes of one shade send the same messages, relative to their places.");
    if (p->crowded)
        add_note(p,
                 "Contention: a red band marks a channel that several messages of a step share.");
}

/* ---- Measures -------------------------------------------------------------------------------- */

static void measure_heading(struct svg_page *p)
{
    p->shaded = p->drawing->groups > 1 && p->drawing->groups < p->layout->torus->nodes;
    p->widest = svg_arrow_widest(p->layout, 1);
    for (uint32_t i = 0; i < p->drawing->steps; i++) {
        double widest = svg_arrow_widest(p->layout, p->drawing->step[i].lanes);
        p->crowded |= p->drawing->step[i].crowd > 1;
        p->widest = widest < p->widest ? widest : p->widest;
    }
    add_missing_notes(p);
    add_choice_notes(p);
    add_sign_notes(p);
    p->heading = 30 + SVG_LINE * (int)(1 + p->notes) + 2 * 24 + 16;
}

/* Chooses the number of columns that makes the page a little wider than high. */
static void measure_steps(struct svg_page *p)
{
    uint32_t count = p->drawing->steps > 0 ? p->drawing->steps : 1;
    double best = 0;

    p->step_caption = CAPTION + SVG_LINE + (p->crowded ? SVG_LINE : 0);
    p->step_width = p->layout->width > LEAST_STEP ? p->layout->width : LEAST_STEP;
    p->step_height = p->layout->height + p->step_caption;
    for (uint32_t columns = 1; columns <= count; columns++) {
        uint32_t rows = (count + columns - 1) / columns;
        double ratio = (double)columns * (p->step_width + SVG_BETWEEN) /
                       (1.4 * rows * (p->step_height + SVG_BETWEEN));
        double fit = (ratio < 1 ? ratio : 1 / ratio) * count / (rows * columns);
        if (fit > best) {
            best = fit;
            p->columns = columns;
        }
    }
    uint32_t rows = (count + p->columns - 1) / p->columns;
    int ports = 120 + SVG_PORT_ROOM * (int)(2 * p->layout->axes);
    p->width = (int)p->columns * (p->step_width + SVG_BETWEEN) - SVG_BETWEEN;
    if (p->width < LEAST_WIDTH)
        p->width = LEAST_WIDTH;
    if (p->width < ports)
        p->width = ports;
    p->width += 2 * SVG_BORDER;
    p->height =
        2 * SVG_BORDER + p->heading + (int)rows * (p->step_height + SVG_BETWEEN) - SVG_BETWEEN;
}

/* Measures the page of a drawing, and collects the notes of the heading. The drawing and the report belong to the
 * caller. */
static struct svg_page make_page(FILE *out, struct drawing *d, const struct schedule_report *report)
{
    struct svg_page p = {.out = out, .drawing = d, .layout = &d->layout, .report = report};

    svg_escape(p.name, sizeof p.name, d->algorithm->name);
    (void)torus_format(d->torus, p.torus);
    measure_heading(&p);
    measure_steps(&p);
    return p;
}

/* ---- The heading ----------------------------------------------------------------------------- */

static void put_ports(const struct svg_page *p, int y)
{
    const struct torus *t = p->layout->torus;
    char name[TORUS_PORT_NAME_SIZE];
    int x = SVG_BORDER + 44;

    put_text(p, "b", SVG_BORDER, y + 4, "Ports");
    for (unsigned port = 0; port < torus_ports(t); port++) {
        if (t->size[torus_port_dim(t, port)] == 1)
            continue;
        unsigned dim = torus_port_dim(t, port);
        bool graph = t->graph[dim] != NULL;
        if (graph && torus_port_direction(t, port) > 1)
            continue;
        svg_arrow_sample(p->out, p->layout, port, (struct point){x + 12, y}, 20, 2.5);
        if (graph)
            put_text(p, "b", x + 27, y + 4, "%u:...", dim % 10);
        else
            put_text(p, "b", x + 27, y + 4, "%s", torus_port_name(t, 0, port, name));
        x += SVG_PORT_ROOM;
    }
    if (x == SVG_BORDER + 44)
        put_text(p, "b", x, y + 4, "none");
}

/* Draws up to three samples of thickness. */
static void put_thickness(const struct svg_page *p, int y)
{
    uint64_t least = p->drawing->most, sample[3];
    int x = SVG_BORDER + 70;
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
    put_text(p, "b", SVG_BORDER, y + 4, "Thickness");
    for (unsigned i = 0; i < count; i++) {
        char text[48];
        (void)fprintf(p->out, "<path class=\"node\" d=\"M%d %dh26\" stroke-width=\"%.1f\"/>\n", x,
                      y, arrow_width(p, sample[i]));
        put_text(p, "b", x + 32, y + 4, "%s", blocks_text(p, sample[i], text, sizeof text));
        x += strlen(text) < 12 ? 112 : 46 + 7 * (int)strlen(text);
    }
}

/* Draws the heading at the top of the page. */
static void put_heading(const struct svg_page *p)
{
    const struct algorithm *a = p->drawing->algorithm;
    const struct schedule_report *r = p->report;
    char contended[64] = "no contention";
    int y = SVG_BORDER + 14;

    put_text(p, "t", SVG_BORDER, y, "%s on %s", p->name, p->torus);
    if (r->contended_steps > 0)
        (void)snprintf(contended, sizeof contended, "contention in %" PRIu32 " of them",
                       r->contended_steps);
    put_text(p, "b", SVG_BORDER, y += 22,
             "%s, %s: %" PRIu32 " startup%s, %s, transmission %.10g, lower bound %.10g",
             schedule_operation_name(a->operation), algorithm_ports_name(a), r->startups,
             r->startups == 1 ? "" : "s", contended, r->transmission / a->segments, r->bound);
    for (unsigned i = 0; i < p->notes; i++)
        put_text(p, "b", SVG_BORDER, y += SVG_LINE, "%s", p->note[i]);
    put_ports(p, y += 24);
    put_thickness(p, y + 24);
}

/* ---- The torus, which all steps share -------------------------------------------------------- */

/* Colours of the ports, in pairs by dimension, for light and dark backgrounds. All ports of a factor that is neither a
 * ring nor a line have the first one. */
static const char *const port_colour[2 * TORUS_MAX_DIMS] = {
    "#1a7fc1", "#62b8ea", "#d55e00", "#e69f00", "#0a8f72", "#55b95f", "#b0488c", "#d58bbd",
    "#94683f", "#b98a5e", "#6d6de0", "#9a9af0", "#868600", "#b5b53c", "#6b7d8b", "#93a4b1",
};

/* Writes the style sheet of the page. */
static void put_style(const struct svg_page *p)
{
    (void)fprintf(p->out, "<style>\n%s", schedule_css);
    for (unsigned port = 0; port < torus_ports(p->layout->torus); port++) {
        unsigned dim = torus_port_dim(p->layout->torus, port);
        bool second = torus_port_direction(p->layout->torus, port) < 0;
        const char *colour = port_colour[2 * dim + second];
        if (p->layout->torus->size[dim] > 1)
            (void)fprintf(p->out, ".p%u .l{stroke:%s}.p%u .h{fill:%s}\n", port, colour, port,
                          colour);
    }
    (void)fprintf(p->out, "%s</style>\n", schedule_dark_css);
}

static void put_frames(const struct svg_page *p)
{
    char name[COORDINATES_SIZE];

    for (uint32_t node = 0; node < p->layout->torus->nodes; node++) {
        if (!svg_layout_has(p->layout, node) || !svg_layout_begins_plane(p->layout, node))
            continue;
        struct point frame = svg_layout_frame(p->layout, node);
        (void)fprintf(p->out,
                      "<rect class=\"frame\" x=\"%.0f\" y=\"%.0f\" width=\"%d\" height=\"%d\"/>\n",
                      frame.x, frame.y, p->layout->frame_width, p->layout->frame_height);
        if (p->layout->axes > 2)
            (void)fprintf(
                p->out, "<text class=\"g\" x=\"%.0f\" y=\"%.0f\">%s</text>\n", frame.x, frame.y - 5,
                coordinates_text(p->layout->torus, node, p->layout->dim, name, sizeof name));
    }
}

static void put_nodes(const struct svg_page *p)
{
    const struct drawing_choice *c = &p->drawing->choice;

    for (uint32_t node = 0; node < p->layout->torus->nodes; node++) {
        if (!svg_layout_has(p->layout, node))
            continue;
        struct point at = svg_layout_node(p->layout, node);
        (void)fprintf(p->out,
                      "<circle class=\"node s%" PRIu32 "\" cx=\"%.0f\" cy=\"%.0f\" r=\"%d\"/>",
                      p->shaded ? p->drawing->group[node] : 0, at.x, at.y, SVG_RADIUS);
        if (node == c->node || node == c->source)
            (void)fprintf(p->out, "<circle class=\"chosen\" cx=\"%.0f\" cy=\"%.0f\" r=\"%d\"/>",
                          at.x, at.y, SVG_RADIUS);
        (void)fprintf(
            p->out, "<text class=\"r\" font-size=\"%d\" x=\"%.0f\" y=\"%.0f\">%" PRIu32 "</text>\n",
            node < 100 ? 9 : 8 - (node > 999) - (node > 9999), at.x, at.y + 3, node);
    }
}

/* Defines the torus as "torus", with its planes, links and nodes. */
static void define_torus(const struct svg_page *p)
{
    (void)fputs("<defs><g id=\"torus\">\n", p->out);
    put_frames(p);
    for (uint32_t node = 0; node < p->layout->torus->nodes; node++) {
        if (svg_layout_has(p->layout, node))
            svg_arrow_links(p->out, p->layout, node);
    }
    put_nodes(p);
    (void)fputs("</g></defs>\n", p->out);
}

/* ---- Steps ----------------------------------------------------------------------------------- */

#define MOST_NUMBERS 600 /* arrows of a step that are numbered */

static void put_caption(const struct svg_page *p, const struct drawn_step *s)
{
    const bool load = p->drawing->choice.load, equal = s->least == s->most;
    char least[48], most[48];

    if (load)
        put_text(p, "c", 0, 12, "Load of the channels");
    else
        put_text(p, "c", 0, 12, "Step %" PRIu32, s->step);
    (void)snprintf(least, sizeof least, "%.10g to ", blocks_of(p, s->least));
    put_text(p, "g", 0, 12 + SVG_LINE, "%zu %s%s of %s%s", s->shown, load ? "channel" : "message",
             s->shown == 1 ? "" : "s", equal ? "" : least,
             blocks_text(p, s->most, most, sizeof most));
    if (s->crowd > 1)
        put_text(p, "w", 0, 12 + 2 * SVG_LINE,
                 "contention: up to %" PRIu32 " messages on a channel", s->crowd);
}

/* Marks the channels that the message shares with other messages, unless they are marked already. */
static void mark_crowd(const struct svg_page *p, const struct drawn_message *m)
{
    enum { MARKED = 1 << 30 };
    const struct torus *t = p->layout->torus;
    unsigned port = torus_port(t, m->leg.dim, m->leg.direction);
    uint32_t node = m->start;

    for (uint16_t hop = 0; hop < m->leg.hops; hop++) {
        uint32_t *crossing = &p->drawing->crossing[(size_t)node * torus_ports(t) + port];
        if (*crossing > 1 && (*crossing & MARKED) == 0) {
            svg_arrow_mark(p->out, p->layout, node, port);
            *crossing |= MARKED;
        }
        node = torus_neighbour(t, node, port);
    }
}

/* Writes the text that a viewer shows under the pointer. */
/* The rate of the channel by which a message leaves its first node. */
static double rate_of(const struct svg_page *p, const struct drawn_message *m)
{
    const struct damage *rates = p->drawing->choice.rates;
    const unsigned port = torus_port(p->layout->torus, m->leg.dim, m->leg.direction);

    return rates == NULL ? 1 : damage_rate(rates, m->start, port) / (double)DAMAGE_FULL_RATE;
}

static void put_tip(const struct svg_page *p, const struct drawn_message *m)
{
    const struct torus *t = p->layout->torus;
    unsigned port = torus_port(t, m->leg.dim, m->leg.direction);
    char name[TORUS_PORT_NAME_SIZE], text[48];

    (void)fprintf(p->out, "<title>%" PRIu32 " to %" PRIu32 ", port %s", m->start,
                  torus_walk(t, m->start, m->leg.dim, m->leg.direction, m->leg.hops),
                  torus_port_name(t, m->start, port, name));
    if (m->leg.hops > 1)
        (void)fprintf(p->out, ", %u hops", (unsigned)m->leg.hops);
    (void)fprintf(p->out, ": %s", blocks_text(p, m->segments, text, sizeof text));
    if (rate_of(p, m) < 1)
        (void)fprintf(p->out, " at %.3g of the rate of the others", rate_of(p, m));
    (void)fputs("</title>", p->out);
}

static void put_messages(const struct svg_page *p, const struct drawn_step *s)
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
        const bool slow = p->drawing->choice.load && rate_of(p, m) < 1;
        const double width = arrow_width(p, m->segments) / (slow ? rate_of(p, m) : 1);
        if (slow)
            (void)snprintf(number, sizeof number, "%.4g at %.3g", blocks_of(p, m->segments),
                           rate_of(p, m));
        else
            (void)snprintf(number, sizeof number, "%.4g", blocks_of(p, m->segments));
        const struct svg_arrow arrow = {.leg = m->leg,
                                        .start = m->start,
                                        .width = width < p->widest ? width : p->widest,
                                        .lane = m->lane,
                                        .lanes = s->lanes,
                                        .text = numbered || slow ? number : NULL};
        svg_arrow_draw(p->out, p->layout, &arrow);
        (void)fputs("</g>\n", p->out);
    }
}

static void put_step(const struct svg_page *p, uint32_t index)
{
    int x = SVG_BORDER + (int)(index % p->columns) * (p->step_width + SVG_BETWEEN);
    int y = SVG_BORDER + p->heading + (int)(index / p->columns) * (p->step_height + SVG_BETWEEN);
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
    const struct svg_page p = make_page(out, d, report);

    (void)fprintf(out,
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" "
                  "xmlns:xlink=\"http://www.w3.org/1999/xlink\" version=\"1.1\" "
                  "width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n"
                  "<title>%s on %s</title>\n",
                  p.width, p.height, p.width, p.height, p.name, p.torus);
    put_style(&p);
    define_torus(&p);
    (void)fputs("<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n", out);
    put_heading(&p);
    for (uint32_t i = 0; i < d->steps || i == 0; i++)
        put_step(&p, i);
    (void)fputs("</svg>\n", out);
}

/* ---- The options of torusctl plan ------------------------------------------------------------ */

bool plan_picture_is_output(const struct picture_arguments *a)
{
    return a->file != NULL && strcmp(a->file, "-") == 0;
}

const char *plan_picture_option(const struct picture_arguments *a)
{
    if (a->file != NULL)
        return "--svg";
    if (a->steps != NULL)
        return "--steps";
    if (a->source != NULL)
        return "--source";
    return a->load ? "--load" : NULL;
}

static int write_picture(const char *file, struct drawing *d, const struct schedule_report *report,
                         struct error *e)
{
    struct output_file output;

    if (output_file_open(&output, file, e) != 0)
        return -1;
    svg_draw(output.stream, d, report);
    return output_file_finish(&output, e);
}

int plan_picture(const struct cli *cli, const struct picture_arguments *a, const struct torus *t,
                 const struct algorithm *algorithm, const struct damage *rates,
                 const struct schedule_report *report, const uint32_t *node)
{
    struct drawing_choice choice = {
        .load = a->load || (algorithm->streaming && a->steps == NULL),
        .steps = a->steps,
        .source = TORUS_NO_NODE,
        .node = node != NULL ? *node : TORUS_NO_NODE,
        .rates = rates != NULL ? rates : algorithm_damage(algorithm),
    };
    struct drawing drawing;
    struct error e;

    if (plan_picture_option(a) == NULL)
        return EXIT_DONE;
    if (a->file == NULL)
        return cli_fail_usage(cli, "%s is for a picture: give its file with --svg FILE",
                              plan_picture_option(a));
    if (a->source != NULL && parse_number(a->source, t->nodes - 1, &choice.source, &e) != 0)
        return cli_fail_usage(cli, "--source: %s", e.text);
    if (drawing_make(&drawing, t, algorithm, &choice, &e) != 0)
        return cli_fail(cli, &e);
    int rc = write_picture(a->file, &drawing, report, &e);
    if (rc == 0 && (drawing.left_out || !drawing_part_is_whole(&drawing.layout.part, t)))
        cli_warn("the schedule is too large for a picture; the heading of the picture says what it "
                 "leaves out");
    drawing_free(&drawing);
    return rc == 0 ? EXIT_DONE : cli_fail(cli, &e);
}
