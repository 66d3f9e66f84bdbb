#include "client/cli/drawing/cabling_picture.h"
#include "client/cli/drawing/drawing_texts.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "client/cli/drawing/node_positions.h"
#include "client/cli/terminal/writer.h"
#include "daemon/lib/command_line/wrap.h"
#include "proto/text.h"

/* ---- Text ------------------------------------------------------------------------------------ */

enum {
    COLUMNS = 80,
    NODES_MOST = 64,
    NAME_SIZE = 4 * 64 + 1, /* of a host or interface, made printable */
    MOVE_SIZE = 512,
    INDENT = 2,
    WIDE = 4,   /* from a name to the next one: " -- " */
    NARROW = 2, /* "--" */
    RANK_WIDTH = 2
};

/* A grid of at most two dimensions, the last one to the right. */
struct picture {
    const struct cabling_result *result;
    const struct cabling_input *input;
    unsigned dim[2]; /* plane_dims() */
    uint32_t across, rows;
    int width;   /* of a name, or of a rank */
    int between; /* WIDE or NARROW */
    bool names;  /* else the grid shows ranks, and a table follows */
};

/* How a link is. */
enum link {
    LINK_GOOD,
    LINK_ONE_WAY, /* its cable has to be replaced */
    LINK_TO_MAKE  /* no cable makes it now */
};

static bool same(struct cabling_end a, struct cabling_end b)
{
    return a.host == b.host && a.interface == b.interface;
}

static struct cabling_end end_at(const struct cabling_result *r, uint32_t rank, unsigned port)
{
    return (struct cabling_end){r->host_of_rank[rank],
                                r->interface_at[(size_t)rank * torus_ports(&r->torus) + port]};
}

/* The link at a port where the torus has one. */
static enum link link_at(const struct cabling_result *r, uint32_t rank, unsigned port)
{
    struct cabling_end here = end_at(r, rank, port);
    struct cabling_end there =
        end_at(r, torus_neighbour(&r->torus, rank, port), torus_port_opposite(&r->torus, port));

    for (uint32_t i = 0; i < r->cables; i++) {
        const struct cabling_cable *c = &r->cable[i];
        if (c->state == CABLING_CABLE_WRONG ||
            !((same(c->end[0], here) && same(c->end[1], there)) ||
              (same(c->end[1], here) && same(c->end[0], there))))
            continue;
        return c->state == CABLING_CABLE_ONE_WAY ? LINK_ONE_WAY : LINK_GOOD;
    }
    return LINK_TO_MAKE;
}

/* Copies the name of the host of a rank, printable and cut; "(missing)" if there is none. Returns `text`. */
static char *host_name(const struct cabling_result *r, const struct cabling_input *in,
                       uint32_t rank, char *text, size_t size)
{
    uint32_t host = r->host_of_rank[rank];

    return text_printable(text, size, host == CABLING_NONE ? "(missing)" : in->host[host].name);
}

/* The name of the interface at a port; NULL if it is not known. */
static const char *interface_at(const struct cabling_result *r, const struct cabling_input *in,
                                uint32_t rank, unsigned port)
{
    const struct cabling_end end = end_at(r, rank, port);

    return end.host != CABLING_NONE && end.interface != CABLING_NONE
               ? in->host[end.host].interface[end.interface].name
               : NULL;
}

/* Returns the number of characters of a name; one of UTF-8 may have several bytes. */
static int length_of(const char *text)
{
    int length = 0;

    for (const char *c = text; *c != '\0'; c++)
        length += ((unsigned char)*c & 0xc0) != 0x80;
    return length;
}

