#include "client/cli/drawing/svg_heading.h"

#include <inttypes.h>
#include <string.h>

#include "client/cli/drawing/svg_arrow.h"

static void put_ports(const struct svg_page *p, int y)
{
    const struct torus *t = p->layout.torus;
    char name[TORUS_PORT_NAME_SIZE];
    int x = SVG_BORDER + 44;

    svg_page_text(p, "b", SVG_BORDER, y + 4, "Ports");
    for (unsigned port = 0; port < torus_ports(t); port++) {
        if (t->size[torus_port_dim(t, port)] == 1)
            continue;
        unsigned dim = torus_port_dim(t, port);
        bool graph = t->graph[dim] != NULL;
        if (graph && torus_port_direction(t, port) > 1)
            continue;
        svg_arrow_sample(p->out, &p->layout, port, (struct point){x + 12, y}, 20, 2.5);
        (void)torus_port_name(t, 0, port, name);
        if (graph)
            (void)snprintf(name, sizeof name, "%u:...", dim % 10);
        svg_page_text(p, "b", x + 27, y + 4, name);
        x += SVG_PORT_ROOM;
    }
    if (x == SVG_BORDER + 44)
        svg_page_text(p, "b", x, y + 4, "none");
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
    svg_page_text(p, "b", SVG_BORDER, y + 4, "Thickness");
    for (unsigned i = 0; i < count; i++) {
        char text[48];
        (void)fprintf(p->out, "<path class=\"node\" d=\"M%d %dh26\" stroke-width=\"%.1f\"/>\n", x,
                      y, svg_page_arrow_width(p, sample[i]));
        svg_page_text(p, "b", x + 32, y + 4, svg_page_blocks_text(p, sample[i], text, sizeof text));
        x += strlen(text) < 12 ? 112 : 46 + 7 * (int)strlen(text);
    }
}

void svg_heading_draw(const struct svg_page *p)
{
    const struct algorithm *a = p->drawing->algorithm;
    const struct schedule_report *r = p->report;
    char text[512], contended[64] = "no contention";
    int y = SVG_BORDER + 14;

    (void)snprintf(text, sizeof text, "%s on %s", p->name, p->torus);
    svg_page_text(p, "t", SVG_BORDER, y, text);
    if (r->contended_steps > 0)
        (void)snprintf(contended, sizeof contended, "contention in %" PRIu32 " of them",
                       r->contended_steps);
    (void)snprintf(text, sizeof text,
                   "%s, %s: %" PRIu32 " startup%s, %s, transmission %.10g, lower bound %.10g",
                   operation_name(a->operation), algorithm_ports_name(a), r->startups,
                   r->startups == 1 ? "" : "s", contended, svg_page_blocks(p, r->transmission),
                   r->bound);
    svg_page_text(p, "b", SVG_BORDER, y += 22, text);
    for (unsigned i = 0; i < p->notes; i++)
        svg_page_text(p, "b", SVG_BORDER, y += SVG_LINE, p->note[i]);
    put_ports(p, y += 24);
    put_thickness(p, y + 24);
}
