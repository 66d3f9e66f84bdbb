/* The nodes and links of a torus. A link shows its load in three ways: its line, a number, and a colour. */
#include <string.h>

#include "client/cli/drawing/node_positions.h"
#include "client/cli/top/draw.h"

#define NUMBER_FROM 5u /* narrower links show tenths instead of per cents */
#define ONE_WAY                                                                                    \
    2 /* an arrow shows the direction that has this many times the load of the other one */
#define HOST_COLUMN 7u
#define LINKS_COLUMN 21u
#define SENT_COLUMN 27u
#define PORTS_COLUMN 40u
#define PORT_COLUMNS 10u

enum level { LEVEL_UNKNOWN, LEVEL_IDLE, LEVEL_LOW, LEVEL_MIDDLE, LEVEL_HIGH, LEVEL_DOWN, LEVELS };

static const enum top_look looks[LEVELS] = {TOP_FAINT,  TOP_IDLE, TOP_LOW,
                                            TOP_MIDDLE, TOP_HIGH, TOP_BROKEN};

struct strokes {
    uint32_t across[LEVELS], down[LEVELS], right, left, lower, upper;
};

static const struct strokes in_ascii = {
    {'?', '.', '-', '=', '#', 'X'}, {'?', ':', '|', 'I', '#', 'X'}, '>', '<', 'v', '^'};
static const struct strokes in_unicode = {{'?', 0xb7, 0x2500, 0x2501, 0x2588, 0x2573},
                                          {'?', ':', 0x2502, 0x2503, 0x2588, 0x2573},
                                          0x25b8,
                                          0x25c2,
                                          0x25be,
                                          0x25b4};

static const struct strokes *strokes_of(const struct top_window *w)
{
    return w->screen->unicode ? &in_unicode : &in_ascii;
}

static enum level level_of(enum link_state state, double load)
{
    if (state == LINK_DOWN)
        return LEVEL_DOWN;
    if (state != LINK_UP)
        return LEVEL_UNKNOWN;
    return load < 0.005 ? LEVEL_IDLE
           : load < 0.4 ? LEVEL_LOW
           : load < 0.8 ? LEVEL_MIDDLE
                        : LEVEL_HIGH;
}

/* Per cent up to 999, or tenths up to 9; "" if there is nothing to say. */
static void load_text(char text[8], enum level level, double load, bool tenths)
{
    text[0] = '\0';
    if (level < LEVEL_LOW || level == LEVEL_DOWN)
        return;
    unsigned number = load > 9.99 ? 999 : (unsigned)(load * 100 + 0.5);
    if (tenths)
        number = number >= 100 ? 9 : number / 10;
    (void)snprintf(text, 8, "%u", number);
}

/* Above 0: nearly all goes away from this end; below 0: towards it; otherwise 0. */
static int direction_of(const struct observed_link *l)
{
    if (l->away > ONE_WAY * l->towards && l->towards >= 0)
        return 1;
    return l->towards > ONE_WAY * l->away && l->away >= 0 ? -1 : 0;
}

/* Draws a link to the right, in `columns` cells. */
static void draw_across(struct top_window *w, unsigned row, unsigned column, unsigned columns,
                        const struct observed_link *l, bool chosen)
{
    const struct strokes *s = strokes_of(w);
    const enum level level = level_of(l->state, observed_load(l));
    const int direction = direction_of(l);
    char text[8];

    load_text(text, level, observed_load(l), columns < NUMBER_FROM);
    const unsigned length = (unsigned)strlen(text);
    for (unsigned i = 0; i < columns; i++)
        top_put_character(w, row, column + i, looks[level], chosen, s->across[level]);
    if (length == 0 || length > columns)
        return;
    const unsigned at = (columns - length) / 2 + (columns == 2);
    (void)top_put(w, row, column + at, looks[level], chosen, text);
    if (direction > 0 && at + length < columns)
        top_put_character(w, row, column + at + length, looks[level], chosen, s->right);
    else if (direction != 0)
        top_put_character(w, row, column + at - 1, looks[level], chosen,
                          direction > 0 ? s->right : s->left);
}

/* A link downwards, or one that leaves the plane (`sign` is not 0), in a row below the node. Returns its columns. */
static unsigned draw_down(struct top_window *w, unsigned row, unsigned column, bool tenths,
                          uint32_t sign, const struct observed_link *l, bool chosen)
{
    const struct strokes *s = strokes_of(w);
    const enum level level = level_of(l->state, observed_load(l));
    const int direction = direction_of(l);
    char text[8];
    uint32_t stroke = s->down[level];
    const unsigned from = column;

    load_text(text, level, observed_load(l), tenths);
    if (sign == 0 && text[0] != '\0' && direction != 0)
        stroke = direction > 0 ? s->lower : s->upper;
    if (sign != 0)
        top_put_character(w, row, column++, looks[level], chosen, sign);
    if (sign == 0 || text[0] == '\0')
        top_put_character(w, row, column++, looks[level], chosen, stroke);
    return column - from + top_put(w, row, column, looks[level], chosen, text);
}

