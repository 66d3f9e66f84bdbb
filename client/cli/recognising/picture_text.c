#include <string.h>

#include "client/cli/recognising/picture.h"

#define NAME_MOST 14u /* columns; longer names are cut */
#define COLUMNS_MOST 160u
#define NODES_MOST 256u
#define MISSING "?"

/* The plane of the last two dimensions that is drawn. */
struct plane {
    const struct torus *torus;
    uint32_t first; /* rank of its first node */
    uint32_t rows, columns;
    bool wrap_rows, wrap_columns; /* links leave the plane at its edges */
    int width;                    /* of a name */
};

static bool wraps(const struct torus *t, unsigned dim)
{
    return t->wrap[dim] && t->size[dim] > 1;
}

static const char *name_at(const struct recognised *r, uint32_t rank)
{
    uint32_t host = r->result.host_of_rank[rank];

    return host != CABLING_NONE ? r->input.host[host].name : MISSING;
}

static int name_width(const struct recognised *r)
{
    size_t width = 1;

    for (uint32_t rank = 0; rank < r->result.torus.nodes; rank++) {
        size_t length = strlen(name_at(r, rank));
        width = length > width ? length : width;
    }
    return (int)(width < NAME_MOST ? width : NAME_MOST);
}

bool picture_text_is_possible(const struct recognised *r)
{
    const struct torus *t = &r->result.torus;

    return r->result.finding != CABLING_UNCLEAR && torus_is_plain(t) && t->nodes <= NODES_MOST &&
           t->size[t->dims - 1] * ((unsigned)name_width(r) + 4) <= COLUMNS_MOST;
}

/* Draws the links between two rows, or those that leave the first or last row. */
static void vertical_links(FILE *out, const struct plane *p)
{
    (void)fprintf(out, "%*s|", 4 + p->width / 2, "");
    for (uint32_t column = 1; column < p->columns; column++)
        (void)fprintf(out, "%*s|", p->width + 3, "");
    (void)fputc('\n', out);
}

static void dashes(FILE *out, int count)
{
    while (count-- > 0)
        (void)fputc('-', out);
}

static void row_of_hosts(FILE *out, const struct recognised *r, const struct plane *p, uint32_t row)
{
    (void)fputs(p->wrap_columns ? "  -" : "   ", out);
    for (uint32_t column = 0; column < p->columns; column++) {
        const char *name = name_at(r, p->first + row * p->columns + column);
        int length = (int)strnlen(name, (size_t)p->width), left = (p->width - length) / 2;
        const bool before = column > 0 || p->wrap_columns;
        const bool behind = column + 1 < p->columns || p->wrap_columns;
        if (before)
            dashes(out, left);
        else
            (void)fprintf(out, "%*s", left, "");
        (void)fprintf(out, " %.*s%s", length, name, behind ? " " : "");
        if (behind)
            dashes(out, p->width - length - left);
        if (column + 1 < p->columns)
            dashes(out, 2);
    }
    (void)fputs(p->wrap_columns ? "-\n" : "\n", out);
}

static void draw_plane(FILE *out, const struct recognised *r, const struct plane *p)
{
    if (p->wrap_rows)
        vertical_links(out, p);
    for (uint32_t row = 0; row < p->rows; row++) {
        row_of_hosts(out, r, p, row);
        if (row + 1 < p->rows || p->wrap_rows)
            vertical_links(out, p);
    }
}

/* Writes "(1, *, *)" above a plane of more than two dimensions. */
static void heading(FILE *out, const struct torus *t, uint32_t rank)
{
    uint32_t at[TORUS_MAX_DIMS];

    torus_coordinates(t, rank, at);
    (void)fputc('(', out);
    for (unsigned i = 0; i + 2 < t->dims; i++)
        (void)fprintf(out, "%u, ", at[i]);
    (void)fputs("*, *)\n", out);
}

void picture_text(FILE *out, const struct recognised *r)
{
    const struct torus *t = &r->result.torus;
    struct plane p = {.torus = t,
                      .rows = t->dims > 1 ? t->size[t->dims - 2] : 1,
                      .columns = t->size[t->dims - 1],
                      .wrap_rows = t->dims > 1 && wraps(t, t->dims - 2),
                      .wrap_columns = wraps(t, t->dims - 1),
                      .width = name_width(r)};

    for (; p.first < t->nodes; p.first += p.rows * p.columns) {
        if (t->dims > 2) {
            (void)fputs(p.first > 0 ? "\n" : "", out);
            heading(out, t, p.first);
        }
        draw_plane(out, r, &p);
    }
}