static bool fits(struct picture *p)
{
    const struct torus *t = &p->result->torus;
    char name[NAME_SIZE];

    if (plane_dims(t, p->dim) > 2 || !torus_is_plain(t) || t->nodes > NODES_MOST)
        return false;
    p->across = plane_extent(t, p->dim[0]);
    p->rows = plane_extent(t, p->dim[1]);
    p->width = 1;
    for (uint32_t rank = 0; rank < t->nodes; rank++) {
        int length = length_of(host_name(p->result, p->input, rank, name, sizeof name));
        p->width = length > p->width ? length : p->width;
    }
    p->names = INDENT + (int)p->across * (p->width + NARROW) <= COLUMNS;
    p->width = p->names ? p->width : RANK_WIDTH;
    p->between = INDENT + (int)p->across * (p->width + WIDE) <= COLUMNS ? WIDE : NARROW;
    return INDENT + (int)p->across * (p->width + p->between) <= COLUMNS;
}

/* The link of a node in the `+` direction, as two characters, or blanks where there is none. */
static const char *mark(const struct picture *p, uint32_t rank, unsigned dim, bool across)
{
    const struct torus *t = &p->result->torus;

    if (dim >= t->dims || torus_neighbour(t, rank, torus_port(t, dim, 1)) == TORUS_NO_NODE)
        return "  ";
    switch (link_at(p->result, rank, torus_port(t, dim, 1))) {
    case LINK_GOOD:
        return across ? "--" : "| ";
    case LINK_ONE_WAY:
        return across ? "!!" : "! ";
    default:
        return across ? "XX" : "X ";
    }
}

/* Writes a line without the blanks at its end. */
static void put_line(FILE *out, char *line)
{
    size_t length = strlen(line);

    while (length > 0 && line[length - 1] == ' ')
        length--;
    line[length] = '\0';
    (void)fprintf(out, "%s\n", line);
}

static void draw_row(FILE *out, const struct picture *p, uint32_t row)
{
    char line[4 * COLUMNS + 1], name[NAME_SIZE];
    const char *blank = p->between == WIDE ? " " : "";
    int used = snprintf(line, sizeof line, "%*s", INDENT, "");

    for (uint32_t column = 0; column < p->across; column++) {
        uint32_t rank = row * p->across + column;
        if (p->names)
            (void)host_name(p->result, p->input, rank, name, sizeof name);
        else
            (void)snprintf(name, sizeof name, "%" PRIu32, rank);
        used +=
            snprintf(line + used, sizeof line - (size_t)used, "%s%*s%s%s%s", name,
                     p->width - length_of(name), "", blank, mark(p, rank, p->dim[0], true), blank);
    }
    put_line(out, line);
}

static void draw_grid(FILE *out, const struct picture *p)
{
    char line[4 * COLUMNS + 1];

    for (uint32_t row = 0; row < p->rows; row++) {
        draw_row(out, p, row);
        if (p->rows == 1 || (row + 1 == p->rows && !p->result->torus.wrap[p->dim[1]]))
            continue;
        int used = snprintf(line, sizeof line, "%*s", INDENT, "");
        for (uint32_t column = 0; column < p->across; column++)
            used += snprintf(line + used, sizeof line - (size_t)used, " %s%*s",
                             mark(p, row * p->across + column, p->dim[1], false),
                             p->width + p->between - 3, "");
        put_line(out, line);
    }
}

/* Whether any link is in this state. */
static bool has_link(const struct cabling_result *r, enum link state)
{
    const struct torus *t = &r->torus;

    for (uint32_t rank = 0; rank < t->nodes; rank++)
        for (unsigned port = 0; port < torus_ports(t); port++)
            if (torus_port_dials(t, rank, port) && link_at(r, rank, port) == state)
                return true;
    return false;
}

static void draw_legend(FILE *out, const struct picture *p)
{
    const struct torus *t = &p->result->torus;

    if (p->dim[0] < t->dims)
        (void)fprintf(out, "  to the right: port +%u%s\n", p->dim[0],
                      t->wrap[p->dim[0]] ? ", from the last column to the first" : "");
    if (p->dim[1] < t->dims)
        (void)fprintf(out, "  down: port +%u%s\n", p->dim[1],
                      t->wrap[p->dim[1]] ? ", from the last row to the first" : "");
    if (has_link(p->result, LINK_TO_MAKE))
        (void)fputs("  X: this cable is missing, or is plugged in elsewhere\n", out);
    if (has_link(p->result, LINK_ONE_WAY))
        (void)fputs("  !: this cable works in one direction only\n", out);
}

