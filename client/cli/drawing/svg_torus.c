#include "client/cli/drawing/svg_torus.h"

#include <inttypes.h>

#include "client/cli/drawing/svg_link.h"

/* Colours of the ports, in pairs by dimension, for light and dark backgrounds. All ports of a factor that is neither a
 * ring nor a line have the first one. */
static const char *const port_colour[2 * TORUS_MAX_DIMS] = {
    "#1a7fc1", "#62b8ea", "#d55e00", "#e69f00", "#0a8f72", "#55b95f", "#b0488c", "#d58bbd",
    "#94683f", "#b98a5e", "#6d6de0", "#9a9af0", "#868600", "#b5b53c", "#6b7d8b", "#93a4b1",
};

void svg_torus_style(const struct svg_page *p)
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
    for (unsigned port = 0; port < torus_ports(p->layout.torus); port++) {
        unsigned dim = torus_port_dim(p->layout.torus, port);
        bool second = torus_port_direction(p->layout.torus, port) < 0;
        const char *colour = port_colour[2 * dim + second];
        if (p->layout.torus->size[dim] > 1)
            (void)fprintf(p->out, ".p%u .l{stroke:%s}.p%u .h{fill:%s}\n", port, colour, port,
                          colour);
    }
    (void)fputs("@media (prefers-color-scheme:dark){text{fill:#e4e6e8}.page{fill:#15181b}"
                ".frame{fill:#1d2125;stroke:#3b4249}.link{stroke:#4d565e}.node{stroke:#98a2ac}"
                ".s0{fill:#15181b}.s1{fill:#404953}.s2{fill:#5a4a1c}.s3{fill:#1f5131}"
                ".s4{fill:#1e3f66}.s5{fill:#5d2a2c}.s6{fill:#45305f}.s7{fill:#4b4534}"
                ".chosen{stroke:#fff}.w{fill:#ff7b7b}.crowd{stroke-opacity:.5}}\n"
                "</style>\n",
                p->out);
}

/* Writes the coordinates of a plane: "(2, *, *)". */
static void put_plane_name(const struct svg_page *p, uint32_t node, struct point frame)
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

static void put_frames(const struct svg_page *p)
{
    for (uint32_t node = 0; node < p->layout.torus->nodes; node++) {
        if (!svg_layout_has(&p->layout, node) || !svg_layout_begins_plane(&p->layout, node))
            continue;
        struct point frame = svg_layout_frame(&p->layout, node);
        (void)fprintf(p->out,
                      "<rect class=\"frame\" x=\"%.0f\" y=\"%.0f\" width=\"%d\" height=\"%d\"/>\n",
                      frame.x, frame.y, p->layout.frame_width, p->layout.frame_height);
        if (p->layout.axes > 2)
            put_plane_name(p, node, frame);
    }
}

/* Draws the links of a node within its plane: a line to the next node, and half a line at each side for a link that
 * wraps. */
static void put_links(const struct svg_page *p, uint32_t node)
{
    const struct torus *t = p->layout.torus;
    struct point c = svg_layout_node(&p->layout, node);
    uint32_t at[TORUS_MAX_DIMS];

    torus_coordinates(t, node, at);
    for (unsigned port = 0; port < torus_ports(t); port++) {
        unsigned dim = torus_port_dim(t, port);
        bool plus = torus_port_direction(t, port) > 0;
        if (torus_neighbour(t, node, port) == TORUS_NO_NODE ||
            svg_layout_leaves_plane(&p->layout, port))
            continue;
        struct point v = svg_layout_port(&p->layout, port);
        const struct drawing_part *part = &p->layout.part;
        bool outermost = at[dim] == part->first[dim] + (plus ? part->count[dim] - 1 : 0);
        int length = outermost ? SVG_MARGIN : p->layout.pitch;
        if (outermost || plus)
            (void)fprintf(p->out, "<path class=\"link\" d=\"M%.0f %.0fL%.0f %.0f\"/>\n", c.x, c.y,
                          c.x + length * v.x, c.y + length * v.y);
    }
}

static void put_nodes(const struct svg_page *p)
{
    const struct drawing_choice *c = &p->drawing->choice;

    for (uint32_t node = 0; node < p->layout.torus->nodes; node++) {
        if (!svg_layout_has(&p->layout, node))
            continue;
        struct point at = svg_layout_node(&p->layout, node);
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

void svg_torus_define(const struct svg_page *p)
{
    (void)fputs("<defs><g id=\"torus\">\n", p->out);
    put_frames(p);
    for (uint32_t node = 0; node < p->layout.torus->nodes; node++) {
        if (svg_layout_has(&p->layout, node) && p->layout.places != NULL)
            svg_link_draw(p->out, &p->layout, node);
        else if (svg_layout_has(&p->layout, node))
            put_links(p, node);
    }
    put_nodes(p);
    (void)fputs("</g></defs>\n", p->out);
}
