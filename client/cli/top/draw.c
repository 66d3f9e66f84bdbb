#include "client/cli/top/draw.h"

#include <string.h>

#include "client/cli/terminal/format.h"
#include "proto/text.h"

#define HEAD 2u        /* lines above the torus */
#define FOOT 2u        /* lines below the lists: what is chosen, and keys */
#define LEAST_LISTS 3u /* lines for what runs and for faults, if they need so many */
#define LEAST_ROWS 3u

static void draw_title(struct top_screen *s, const struct top_model *m, const struct top_view *v)
{
    struct top_window w = top_window_make(s, 0, 0, 1, s->columns);
    const struct torus *t = &m->seen.now.torus;
    char dims[TORUS_TEXT_SIZE], capacity[TOP_TEXT_SIZE];
    unsigned column;

    if (m->seen.now.state == NULL) {
        (void)top_put(&w, 0, 0, TOP_TITLE, false, "torusctl top");
        return;
    }
    column = top_print(&w, 0, 0, TOP_TITLE, "%s", torus_format(t, dims));
    column += 2;
    column += top_print(&w, 0, column, m->seen.answered < t->nodes ? TOP_BROKEN : TOP_PLAIN,
                        "%zu of %u %s", m->seen.answered, t->nodes,
                        text_plural(t->nodes, "node", "nodes"));
    column += 2;
    column += top_print(&w, 0, column, m->seen.links_up < m->seen.links ? TOP_BROKEN : TOP_PLAIN,
                        "%zu of %zu %s up", m->seen.links_up, m->seen.links,
                        text_plural(m->seen.links, "link", "links"));
    if (m->seen.capacity.value > 0)
        column += 2 + top_print(&w, 0, column + 2, TOP_FAINT, "100 %% = %s%s",
                                top_text_rate(capacity, m->seen.capacity.value),
                                m->seen.capacity.nominal ? "" : " (seen)");
    const char *right = v->paused ? "paused" : v->time;
    const unsigned length = (unsigned)strlen(right);
    if (length > 0 && length <= s->columns && (v->paused || column + 2 + length <= s->columns))
        (void)top_put(&w, 0, s->columns - length, v->paused ? TOP_BROKEN : TOP_FAINT, false, right);
}

/* Scrolls so that `at` and the cells after it are shown. */
static unsigned scrolled(unsigned from, unsigned at, unsigned extent, unsigned shown,
                         unsigned whole)
{
    if (whole <= shown)
        return 0;
    if (at < from)
        from = at;
    if (at + extent > from + shown)
        from = at + extent - shown;
    return from > whole - shown ? whole - shown : from;
}

static void draw_grid(struct top_screen *s, const struct top_model *m, struct top_view *v,
                      const struct top_layout *l, unsigned row, unsigned rows)
{
    struct top_window w = top_window_make(s, row, 0, rows, s->columns);
    unsigned at_row, at_column;

    if (v->interactive) {
        top_layout_place(l, v->node, &at_row, &at_column);
        v->from_row =
            at_row <= 1 ? 0 : scrolled(v->from_row, at_row, l->cell_height, rows, l->height);
        v->from_column = scrolled(v->from_column, at_column, l->cell_width, s->columns, l->width);
        w.from_row = v->from_row;
        w.from_column = v->from_column;
    }
    top_draw_torus(&w, l, m, v);
}

/* ---- Lists ----------------------------------------------------------------------------------- */

static unsigned list_lines(const struct top_model *m)
{
    const size_t n = m->seen.runs.count + m->seen.fault_count + (m->seen.runs.left_out > 0);

    return n < 1 ? 1 : n > TOP_MOST_ROWS ? TOP_MOST_ROWS : (unsigned)n;
}

static void draw_run(struct top_window *w, unsigned row, const struct run *r, bool chosen)
{
    char text[TOP_TEXT_SIZE];
    const bool failed = r->states[TORUS_STATE_FAILED] > 0 || r->states[TORUS_STATE_IN_DOUBT] > 0 ||
                        r->states[TORUS_STATE_FAILING] > 0;

    (void)top_put(w, row, 0,
                  failed     ? TOP_BROKEN
                  : r->ended ? TOP_FAINT
                             : TOP_PLAIN,
                  chosen, top_text_run(text, r, w->columns));
}