/* A row of the table; NULL if memory is short. */
static json_t *row_value(const struct cabling_result *r, const struct cabling_input *in,
                         uint32_t rank, unsigned port)
{
    static const char *const states[] = {"", "one direction only", "to be made"};
    const uint32_t there = torus_neighbour(&r->torus, rank, port);
    const char *known = interface_at(r, in, rank, port);
    char host[NAME_SIZE], interface[NAME_SIZE], neighbour[NAME_SIZE];
    char port_name[TORUS_PORT_NAME_SIZE];

    return json_pack("{s:i, s:s, s:s, s:s, s:s, s:s}", "rank", (int)rank, "host",
                     host_name(r, in, rank, host, sizeof host), "port",
                     torus_port_name(&r->torus, rank, port, port_name), "interface",
                     text_printable(interface, sizeof interface, known != NULL ? known : "?"),
                     "neighbour", host_name(r, in, there, neighbour, sizeof neighbour), "cable",
                     states[link_at(r, rank, port)]);
}

static void draw_table(FILE *out, const struct cabling_result *r, const struct cabling_input *in)
{
    const struct section section = TABLE(NULL, FIELD("rank"), FIELD("host"), FIELD("port"),
                                         FIELD("interface"), FIELD("neighbour"), FIELD("cable"));
    json_t *rows = json_array();

    for (uint32_t rank = 0; rank < r->torus.nodes; rank++)
        for (unsigned port = 0; port < torus_ports(&r->torus); port++)
            if (torus_neighbour(&r->torus, rank, port) != TORUS_NO_NODE)
                (void)json_array_append_new(rows, row_value(r, in, rank, port));
    writer_text(out, rows, &(struct view){&section, 1});
    json_decref(rows);
}

void cabling_picture_draw(FILE *out, const struct cabling_result *r, const struct cabling_input *in)
{
    struct picture p = {.result = r, .input = in};
    char text[MOVE_SIZE], label[16];
    bool grid;

    wrap_labelled(out, "", 0, r->text, wrap_columns(out));
    if (r->finding == CABLING_UNCLEAR)
        return;
    (void)fputc('\n', out);
    grid = fits(&p);
    if (grid) {
        draw_grid(out, &p);
        draw_legend(out, &p);
        if (!p.names)
            (void)fputc('\n', out);
    }
    if (!grid || !p.names)
        draw_table(out, r, in);
    for (uint32_t i = 0; i < r->moves; i++) {
        char printable[4 * MOVE_SIZE];
        (void)cabling_move_text(r, in, i, text, sizeof text);
        (void)snprintf(label, sizeof label, "%" PRIu32 ". ", i + 1);
        if (i == 0)
            (void)fputc('\n', out);
        wrap_labelled(out, label, strlen(label), text_printable(printable, sizeof printable, text),
                      wrap_columns(out));
    }
}

/* ---- SVG ------------------------------------------------------------------------------------- */

enum {
    BORDER = 28,
    BOX_WIDTH = 84,
    BOX_HEIGHT = 40,
    PITCH_X = 176, /* from a host to the next one */
    PITCH_Y = 104,
    WORDS = 50, /* more space for the names beside links to other planes */
    STUB = 40,  /* of a link that wraps or leaves the plane, beyond the box */
    HEAD = 44,
    LINE = 18,
    GAP = 54, /* between planes, with a caption */
    BOX_NAME_SIZE = 40,
    NAME_SHOWN = 13 /* characters of a name in a box */
};

struct sheet {
    FILE *out;
    const struct cabling_result *result;
    const struct cabling_input *input;
    const struct torus *torus;
    bool round;      /* the hosts stand in a circle */
    unsigned dim[2]; /* plane_dims() */
    uint32_t across, rows;
    int width, height; /* of the picture without heading and moves */
    int margin, pitch; /* to the left of the boxes; from a host to the next one */
    double radius;
};