/* Chooses one of the links that leave the plane of a node: a link that is down if there is one, otherwise the link with
 * the highest load. */
static struct observed_link leaving(const struct top_layout *l, const struct top_model *m,
                                    uint32_t rank, const struct top_view *v, bool *chosen)
{
    struct observed_link found = {.state = LINK_NONE};

    for (unsigned port = 0; port < torus_ports(l->torus); port++) {
        const unsigned dim = torus_port_dim(l->torus, port);
        const struct observed_link one = observed_link(&m->seen, rank, port);
        if (dim == l->across || dim == l->down || one.state == LINK_NONE)
            continue;
        if (v->interactive && v->focus == TOP_FOCUS_LINK && v->node == rank && v->port == port)
            *chosen = true;
        if (one.state > found.state ||
            (one.state == found.state && observed_load(&one) > observed_load(&found)))
            found = one;
    }
    return found;
}

static bool is_chosen_link(const struct top_view *v, uint32_t rank, unsigned port,
                           const struct observed_link *l)
{
    return v->interactive && v->focus == TOP_FOCUS_LINK &&
           ((v->node == rank && v->port == port) ||
            (v->node == l->neighbour && v->port == l->port_there));
}

static bool is_chosen_node(const struct top_view *v, uint32_t rank)
{
    return v->interactive && v->focus != TOP_FOCUS_RUN && v->node == rank;
}

static void draw_label(struct top_window *w, unsigned row, unsigned column, unsigned columns,
                       const struct top_model *m, const struct top_view *v, uint32_t rank)
{
    const bool answered = all_nodes_answered(&m->seen.now, rank);
    char text[16];

    (void)snprintf(text, sizeof text, "%*u%c", (int)columns - 1, rank, answered ? ' ' : '!');
    (void)top_put(w, row, column,
                  !answered                       ? TOP_BROKEN
                  : rank == m->seen.now.initiator ? TOP_TITLE
                                                  : TOP_PLAIN,
                  is_chosen_node(v, rank), text);
}

static void draw_node(struct top_window *w, const struct top_layout *l, const struct top_model *m,
                      const struct top_view *v, uint32_t rank)
{
    const unsigned link_columns = l->cell_width - l->label;
    const bool tenths = link_columns < NUMBER_FROM;
    unsigned row, column, port;
    struct observed_link link;
    bool chosen = false;

    top_layout_place(l, rank, &row, &column);
    if (row + l->cell_height <= w->from_row || row >= w->from_row + w->rows)
        return;
    draw_label(w, row, column, l->label, m, v, rank);
    if (l->across != TOP_NO_DIM) {
        port = torus_port(l->torus, l->across, 1);
        link = observed_link(&m->seen, rank, port);
        if (link.state != LINK_NONE)
            draw_across(w, row, column + l->label, link_columns, &link,
                        is_chosen_link(v, rank, port, &link));
    }
    if (l->down == TOP_NO_DIM)
        return;
    /* Below the last digit of the rank, if two links have room there. */
    unsigned at = l->planes > 1 && l->cell_width < l->label + NUMBER_FROM ? 0 : l->label - 2;
    port = torus_port(l->torus, l->down, 1);
    link = observed_link(&m->seen, rank, port);
    if (link.state != LINK_NONE)
        at += draw_down(w, row + 1, column + at, tenths, 0, &link,
                        is_chosen_link(v, rank, port, &link));
    link = leaving(l, m, rank, v, &chosen);
    if (link.state != LINK_NONE)
        (void)draw_down(w, row + 1, column + at, tenths, '/', &link, chosen);
}

static void draw_plane_titles(struct top_window *w, const struct top_layout *l)
{
    const unsigned dim[2] = {l->across, l->down};
    char text[COORDINATES_SIZE];

    for (unsigned plane = 0; l->planes > 1 && plane < l->planes; plane++) {
        unsigned row, column;
        const uint32_t first = top_layout_plane(l, plane, &row, &column);
        (void)top_put(w, row, column, TOP_FAINT, false,
                      coordinates_text(l->torus, first, dim, text, sizeof text));
    }
}

/* ---- Tables ---------------------------------------------------------------------------------- */