/* Draws runs that are under way, then faults, then runs that have ended. */
static void draw_lists(struct top_screen *s, const struct top_model *m, const struct top_view *v,
                       unsigned first, unsigned rows)
{
    struct top_window w = top_window_make(s, first, 0, rows, s->columns);
    const struct run *chosen =
        v->interactive && v->focus == TOP_FOCUS_RUN ? top_view_run(v, m) : NULL;
    char text[TOP_TEXT_SIZE];
    unsigned row = 0;

    for (size_t i = 0; i < m->seen.runs.count; i++)
        if (!m->seen.runs.run[i].ended)
            draw_run(&w, row++, &m->seen.runs.run[i], &m->seen.runs.run[i] == chosen);
    for (size_t i = 0; i < m->seen.fault_count; i++) {
        top_model_fault_text(m, &m->seen.faults[i], text, sizeof text);
        (void)top_put(&w, row++, 0, TOP_BROKEN, false, text);
    }
    for (size_t i = 0; i < m->seen.runs.count; i++)
        if (m->seen.runs.run[i].ended)
            draw_run(&w, row++, &m->seen.runs.run[i], &m->seen.runs.run[i] == chosen);
    if (row == 0)
        (void)top_put(&w, row++, 0, TOP_FAINT, false, "nothing runs, and no faults are known");
    row += m->seen.runs.left_out > 0;
    if ((row > w.rows && w.rows > 0) || m->seen.runs.left_out > 0) {
        const unsigned last = row > w.rows ? w.rows - 1 : row - 1;
        const size_t more = row - last - 1 + m->seen.runs.left_out + (row > w.rows);
        for (unsigned column = 0; column < w.columns; column++)
            top_put_character(&w, last, column, TOP_PLAIN, false, ' ');
        (void)top_print(&w, last, 0, TOP_FAINT, "and %zu more", more);
    }
}

/* ---- Foot ------------------------------------------------------------------------------------ */

static void chosen_text(char out[TOP_TEXT_SIZE], const struct top_model *m,
                        const struct top_view *v, unsigned columns)
{
    char a[TOP_TEXT_SIZE], b[TOP_TEXT_SIZE], c[TOP_TEXT_SIZE], d[TOP_TEXT_SIZE];
    double sent, received;

    out[0] = '\0';
    if (v->focus == TOP_FOCUS_NODE) {
        top_model_node_rates(m, v->node, &sent, &received);
        if (!all_nodes_answered(&m->seen.now, v->node))
            (void)snprintf(out, TOP_TEXT_SIZE, "%.100s %s", top_text_node(a, m, v->node),
                           all_nodes_missing(&m->seen.now, v->node));
        else
            (void)snprintf(out, TOP_TEXT_SIZE, "%.100s  sends %.30s  receives %.30s",
                           top_text_node(a, m, v->node), top_text_rate(b, sent),
                           top_text_rate(c, received));
    } else if (v->focus == TOP_FOCUS_LINK) {
        const struct observed_link l = observed_link(&m->seen, v->node, v->port);
        if (l.state != LINK_NONE)
            (void)snprintf(out, TOP_TEXT_SIZE, "link %.80s to %.80s  sends %.10s  receives %.10s",
                           top_text_end(a, m, v->node, v->port),
                           top_text_end(b, m, l.neighbour, l.port_there), top_text_load(c, l.away),
                           top_text_load(d, l.towards));
    } else if (top_view_run(v, m) != NULL) {
        (void)top_text_run(out, top_view_run(v, m), columns);
    }
}

