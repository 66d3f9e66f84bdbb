#include "client/cli/drawing/cabling_svg.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "client/cli/drawing/cabling_picture.h"
#include "proto/text.h"

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
    NAME_SIZE = 40,
    NAME_SHOWN = 13 /* characters of a name in a box */
};

struct sheet {
    FILE *out;
    const struct cabling_result *result;
    const struct cabling_input *input;
    const struct torus *torus;
    bool round;       /* the hosts stand in a circle */
    unsigned axes[2]; /* dimensions to the right and down; torus->dims: none */
    uint32_t across, rows;
    int width, height; /* of the picture without heading and moves */
    int margin, pitch; /* to the left of the boxes; from a host to the next one */
    double radius;
};

struct place {
    double x, y;
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

static void choose_axes(struct sheet *s)
{
    const struct torus *t = s->torus;
    unsigned axes = 0;

    s->axes[0] = s->axes[1] = t->dims;
    s->across = s->rows = 1;
    for (unsigned dim = t->dims; dim-- > 0 && axes < 2;)
        if (t->size[dim] > 1)
            s->axes[axes++] = dim;
    if (s->axes[0] < t->dims)
        s->across = t->size[s->axes[0]];
    if (s->axes[1] < t->dims)
        s->rows = t->size[s->axes[1]];
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
    choose_axes(s);
    s->margin = s->torus->dims > 2 ? STUB + WORDS : STUB;
    s->pitch = s->torus->dims > 2 ? PITCH_X + WORDS : PITCH_X;
    s->width = (int)s->across * s->pitch + s->margin;
    s->height = (int)(nodes / (s->across * s->rows)) * plane_height(s);
}

/* Ranks are row-major, so that a plane has ranks in a row. */
static struct place centre(const struct sheet *s, uint32_t rank)
{
    uint32_t plane = rank / (s->across * s->rows + s->round), in_plane;

    if (s->round) {
        double angle = 6.283185307 * rank / s->torus->nodes - 1.570796327;
        return (struct place){s->width / 2.0 + s->radius * cos(angle),
                              s->height / 2.0 + s->radius * sin(angle)};
    }
    in_plane = rank % (s->across * s->rows);
    return (struct place){s->margin + BOX_WIDTH / 2.0 + (double)(in_plane % s->across) * s->pitch,
                          GAP + BOX_HEIGHT / 2.0 + (double)plane * plane_height(s) +
                              (double)(in_plane / s->across) * PITCH_Y};
}

/* Where a line from the middle of a box in a direction (of length 1) leaves the box. */
static struct place edge_of_box(struct place c, double x, double y)
{
    double across = fabs(x) > 1e-6 ? BOX_WIDTH / 2.0 / fabs(x) : 1e9;
    double down = fabs(y) > 1e-6 ? BOX_HEIGHT / 2.0 / fabs(y) : 1e9;
    double length = across < down ? across : down;

