#include "client/cli/top/layout.h"

#include "client/cli/drawing/node_positions.h"

#define GAP 1u         /* columns between planes */
#define PORTS_FROM 40u /* column of a table */
#define PORT_COLUMNS 10u

static unsigned digits_of(uint32_t number)
{
    unsigned n = 1;

    for (; number > 9; number /= 10)
        n++;
    return n;
}

static void lay_table(struct top_layout *l, unsigned columns)
{
    const unsigned ports = torus_ports(l->torus);
    const unsigned fitting =
        columns > PORTS_FROM + PORT_COLUMNS ? (columns - PORTS_FROM) / PORT_COLUMNS : 1;
    const unsigned in_line = fitting > ports && ports > 0 ? ports : fitting;

    l->kind = TOP_LAYOUT_TABLE;
    l->in_row = in_line;
    l->cell_height = (ports + in_line - 1) / in_line;
    l->cell_width = PORTS_FROM + in_line * PORT_COLUMNS;
    l->width = l->cell_width;
    l->height = 1 + l->torus->nodes * l->cell_height; /* the first line has the titles */
}

static void lay_row(struct top_layout *l, unsigned columns)
{
    l->kind = TOP_LAYOUT_ROW;
    l->in_row = columns / l->cell_width;
    if (l->in_row < 1)
        l->in_row = 1;
    if (l->in_row > l->torus->nodes)
        l->in_row = l->torus->nodes;
    l->cell_height = 2;
    l->width = l->in_row * l->cell_width;
    l->height = (l->torus->nodes + l->in_row - 1) / l->in_row * l->cell_height;
}

static void lay_planes(struct top_layout *l, unsigned columns)
{
    const struct torus *t = l->torus;

    l->kind = TOP_LAYOUT_PLANES;
    l->in_row = t->size[l->across];
    l->cell_height = 2;
    l->planes = t->nodes / (t->size[l->across] * t->size[l->down]);
    l->plane_title = l->planes > 1 ? 1 : 0;
    l->plane_width = l->in_row * l->cell_width + (l->planes > 1 ? GAP : 0);
    l->plane_height = t->size[l->down] * l->cell_height + l->plane_title;
    l->planes_across = (columns + (l->planes > 1 ? GAP : 0)) / l->plane_width;
    if (l->planes_across < 1)
        l->planes_across = 1;
    if (l->planes_across > l->planes)
        l->planes_across = l->planes;
    l->width = l->planes_across * l->plane_width;
    l->height = (l->planes + l->planes_across - 1) / l->planes_across * l->plane_height;
}

struct top_layout top_layout_make(const struct torus *t, unsigned rows, unsigned columns)
{
    /* Columns of a link, and of a rank with its mark beyond the digits. */
    static const struct {
        unsigned link, beside;
    } widths[] = {{6, 2}, {5, 2}, {2, 2}, {2, 1}};
    struct top_layout l = {.torus = t}, found = {0};
    unsigned dim[2];

    l.axes = plane_dims(t, dim);
    l.across = dim[0];
    l.down = dim[1];
    if (!torus_is_plain(t)) {
        lay_table(&l, columns);
        return l;
    }
    for (unsigned i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        const unsigned gap = l.axes > 2 ? GAP : 0;
        l.label = digits_of(t->nodes - 1) + widths[i].beside;
        l.cell_width = l.label + widths[i].link;
        if (l.axes < 2)
            lay_row(&l, columns);
        else
            lay_planes(&l, columns);
        if (found.torus == NULL || found.width > columns + gap ||
            (found.height > rows && l.height < found.height))
            found = l;
    }
    return found;
}

/* The number of the plane of a node, and its place there. */
static unsigned place_in_planes(const struct top_layout *l, uint32_t rank, unsigned *row,
                                unsigned *column)
{
    const struct torus *t = l->torus;
    uint32_t at[TORUS_MAX_DIMS];
    unsigned plane = 0;

    torus_coordinates(t, rank, at);
    for (unsigned dim = 0; dim < t->dims; dim++)
        if (dim != l->across && dim != l->down)
            plane = plane * t->size[dim] + at[dim];
    *row = at[l->down];
    *column = at[l->across];
    return plane;
}

void top_layout_place(const struct top_layout *l, uint32_t rank, unsigned *row, unsigned *column)
{
    if (l->kind == TOP_LAYOUT_TABLE) {
        *row = 1 + rank * l->cell_height;
        *column = 0;
        return;
    }
    if (l->kind == TOP_LAYOUT_ROW) {
        *row = rank / l->in_row * l->cell_height;
        *column = rank % l->in_row * l->cell_width;
        return;
    }
    const unsigned plane = place_in_planes(l, rank, row, column);
    *row = *row * l->cell_height + plane / l->planes_across * l->plane_height + l->plane_title;
    *column = *column * l->cell_width + plane % l->planes_across * l->plane_width;
}

uint32_t top_layout_plane(const struct top_layout *l, unsigned plane, unsigned *row,
                          unsigned *column)
{
    const struct torus *t = l->torus;
    uint32_t at[TORUS_MAX_DIMS] = {0};

    *row = plane / l->planes_across * l->plane_height;
    *column = plane % l->planes_across * l->plane_width;
    for (unsigned dim = t->dims; dim-- > 0;) {
        if (dim == l->across || dim == l->down)
            continue;
        at[dim] = plane % t->size[dim];
        plane /= t->size[dim];
    }
    return torus_rank(t, at);
}

/* Moves from a plane to the one beside, above or below it: to the node at the same edge. */
static uint32_t leave_plane(const struct top_layout *l, uint32_t rank, int down, int across)
{
    unsigned row, column, title_row, title_column;
    const unsigned plane = place_in_planes(l, rank, &row, &column);
    const int along = (int)(plane % l->planes_across) + across;
    const int64_t other = (int64_t)plane + across + (int64_t)down * l->planes_across;
    uint32_t at[TORUS_MAX_DIMS];

    if (along < 0 || along >= (int)l->planes_across || other < 0 || other >= l->planes)
        return rank;
    torus_coordinates(l->torus, top_layout_plane(l, (unsigned)other, &title_row, &title_column),
                      at);
    at[l->down] = down > 0 ? 0 : down < 0 ? l->torus->size[l->down] - 1 : row;
    at[l->across] = across > 0 ? 0 : across < 0 ? l->torus->size[l->across] - 1 : column;
    return torus_rank(l->torus, at);
}

uint32_t top_layout_move(const struct top_layout *l, uint32_t rank, int down, int across)
{
    const struct torus *t = l->torus;
    uint32_t at[TORUS_MAX_DIMS];

    if (l->kind != TOP_LAYOUT_PLANES) {
        const int64_t step =
            l->kind == TOP_LAYOUT_TABLE ? down + across : down * (int64_t)l->in_row + across;
        const int64_t other = (int64_t)rank + step;
        return other < 0 || other >= t->nodes ? rank : (uint32_t)other;
    }
    torus_coordinates(t, rank, at);
    const int64_t row = (int64_t)at[l->down] + down, column = (int64_t)at[l->across] + across;
    if (row < 0 || row >= t->size[l->down] || column < 0 || column >= t->size[l->across])
        return leave_plane(l, rank, down, across);
    at[l->down] = (uint32_t)row;
    at[l->across] = (uint32_t)column;
    return torus_rank(t, at);
}
