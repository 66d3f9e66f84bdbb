#include "client/cli/drawing/svg_page.h"

#include <inttypes.h>
#include <string.h>

#include "client/cli/drawing/svg_arrow.h"
#include "proto/text.h"

enum {
    LEAST_WIDTH = 660, /* of the page, for the heading */
    LEAST_STEP = 228,  /* width of a step, for its caption */
    CAPTION = 22,      /* height of the number of a step */
};
static const double thinnest = 1;

/* ---- Texts ----------------------------------------------------------------------------------- */

/* Copies a text as XML, cut to what fits. */
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

double svg_page_blocks(const struct svg_page *p, uint64_t segments)
{
    return (double)segments / p->drawing->algorithm->segments;
}

char *svg_page_blocks_text(const struct svg_page *p, uint64_t segments, char *text, size_t size)
{
    double count = svg_page_blocks(p, segments);
    (void)snprintf(text, size, "%.10g %s", count, count > 0 && count <= 1 ? "block" : "blocks");
    return text;
}

void svg_page_text(const struct svg_page *p, const char *class, int x, int y, const char *text)
{
    (void)fprintf(p->out, "<text class=\"%s\" x=\"%d\" y=\"%d\">%s</text>\n", class, x, y, text);
}

double svg_page_arrow_width(const struct svg_page *p, uint64_t segments)
{
    double width = p->widest * (double)segments / (double)p->drawing->most;
    return width > thinnest ? width : thinnest;
}

/* ---- Notes ----------------------------------------------------------------------------------- */

static void add_note(struct svg_page *p, const char *text)
{
    if (p->notes < SVG_MOST_NOTES)
        (void)snprintf(p->note[p->notes++], sizeof p->note[0], "%s", text);
}

/* Says what the picture leaves out because it would be too large. */
static void add_missing_notes(struct svg_page *p)
{
    const struct drawing *d = p->drawing;
    char text[sizeof p->note[0]], part[DRAWING_PART_TEXT_SIZE];

    if (!drawing_part_is_whole(&d->part, d->torus)) {
        (void)snprintf(text, sizeof text,
                       "Only nodes %s are drawn, %" PRIu32 " of %" PRIu32
                       ". Arrows from and to other nodes are cut off at the frame.",
                       drawing_part_format(&d->part, d->torus, part, sizeof part),
                       drawing_part_nodes(&d->part, d->torus), d->torus->nodes);
        add_note(p, text);
    }
    if (d->left_out && d->choice.load)
        add_note(p, "Only the messages of the first steps are counted: all steps have too many.");
    else if (d->left_out && d->steps > 0) {
        (void)snprintf(text, sizeof text,
                       "Only steps %" PRIu32 " to %" PRIu32 " of %" PRIu32 " to %" PRIu32
                       " are drawn: more arrows do not fit into a picture.",
                       d->step[0].step, d->step[d->steps - 1].step, d->first_chosen,
                       d->last_chosen);
        add_note(p, text);
    }
}

static void add_choice_notes(struct svg_page *p)
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

/* Explains the signs that the picture uses. */
static void add_sign_notes(struct svg_page *p)
{
    const struct drawing *d = p->drawing;
    const struct torus *t = p->layout.torus;
    bool wraps = false, far = false, graphs = p->layout.places != NULL;

    for (unsigned i = 0; i < t->dims; i++)
        wraps |=
            t->size[i] > 1 && t->wrap[i] && p->layout.axis[i] < 2 && d->part.count[i] == t->size[i];
    for (const struct drawn_message *m = d->message; m < d->message + d->messages; m++)
        far |= m->segments > 0 && m->leg.hops > 1 && p->layout.axis[m->leg.dim] > 1;
    if (wraps && !graphs)
        add_note(p,
                 "A line cut off at the frame continues at the opposite side: a link that wraps.");
    if (p->layout.axes > 2) {
        add_note(p, "Each frame is a plane of the last two dimensions, named by the coordinates "
                    "in the others.");
        add_note(
            p, graphs ? "A short line leads to the node of this number in another frame; its "
                        "arrows are drawn at both ends."
               : far ? "A slanted arrow leads to another plane, and is drawn at both ends; +2: two "
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
    p->shaded = p->drawing->groups > 1 && p->drawing->groups < p->layout.torus->nodes;
    p->widest = svg_arrow_widest(&p->layout, 1);
    for (uint32_t i = 0; i < p->drawing->steps; i++) {
        double widest = svg_arrow_widest(&p->layout, p->drawing->step[i].lanes);
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
    p->step_width = p->layout.width > LEAST_STEP ? p->layout.width : LEAST_STEP;
    p->step_height = p->layout.height + p->step_caption;
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
    int ports = 120 + SVG_PORT_ROOM * (int)(2 * p->layout.axes);
    p->width = (int)p->columns * (p->step_width + SVG_BETWEEN) - SVG_BETWEEN;
    if (p->width < LEAST_WIDTH)
        p->width = LEAST_WIDTH;
    if (p->width < ports)
        p->width = ports;
    p->width += 2 * SVG_BORDER;
    p->height =
        2 * SVG_BORDER + p->heading + (int)rows * (p->step_height + SVG_BETWEEN) - SVG_BETWEEN;
}

struct svg_page svg_page_make(FILE *out, struct drawing *d, const struct schedule_report *report)
{
    struct svg_page p = {.out = out,
                         .drawing = d,
                         .layout = svg_layout_make(d->torus, &d->part, &d->places),
                         .report = report};

    escape(p.name, sizeof p.name, d->algorithm->name);
    (void)torus_format(d->torus, p.torus);
    measure_heading(&p);
    measure_steps(&p);
    return p;
}