    return (struct place){c.x + length * x, c.y + length * y};
}

static const char *class_of(enum cabling_link state)
{
    return state == CABLING_LINK_GOOD ? "k" : state == CABLING_LINK_ONE_WAY ? "o" : "m";
}

/* The name of the interface at a port; NULL if it is not known. */
static const char *interface_at(const struct sheet *s, uint32_t rank, unsigned port)
{
    uint32_t host = s->result->host_of_rank[rank];
    uint32_t at = s->result->interface_at[(size_t)rank * torus_ports(s->torus) + port];

    if (host == CABLING_NONE || at == CABLING_NONE)
        return NULL;
    return s->input->host[host].interface[at].name;
}

/* Writes the name of the interface at a port beside the line that leaves the box; in a circle on the line, at different
 * distances, since lines are near each other at the box. */
static void put_interface(const struct sheet *s, uint32_t rank, unsigned port, struct place edge,
                          double x, double y)
{
    const char *name = interface_at(s, rank, port);
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

static void put_line(const struct sheet *s, enum cabling_link state, struct place a, struct place b)
{
    (void)fprintf(s->out, "<path class=\"%s\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", class_of(state), a.x,
                  a.y, b.x, b.y);
}

/* Draws the end of a link that wraps. */
static void put_stub(const struct sheet *s, uint32_t rank, unsigned port, double x, double y)
{
    struct place edge = edge_of_box(centre(s, rank), x, y);

    put_line(s, cabling_link_at(s->result, rank, port), edge,
             (struct place){edge.x + STUB * 0.8 * x, edge.y + STUB * 0.8 * y});
    put_interface(s, rank, port, edge, x, y);
}

/* Draws the end of a link to another plane, at a corner of the box, with the names of the interface and of the host at
 * the other end. */
static void put_corner(const struct sheet *s, uint32_t rank, unsigned port, double x, double y)
{
    struct place c = centre(s, rank);
    struct place edge = {c.x + x * (BOX_WIDTH / 2.0 - 4), c.y + y * BOX_HEIGHT / 2};
    const char *interface = interface_at(s, rank, port);
    uint32_t there = torus_neighbour(s->torus, rank, port);
    char name[NAME_SIZE];

    put_line(s, cabling_link_at(s->result, rank, port), edge,
             (struct place){edge.x + 10 * x, edge.y + 10 * y});
    (void)fprintf(s->out, "<text class=\"i\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">",
                  edge.x + 12 * x, edge.y + 10 * y + (y > 0 ? 8 : 0), x < 0 ? "end" : "start");
    put_text(s, interface != NULL ? interface : "?", NAME_SHOWN);
    (void)fputs(" \xe2\x80\x93 ", s->out);
    put_text(s, cabling_host_name(s->result, s->input, there, name, sizeof name), NAME_SHOWN);
    (void)fputs("</text>\n", s->out);
}

/* Draws a link as a line between two boxes. */
static void put_between(const struct sheet *s, uint32_t rank, unsigned port)
{
    uint32_t there = torus_neighbour(s->torus, rank, port);
    unsigned back = torus_port_opposite(s->torus, port);
    struct place a = centre(s, rank), b = centre(s, there);
    double length = hypot(b.x - a.x, b.y - a.y);
    double x = (b.x - a.x) / length, y = (b.y - a.y) / length;
    struct place from = edge_of_box(a, x, y), to = edge_of_box(b, -x, -y);

    put_line(s, cabling_link_at(s->result, rank, port), from, to);
    put_interface(s, rank, port, from, x, y);
    put_interface(s, there, back, to, -x, -y);
}

/* Whether a link of rings and lines joins two hosts side by side in the picture. */
static bool is_beside(const struct sheet *s, uint32_t rank, unsigned port)
{
    unsigned dim = torus_port_dim(s->torus, port);
    uint32_t there = torus_neighbour(s->torus, rank, port);

    return (dim == s->axes[0] || dim == s->axes[1]) && there > rank;
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
            if (dim == s->axes[0] || dim == s->axes[1]) {
                put_stub(s, rank, port, dim == s->axes[0], dim == s->axes[1]);
                put_stub(s, there, back, -(dim == s->axes[0]), -(dim == s->axes[1]));
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
    struct place c = centre(s, rank);
    uint32_t at[TORUS_MAX_DIMS];
    char name[NAME_SIZE];
    bool missing = s->result->host_of_rank[rank] == CABLING_NONE;

    torus_coordinates(t, rank, at);
    (void)fprintf(s->out,
                  "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"%d\" rx=\"5\"/>"
                  "<text class=\"n\" x=\"%.1f\" y=\"%.1f\">",
                  missing ? "h b" : "h", c.x - BOX_WIDTH / 2.0, c.y - BOX_HEIGHT / 2.0, BOX_WIDTH,
                  BOX_HEIGHT, c.x, c.y - 3);
    put_text(s, cabling_host_name(s->result, s->input, rank, name, sizeof name), NAME_SHOWN);
    (void)fprintf(s->out, "</text><text class=\"c\" x=\"%.1f\" y=\"%.1f\">%" PRIu32, c.x, c.y + 13,
                  rank);
    for (unsigned dim = 0; dim < t->dims && t->dims > 1; dim++)
        (void)fprintf(s->out, "%s%" PRIu32 "%s", dim == 0 ? " (" : ", ", at[dim],
                      dim + 1 == t->dims ? ")" : "");
    (void)fputs("</text>\n", s->out);
}

static void put_style(const struct sheet *s)
{
    (void)fputs("<style>\n"
                "text{font-family:sans-serif;fill:#222}.page{fill:#fff}\n"
                ".h{fill:#f2f5f8;stroke:#59626b}.b{stroke:#c4161c;stroke-dasharray:4 3}\n"
                ".k{stroke:#4a7a9c;stroke-width:2}.o{stroke:#c4161c;stroke-width:2}\n"
                ".m{stroke:#c4161c;stroke-width:2;stroke-dasharray:6 4}\n"
                ".r{text-anchor:middle;paint-order:stroke;stroke:#fff;stroke-width:3px}\n"
                ".t{font-size:15px;font-weight:bold}.w{font-size:13px;fill:#c4161c}\n"
                ".n{font-size:12px;font-weight:bold;text-anchor:middle}\n"
                ".c{font-size:10px;text-anchor:middle}.i{font-size:9px;fill:#59626b}\n"
                "@media (prefers-color-scheme:dark){text{fill:#e4e6e8}.page{fill:#15181b}\n"
                ".h{fill:#262c32;stroke:#98a2ac}.k{stroke:#6ea6cc}.i{fill:#98a2ac}\n"
                ".w{fill:#ff7b7b}.r{stroke:#15181b}.b,.o,.m{stroke:#ff7b7b}}\n</style>\n",
                s->out);
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

/* The pixels that a text of this many bytes takes at most. */
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
    put_style(&s);
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