static void draw_port(struct top_window *w, unsigned row, unsigned column,
                      const struct top_model *m, const struct top_view *v, uint32_t rank,
                      unsigned port)
{
    const struct observed_link l = observed_link(&m->seen, rank, port);
    const enum level level = level_of(l.state, observed_load(&l));
    const struct strokes *s = strokes_of(w);
    const int direction = direction_of(&l);
    const bool chosen = is_chosen_link(v, rank, port, &l) && v->node == rank && v->port == port;
    char name[TORUS_PORT_NAME_SIZE], number[8];

    (void)torus_port_name(&m->seen.now.torus, rank, port, name);
    load_text(number, level, observed_load(&l), false);
    unsigned at = column + top_put(w, row, column, looks[level], chosen, name) + 1;
    if (number[0] == '\0' || direction != 0)
        top_put_character(w, row, at++, looks[level], chosen,
                          number[0] == '\0' ? s->across[level]
                          : direction > 0   ? s->right
                                            : s->left);
    (void)top_put(w, row, at, looks[level], chosen, number);
}

static void draw_row(struct top_window *w, const struct top_layout *l, const struct top_model *m,
                     const struct top_view *v, uint32_t rank)
{
    unsigned row, column, shown = 0, up = 0;
    char text[TOP_TEXT_SIZE];
    double sent, received;

    top_layout_place(l, rank, &row, &column);
    if (row + l->cell_height <= w->from_row || row >= w->from_row + w->rows)
        return;
    for (unsigned port = 0; port < torus_ports(l->torus); port++) {
        const struct observed_link link = observed_link(&m->seen, rank, port);
        if (link.state == LINK_NONE)
            continue;
        up += link.state == LINK_UP;
        draw_port(w, row + shown / l->in_row, PORTS_COLUMN + shown % l->in_row * PORT_COLUMNS, m, v,
                  rank, port);
        shown++;
    }
    top_model_node_rates(m, rank, &sent, &received);
    draw_label(w, row, column, HOST_COLUMN - 1, m, v, rank);
    (void)top_put_lines(w, row, HOST_COLUMN, LINKS_COLUMN - HOST_COLUMN - 1, 1, TOP_PLAIN, false,
                        top_model_host(m, rank));
    (void)top_print(w, row, LINKS_COLUMN, up < shown ? TOP_BROKEN : TOP_PLAIN, "%u/%u", up, shown);
    (void)top_put_lines(w, row, SENT_COLUMN, PORTS_COLUMN - SENT_COLUMN - 1, 1, TOP_PLAIN, false,
                        top_text_rate(text, sent));
}

/* ---- The whole ------------------------------------------------------------------------------- */

void top_draw_torus(struct top_window *w, const struct top_layout *l, const struct top_model *m,
                    const struct top_view *v)
{
    if (l->kind == TOP_LAYOUT_TABLE) {
        (void)top_put(w, 0, 0, TOP_FAINT, false, " node");
        (void)top_put(w, 0, HOST_COLUMN, TOP_FAINT, false, "host");
        (void)top_put(w, 0, LINKS_COLUMN, TOP_FAINT, false, "up");
        (void)top_put(w, 0, SENT_COLUMN, TOP_FAINT, false, "sends");
        (void)top_put(w, 0, PORTS_COLUMN, TOP_FAINT, false,
                      "ports, and the load of their links in %");
    }
    if (l->kind == TOP_LAYOUT_PLANES)
        draw_plane_titles(w, l);
    for (uint32_t rank = 0; rank < l->torus->nodes; rank++) {
        if (l->kind == TOP_LAYOUT_TABLE)
            draw_row(w, l, m, v, rank);
        else
            draw_node(w, l, m, v, rank);
    }
}

unsigned top_draw_legend(struct top_window *w, unsigned row)
{
    static const char *const meanings[LEVELS] = {"no answer", "none", "to 40 %",
                                                 "to 80 %",   "more", "down"};
    static const enum level order[] = {LEVEL_IDLE, LEVEL_LOW,  LEVEL_MIDDLE,
                                       LEVEL_HIGH, LEVEL_DOWN, LEVEL_UNKNOWN};
    const unsigned indent = top_put(w, row, 0, TOP_FAINT, false, "load:  ");
    unsigned column = indent, lines = 1;

    for (unsigned i = 0; i < LEVELS; i++) {
        if (column > indent && column + 4 + strlen(meanings[order[i]]) > w->columns) {
            column = indent;
            row++;
            lines++;
        }
        for (unsigned k = 0; k < 3; k++)
            top_put_character(w, row, column++, looks[order[i]], false,
                              strokes_of(w)->across[order[i]]);
        column += 1 + top_put(w, row, column + 1, TOP_FAINT, false, meanings[order[i]]) + 2;
    }
    return lines;
}
