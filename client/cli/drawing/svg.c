#include "client/cli/drawing/svg.h"

#include <inttypes.h>

#include "client/cli/drawing/svg_arrow.h"
#include "client/cli/drawing/svg_heading.h"
#include "client/cli/drawing/svg_link.h"
#include "client/cli/drawing/svg_page.h"
#include "client/cli/drawing/svg_torus.h"

#define MOST_NUMBERS 600 /* arrows of a step that are numbered */

static void put_caption(const struct svg_page *p, const struct drawn_step *s)
{
    char text[160], least[48], most[48];
    const char *what = p->drawing->choice.load ? "channel" : "message";
    const char *plural = s->shown == 1 ? "" : "s";

    (void)svg_page_blocks_text(p, s->most, most, sizeof most);
    (void)snprintf(text, sizeof text, "Step %" PRIu32, s->step);
    svg_page_text(p, "c", 0, 12, p->drawing->choice.load ? "Load of the channels" : text);
    (void)snprintf(least, sizeof least, "%.10g", svg_page_blocks(p, s->least));
    if (s->least == s->most)
        (void)snprintf(text, sizeof text, "%zu %s%s of %s", s->shown, what, plural, most);
    else
        (void)snprintf(text, sizeof text, "%zu %s%s of %s to %s", s->shown, what, plural, least,
                       most);
    svg_page_text(p, "g", 0, 12 + SVG_LINE, text);
    if (s->crowd > 1) {
        (void)snprintf(text, sizeof text, "contention: up to %" PRIu32 " messages on a channel",
                       s->crowd);
        svg_page_text(p, "w", 0, 12 + 2 * SVG_LINE, text);
    }
}

/* Marks the channels that the message shares with other messages, unless they are marked already. */
static void mark_crowd(const struct svg_page *p, const struct drawn_message *m)
{
    enum { MARKED = 1 << 30 };
    const struct torus *t = p->layout.torus;
    unsigned port = torus_port(t, m->leg.dim, m->leg.direction);
    uint32_t node = m->start;

    for (uint16_t hop = 0; hop < m->leg.hops; hop++) {
        uint32_t *crossing = &p->drawing->crossing[(size_t)node * torus_ports(t) + port];
        if (*crossing > 1 && (*crossing & MARKED) == 0) {
            (p->layout.places != NULL ? svg_link_mark : svg_arrow_mark)(p->out, &p->layout, node,
                                                                        port);
            *crossing |= MARKED;
        }
        node = torus_neighbour(t, node, port);
    }
}

/* Writes the text that a viewer shows under the pointer. */
static void put_tip(const struct svg_page *p, const struct drawn_message *m)
{
    const struct torus *t = p->layout.torus;
    unsigned port = torus_port(t, m->leg.dim, m->leg.direction);
    char name[TORUS_PORT_NAME_SIZE], text[48];

    (void)fprintf(p->out, "<title>%" PRIu32 " to %" PRIu32 ", port %s", m->start,
                  torus_walk(t, m->start, m->leg.dim, m->leg.direction, m->leg.hops),
                  torus_port_name(t, m->start, port, name));
    if (m->leg.hops > 1)
        (void)fprintf(p->out, ", %u hops", (unsigned)m->leg.hops);
    (void)fprintf(p->out, ": %s</title>", svg_page_blocks_text(p, m->segments, text, sizeof text));
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
        (void)snprintf(number, sizeof number, "%.4g", svg_page_blocks(p, m->segments));
        const struct svg_arrow arrow = {.leg = m->leg,
                                        .start = m->start,
                                        .width = svg_page_arrow_width(p, m->segments),
                                        .lane = m->lane,
                                        .lanes = s->lanes,
                                        .text = numbered ? number : NULL};
        (p->layout.places != NULL ? svg_link_arrow : svg_arrow_draw)(p->out, &p->layout, &arrow);
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
        svg_page_text(p, "c", 0, 12, "No messages");
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
    const struct svg_page p = svg_page_make(out, d, report);

    (void)fprintf(out,
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" "
                  "xmlns:xlink=\"http://www.w3.org/1999/xlink\" version=\"1.1\" "
                  "width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n"
                  "<title>%s on %s</title>\n",
                  p.width, p.height, p.width, p.height, p.name, p.torus);
    svg_torus_style(&p);
    svg_torus_define(&p);
    (void)fputs("<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n", out);
    svg_heading_draw(&p);
    for (uint32_t i = 0; i < d->steps || i == 0; i++)
        put_step(&p, i);
    (void)fputs("</svg>\n", out);
}