/* Writes a text as XML, cut to `most` characters. */
static void put_text(const struct sheet *s, const char *text, unsigned most)
{
    char printable[640];
    unsigned count = 0;

    (void)text_printable(printable, sizeof printable, text);
    for (const char *c = printable; *c != '\0'; c++) {
        if (((unsigned char)*c & 0xc0) != 0x80 && ++count > most)
            return;
        if (*c == '&')
            (void)fputs("&amp;", s->out);
        else if (*c == '<')
            (void)fputs("&lt;", s->out);
        else if (*c == '>')
            (void)fputs("&gt;", s->out);
        else
            (void)fputc(*c, s->out);
    }
}

static int plane_height(const struct sheet *s)
{
    return (int)s->rows * PITCH_Y + GAP;
}

static void lay_out(struct sheet *s)
{
    uint32_t nodes = s->torus->nodes;

    s->round = !torus_is_plain(s->torus);
    if (s->round) {
        s->radius = nodes * (BOX_WIDTH + 50) / 6.28;
        s->radius = s->radius < 150 ? 150 : s->radius;
        s->width = s->height = (int)(2 * s->radius) + BOX_WIDTH + 2 * STUB;
        return;
    }
    (void)plane_dims(s->torus, s->dim);
    s->across = plane_extent(s->torus, s->dim[0]);
    s->rows = plane_extent(s->torus, s->dim[1]);
    s->margin = s->torus->dims > 2 ? STUB + WORDS : STUB;
    s->pitch = s->torus->dims > 2 ? PITCH_X + WORDS : PITCH_X;
    s->width = (int)s->across * s->pitch + s->margin;
    s->height = (int)(nodes / (s->across * s->rows)) * plane_height(s);
}

/* Ranks are row-major, so that a plane has ranks in a row. */
static struct point centre(const struct sheet *s, uint32_t rank)
{
    uint32_t plane = rank / (s->across * s->rows + s->round), in_plane;

    if (s->round) {
        double angle = 6.283185307 * rank / s->torus->nodes - 1.570796327;
        return (struct point){s->width / 2.0 + s->radius * cos(angle),
                              s->height / 2.0 + s->radius * sin(angle)};
    }
    in_plane = rank % (s->across * s->rows);
    return (struct point){s->margin + BOX_WIDTH / 2.0 + (double)(in_plane % s->across) * s->pitch,
                          GAP + BOX_HEIGHT / 2.0 + (double)plane * plane_height(s) +
                              (double)(in_plane / s->across) * PITCH_Y};
}

/* Where a line from the middle of a box in a direction (of length 1) leaves the box. */
static struct point edge_of_box(struct point c, double x, double y)
{
    double across = fabs(x) > 1e-6 ? BOX_WIDTH / 2.0 / fabs(x) : 1e9;
    double down = fabs(y) > 1e-6 ? BOX_HEIGHT / 2.0 / fabs(y) : 1e9;
    double length = across < down ? across : down;

    return (struct point){c.x + length * x, c.y + length * y};
}

static const char *class_of(enum link state)
{
    return state == LINK_GOOD ? "k" : state == LINK_ONE_WAY ? "o" : "m";
}

/* Writes the name of the interface at a port beside the line that leaves the box; in a circle on the line, at different
 * distances, since lines are near each other at the box. */
static void put_interface(const struct sheet *s, uint32_t rank, unsigned port, struct point edge,
                          double x, double y)
{
    const char *name = interface_at(s->result, s->input, rank, port);
    bool level = fabs(x) > fabs(y);

    if (name == NULL)
        return;
    if (s->round)
        (void)fprintf(s->out, "<text class=\"i r\" x=\"%.1f\" y=\"%.1f\">",
                      edge.x + (20 + 12 * (port % 3)) * x, edge.y + (20 + 12 * (port % 3)) * y + 3);
    else
        (void)fprintf(s->out, "<text class=\"i\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">",
                      edge.x + 5 * x + (level ? 0 : 4),
                      edge.y + 5 * y +
                          (level   ? -4
                           : y > 0 ? 8
                                   : 0),
                      level && x < 0 ? "end" : "start");
    put_text(s, name, NAME_SHOWN);
    (void)fputs("</text>\n", s->out);
}

