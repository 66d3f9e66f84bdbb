#include "client/cli/drawing/cabling_picture.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "client/cli/terminal/writer.h"
#include "daemon/lib/command_line/wrap.h"
#include "proto/text.h"

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
    unsigned right, down; /* dimensions; torus.dims: there is none */
    uint32_t across, rows;
    int width;   /* of a name, or of a rank */
    int between; /* WIDE or NARROW */
    bool names;  /* else the grid shows ranks, and a table follows */
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

enum cabling_link cabling_link_at(const struct cabling_result *r, uint32_t rank, unsigned port)
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
        return c->state == CABLING_CABLE_ONE_WAY ? CABLING_LINK_ONE_WAY : CABLING_LINK_GOOD;
    }
    return CABLING_LINK_TO_MAKE;
}

char *cabling_host_name(const struct cabling_result *r, const struct cabling_input *in,
                        uint32_t rank, char *text, size_t size)
{
    uint32_t host = r->host_of_rank[rank];

    return text_printable(text, size, host == CABLING_NONE ? "(missing)" : in->host[host].name);
}

/* The characters of a name; those of UTF-8 have several bytes. */
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

    p->right = p->down = t->dims;
    p->across = p->rows = 1;
    if (!torus_is_plain(t) || t->nodes > NODES_MOST)
        return false;
    for (unsigned dim = t->dims; dim-- > 0;) {
        if (t->size[dim] == 1)
            continue;
        if (p->down != t->dims)
            return false;
        if (p->right == t->dims) {
            p->right = dim;
            p->across = t->size[dim];
        } else {
            p->down = dim;
            p->rows = t->size[dim];
        }
    }
    p->width = 1;
    for (uint32_t rank = 0; rank < t->nodes; rank++) {
        int length = length_of(cabling_host_name(p->result, p->input, rank, name, sizeof name));
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
    unsigned port = torus_port(t, dim, 1);

    if (dim == t->dims || torus_neighbour(t, rank, port) == TORUS_NO_NODE)
        return "  ";
    switch (cabling_link_at(p->result, rank, port)) {
    case CABLING_LINK_GOOD:
        return across ? "--" : "| ";
    case CABLING_LINK_ONE_WAY:
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
            (void)cabling_host_name(p->result, p->input, rank, name, sizeof name);
        else
            (void)snprintf(name, sizeof name, "%" PRIu32, rank);
        used +=
            snprintf(line + used, sizeof line - (size_t)used, "%s%*s%s%s%s", name,
                     p->width - length_of(name), "", blank, mark(p, rank, p->right, true), blank);
    }
    put_line(out, line);
}

static void draw_grid(FILE *out, const struct picture *p)
{
    char line[4 * COLUMNS + 1];

    for (uint32_t row = 0; row < p->rows; row++) {
        draw_row(out, p, row);
        if (p->down == p->result->torus.dims ||
            (row + 1 == p->rows && !p->result->torus.wrap[p->down]))
            continue;
        int used = snprintf(line, sizeof line, "%*s", INDENT, "");
        for (uint32_t column = 0; column < p->across; column++)
            used += snprintf(line + used, sizeof line - (size_t)used, " %s%*s",
                             mark(p, row * p->across + column, p->down, false),
                             p->width + p->between - 3, "");
        put_line(out, line);
    }
}

/* Whether any link is in this state. */
static bool has_link(const struct cabling_result *r, enum cabling_link state)
{
    const struct torus *t = &r->torus;

    for (uint32_t rank = 0; rank < t->nodes; rank++)
        for (unsigned port = 0; port < torus_ports(t); port++)
            if (torus_port_dials(t, rank, port) && cabling_link_at(r, rank, port) == state)
                return true;
    return false;
}

static void draw_legend(FILE *out, const struct picture *p)
{
    const struct torus *t = &p->result->torus;

    if (p->right < t->dims)
        (void)fprintf(out, "  to the right: port +%u%s\n", p->right,
                      t->wrap[p->right] ? ", from the last column to the first" : "");
    if (p->down < t->dims)
        (void)fprintf(out, "  down: port +%u%s\n", p->down,
                      t->wrap[p->down] ? ", from the last row to the first" : "");
    if (has_link(p->result, CABLING_LINK_TO_MAKE))
        (void)fputs("  X: this cable is missing, or is plugged in elsewhere\n", out);
    if (has_link(p->result, CABLING_LINK_ONE_WAY))
        (void)fputs("  !: this cable works in one direction only\n", out);
}

static const char *interface_name(const struct cabling_input *in, struct cabling_end end,
                                  char *text, size_t size)
{
    bool known = end.host != CABLING_NONE && end.interface != CABLING_NONE;

    return text_printable(text, size,
                          known ? in->host[end.host].interface[end.interface].name : "?");
}

/* A row of the table; NULL if memory is short. */
static json_t *row_value(const struct cabling_result *r, const struct cabling_input *in,
                         uint32_t rank, unsigned port)
{
    static const char *const states[] = {"", "one direction only", "to be made"};
    const uint32_t there = torus_neighbour(&r->torus, rank, port);
    char host[NAME_SIZE], interface[NAME_SIZE], neighbour[NAME_SIZE];
    char port_name[TORUS_PORT_NAME_SIZE];

    return json_pack("{s:i, s:s, s:s, s:s, s:s, s:s}", "rank", (int)rank, "host",
                     cabling_host_name(r, in, rank, host, sizeof host), "port",
                     torus_port_name(&r->torus, rank, port, port_name), "interface",
                     interface_name(in, end_at(r, rank, port), interface, sizeof interface),
                     "neighbour", cabling_host_name(r, in, there, neighbour, sizeof neighbour),
                     "cable", states[cabling_link_at(r, rank, port)]);
}

static void draw_table(FILE *out, const struct cabling_result *r, const struct cabling_input *in)
{
    static const struct field fields[] = {{"rank", "rank", FORMAT_PLAIN},
                                          {"host", "host", FORMAT_PLAIN},
                                          {"port", "port", FORMAT_PLAIN},
                                          {"interface", "interface", FORMAT_PLAIN},
                                          {"neighbour", "neighbour", FORMAT_PLAIN},
                                          {"cable", "cable", FORMAT_PLAIN},
                                          {0}};
    static const struct section section = {.layout = LAYOUT_TABLE, .fields = fields};
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