static void draw_foot(struct top_screen *s, const struct top_model *m, const struct top_view *v)
{
    static const char *const keys[] = {
        [TOP_PAGE_TORUS] = "arrows: choose  tab: links, runs  enter: details  space: pause  "
                           "?: help  q: quit",
        [TOP_PAGE_DETAILS] = "up, down: scroll  left, right: next  enter: back  space: pause  "
                             "?: help  q: quit",
        [TOP_PAGE_HELP] = "up, down: scroll  enter: back  q: quit",
    };
    struct top_window w = top_window_make(s, s->rows - 1, 0, 1, s->columns);
    char text[TOP_TEXT_SIZE];

    (void)top_put(&w, 0, 0, TOP_FAINT, false, keys[v->page]);
    if (s->rows <= LEAST_ROWS || v->page != TOP_PAGE_TORUS || m->seen.now.state == NULL)
        return;
    w.row--;
    chosen_text(text, m, v, s->columns);
    (void)top_put(&w, 0, 0, TOP_TITLE, false, text);
}

/* ---- Pages ----------------------------------------------------------------------------------- */

/* Draws the torus and the lists between two rows. */
static void draw_body(struct top_screen *s, const struct top_model *m, struct top_view *v,
                      unsigned first, unsigned rows)
{
    const unsigned wanted = list_lines(m);
    unsigned least = wanted < LEAST_LISTS ? wanted : LEAST_LISTS;

    if (least > rows / 3)
        least = rows / 3;
    const unsigned most = rows - least;
    const struct top_layout l = top_layout_make(&m->seen.now.torus, most, s->columns);
    const unsigned grid = l.height < most ? l.height : most;
    v->rows = most;
    v->columns = s->columns;
    draw_grid(s, m, v, &l, first, grid);
    const unsigned gap = rows - grid > wanted; /* an empty line, if there is one to spare */
    draw_lists(s, m, v, first + grid + gap, rows - grid - gap);
}

static void draw_page(struct top_screen *s, const struct top_model *m, struct top_view *v,
                      unsigned first, unsigned rows)
{
    struct top_window w = top_window_make(s, first, 0, rows, s->columns);

    for (unsigned i = 0; i < 2; i++) { /* again if there are fewer lines than were scrolled away */
        w.from_row = v->scroll;
        const unsigned lines =
            v->page == TOP_PAGE_HELP ? top_draw_help(&w) : top_draw_details(&w, m, v);
        const unsigned most = lines > rows ? lines - rows : 0;
        if (v->scroll <= most)
            return;
        v->scroll = most;
    }
}

void top_draw(struct top_screen *s, const struct top_model *m, struct top_view *v)
{
    const unsigned foot = !v->interactive ? 0 : v->page == TOP_PAGE_TORUS ? FOOT : 1;
    unsigned row = 1;

    top_view_check(v, m);
    draw_title(s, m, v);
    if (v->notice[0] != '\0') {
        struct top_window w = top_window_make(s, row++, 0, 1, s->columns);
        (void)top_put(&w, 0, 0, TOP_BROKEN, false, v->notice);
    }
    if (v->interactive)
        draw_foot(s, m, v);
    if (v->page == TOP_PAGE_TORUS && m->seen.now.state != NULL) {
        struct top_window w = top_window_make(s, row++, 0, 1, s->columns);
        top_draw_legend(&w, 0);
    }
    if (s->rows <= row + foot)
        return;
    if (v->page == TOP_PAGE_HELP || (v->page == TOP_PAGE_DETAILS && m->seen.now.state != NULL))
        draw_page(s, m, v, row, s->rows - row - foot);
    else if (m->seen.now.state != NULL)
        draw_body(s, m, v, row, s->rows - row - foot);
}

int top_draw_all(struct top_screen *s, const struct top_model *m, unsigned columns, bool unicode)
{
    const struct top_layout l = top_layout_make(&m->seen.now.torus, TOP_MOST_ROWS, columns);
    struct top_view v = {0};

    /* Nothing is cut: no text is longer than TOP_TEXT_SIZE. */
    if (top_screen_make(s, HEAD + l.height + list_lines(m),
                        l.width > TOP_TEXT_SIZE ? l.width : TOP_TEXT_SIZE, unicode) != 0)
        return -1;
    draw_title(s, m, &v);
    struct top_window legend = top_window_make(s, 1, 0, 1, s->columns);
    top_draw_legend(&legend, 0);
    draw_grid(s, m, &v, &l, HEAD, l.height);
    draw_lists(s, m, &v, HEAD + l.height, list_lines(m));
    return 0;
}