static void put_link_line(const struct sheet *s, enum link state, struct point a, struct point b)
{
    (void)fprintf(s->out, "<path class=\"%s\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", class_of(state), a.x,
                  a.y, b.x, b.y);
}

/* Draws the end of a link that wraps. */
static void put_stub(const struct sheet *s, uint32_t rank, unsigned port, double x, double y)
{
    struct point edge = edge_of_box(centre(s, rank), x, y);

    put_link_line(s, link_at(s->result, rank, port), edge,
                  (struct point){edge.x + STUB * 0.8 * x, edge.y + STUB * 0.8 * y});
    put_interface(s, rank, port, edge, x, y);
}

/* Draws the end of a link to another plane, at a corner of the box, with the names of the interface and of the host at
 * the other end. */
static void put_corner(const struct sheet *s, uint32_t rank, unsigned port, double x, double y)
{
    struct point c = centre(s, rank);
    struct point edge = {c.x + x * (BOX_WIDTH / 2.0 - 4), c.y + y * BOX_HEIGHT / 2};
    const char *interface = interface_at(s->result, s->input, rank, port);
    uint32_t there = torus_neighbour(s->torus, rank, port);
    char name[BOX_NAME_SIZE];

    put_link_line(s, link_at(s->result, rank, port), edge,
                  (struct point){edge.x + 10 * x, edge.y + 10 * y});
    (void)fprintf(s->out, "<text class=\"i\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">",
                  edge.x + 12 * x, edge.y + 10 * y + (y > 0 ? 8 : 0), x < 0 ? "end" : "start");
    put_text(s, interface != NULL ? interface : "?", NAME_SHOWN);
    (void)fputs(" \xe2\x80\x93 ", s->out);
    put_text(s, host_name(s->result, s->input, there, name, sizeof name), NAME_SHOWN);
    (void)fputs("</text>\n", s->out);
}

/* Draws a link as a line between two boxes. */
static void put_between(const struct sheet *s, uint32_t rank, unsigned port)
{
    uint32_t there = torus_neighbour(s->torus, rank, port);
    unsigned back = torus_port_opposite(s->torus, port);
    struct point a = centre(s, rank), b = centre(s, there);
    const struct point v = point_towards(a, b);
    struct point from = edge_of_box(a, v.x, v.y), to = edge_of_box(b, -v.x, -v.y);

    put_link_line(s, link_at(s->result, rank, port), from, to);
    put_interface(s, rank, port, from, v.x, v.y);
    put_interface(s, there, back, to, -v.x, -v.y);
}

/* Whether a link of rings and lines joins two hosts side by side in the picture. */
static bool is_beside(const struct sheet *s, uint32_t rank, unsigned port)
{
    unsigned dim = torus_port_dim(s->torus, port);
    uint32_t there = torus_neighbour(s->torus, rank, port);

    return (dim == s->dim[0] || dim == s->dim[1]) && there > rank;
}

static void put_links(const struct sheet *s)
{
    const struct torus *t = s->torus;

    for (uint32_t rank = 0; rank < t->nodes; rank++)
        for (unsigned port = 0; port < torus_ports(t); port++) {
            if (!torus_port_dials(t, rank, port))
                continue;
            unsigned dim = torus_port_dim(t, port), back = torus_port_opposite(t, port);
            uint32_t there = torus_neighbour(t, rank, port);
            if (s->round || is_beside(s, rank, port)) {
                put_between(s, rank, port);
                continue;
            }
            if (dim == s->dim[0] || dim == s->dim[1]) {
                put_stub(s, rank, port, dim == s->dim[0], dim == s->dim[1]);
                put_stub(s, there, back, -(dim == s->dim[0]), -(dim == s->dim[1]));
                continue;
            }
            double x = dim % 2 == 0
                           ? 1
                           : -1; /* a third dimension at two corners, a fourth at the other two */
            put_corner(s, rank, port, x, -1);
            put_corner(s, there, back, -x, 1);
        }
}

static void put_host(const struct sheet *s, uint32_t rank)
{
    const struct torus *t = s->torus;
    struct point c = centre(s, rank);
    char name[BOX_NAME_SIZE], at[COORDINATES_SIZE];
    bool missing = s->result->host_of_rank[rank] == CABLING_NONE;

    (void)fprintf(s->out,
                  "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%d\" rx=\"5\"/>"
                  "<text class=\"n\" x=\"%.1f\" y=\"%.1f\">",
                  missing ? "h b" : "h", c.x - BOX_WIDTH / 2.0, c.y - BOX_HEIGHT / 2.0, BOX_WIDTH,
                  BOX_HEIGHT, c.x, c.y - 3);
    put_text(s, host_name(s->result, s->input, rank, name, sizeof name), NAME_SHOWN);
    (void)fprintf(s->out, "</text><text class=\"c\" x=\"%.1f\" y=\"%.1f\">%" PRIu32, c.x, c.y + 13,
                  rank);
    if (t->dims > 1)
        (void)fprintf(s->out, " %s", coordinates_text(t, rank, NULL, at, sizeof at));
    (void)fputs("</text>\n", s->out);
}

static void put_moves(const struct sheet *s, int top)
{
    char text[512];

    for (uint32_t i = 0; i < s->result->moves; i++) {
        (void)cabling_move_text(s->result, s->input, i, text, sizeof text);
        (void)fprintf(s->out, "<text class=\"w\" x=\"%d\" y=\"%d\">%" PRIu32 ". ", BORDER,
                      top + (int)i * LINE, i + 1);
        put_text(s, text, sizeof text);
        (void)fputs("</text>\n", s->out);
    }
}

/* Returns the most pixels that a text of this many bytes takes. */
static int text_width(const char *text, double pixels)
{
    return (int)((double)strlen(text) * pixels);
}

static int page_width(const struct sheet *s)
{
    int width = text_width(s->result->text, 8.5);
    char text[512];

    width = s->width > width ? s->width : width;
    for (uint32_t i = 0; i < s->result->moves; i++) {
        (void)cabling_move_text(s->result, s->input, i, text, sizeof text);
        width = text_width(text, 7) + 24 > width ? text_width(text, 7) + 24 : width;
    }
    return width + 2 * BORDER;
}

void cabling_svg_draw(FILE *out, const struct cabling_result *r, const struct cabling_input *in)
{
    struct sheet s = {.out = out, .result = r, .input = in, .torus = &r->torus};
    bool drawn = r->finding != CABLING_UNCLEAR && r->torus.nodes <= CABLING_SVG_NODES_MOST;
    int width, height;

    if (drawn)
        lay_out(&s);
    width = page_width(&s);
    height = HEAD + s.height + (int)r->moves * LINE + 2 * BORDER;
    (void)fprintf(out,
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"%d\" "
                  "height=\"%d\" viewBox=\"0 0 %d %d\">\n",
                  width, height, width, height);
    (void)fprintf(out, "<style>\n%s</style>\n", cabling_css);
    (void)fprintf(out,
                  "<rect class=\"page\" width=\"100%%\" height=\"100%%\"/>\n"
                  "<text class=\"t\" x=\"%d\" y=\"%d\">",
                  BORDER, BORDER + 15);
    put_text(&s, r->text, sizeof r->text);
    (void)fprintf(out, "</text>\n<g transform=\"translate(%d %d)\">\n", BORDER, HEAD);
    if (drawn) {
        put_links(&s);
        for (uint32_t rank = 0; rank < r->torus.nodes; rank++)
            put_host(&s, rank);
    }
    (void)fputs("</g>\n", out);
    put_moves(&s, HEAD + s.height + BORDER);
    (void)fputs("</svg>\n", out);
}
