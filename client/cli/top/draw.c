#include "client/cli/top/draw.h"

#include <string.h>

#include "client/cli/terminal/writer.h"
#include "proto/text.h"

#define FOOT 2u        /* lines below the lists: what is chosen, and keys */
#define LEAST_LISTS 3u /* lines for what runs and for faults, if they need this many */
#define LEAST_ROWS 3u
#define NOTICE_LINES 3u
#define KEYS 6u
#define OLD_SURVEYS 3 /* a view is old when this many surveys */
#define OLD_SECONDS 2 /* and this many seconds have passed since */
#define PANEL_GAP 3u  /* columns between the torus and the panel */
#define PANEL_MOST_ROWS 20u

/* Draws a part of the title, if there is room for all of it before `end`. Returns the column after it. */
static unsigned put_part(struct top_window *w, unsigned column, unsigned end, enum top_look look,
                         const char *text)
{
    const unsigned gap = column > 0 ? 2 : 0, length = top_text_columns(text);

    if (length == 0 || column + gap + length > end)
        return column;
    return column + gap + top_put(w, 0, column + gap, look, false, text);
}

/* Writes how old the view is, and the time of day; nothing if it is not known. */
static void age_text(char out[TOP_TEXT_SIZE], const struct top_view *v)
{
    char age[TOP_TEXT_SIZE];

    out[0] = '\0';
    if (v->time[0] == '\0')
        return;
    if (v->age < 60)
        (void)snprintf(age, sizeof age, "%.0f s", v->age > 0 ? (double)(unsigned)v->age : 0);
    else
        (void)top_text_seconds(age, (double)(uint64_t)v->age);
    (void)snprintf(out, TOP_TEXT_SIZE, "%s%.30s old  %s", v->paused ? "paused, " : "", age,
                   v->time);
}

/* Draws how old the view is at the right, with the time of day if there is room beside `needed` columns. Returns the
 * columns that are left of it. */
static unsigned draw_age(struct top_window *w, const struct top_view *v, unsigned needed)
{
    const bool old = v->paused || v->age > OLD_SURVEYS * v->interval + OLD_SECONDS;
    char text[TOP_TEXT_SIZE];

    age_text(text, v);
    if (text[0] == '\0')
        return w->columns;
    if (needed + 2 + top_text_columns(text) > w->columns)
        text[strlen(text) - strlen(v->time) - 2] = '\0';
    const unsigned length = top_text_columns(text);
    if (length > w->columns)
        return w->columns;
    (void)top_put(w, 0, w->columns - length, old ? TOP_BROKEN : TOP_FAINT, false, text);
    return w->columns > length + 2 ? w->columns - length - 2 : 0;
}

#define TITLE_PARTS 4u

/* Writes the parts of the title: the torus, nodes, links, and what 100 % is, if it is known. */
static void title_parts(char part[TITLE_PARTS][TOP_TEXT_SIZE], const struct observed *o)
{
    const struct torus *t = &o->now.torus;
    char rate[TOP_TEXT_SIZE];

    (void)torus_format(t, part[0]);
    (void)snprintf(part[1], TOP_TEXT_SIZE, "%zu of %u %s", o->answered, t->nodes,
                   text_plural(t->nodes, "node", "nodes"));
    (void)snprintf(part[2], TOP_TEXT_SIZE, "%zu of %zu %s up", o->links_up, o->links,
                   text_plural(o->links, "link", "links"));
    part[3][0] = '\0';
    if (o->capacity.value > 0)
        (void)snprintf(part[3], TOP_TEXT_SIZE, "100 %% = %.30s%s",
                       top_text_rate(rate, o->capacity.value),
                       o->capacity.nominal ? "" : " (seen)");
}

static void draw_title(struct top_screen *s, const struct top_model *m, const struct top_view *v)
{
    struct top_window w = top_window_make(s, 0, 0, 1, s->columns);
    const struct observed *o = &m->seen;
    char part[TITLE_PARTS][TOP_TEXT_SIZE];
    unsigned column = 0, needed = 0;

    if (o->now.state == NULL) {
        (void)top_put(&w, 0, 0, TOP_TITLE, false, "torusctl top");
        return;
    }
    const enum top_look look[TITLE_PARTS] = {
        TOP_TITLE, o->answered < o->now.torus.nodes ? TOP_BROKEN : TOP_PLAIN,
        o->links_up < o->links ? TOP_BROKEN : TOP_PLAIN, TOP_FAINT};
    title_parts(part, o);
    for (unsigned i = 0; i < TITLE_PARTS; i++)
        needed += top_text_columns(part[i]) + 2;
    const unsigned end = draw_age(&w, v, needed - 2);
    for (unsigned i = 0; i < TITLE_PARTS; i++)
        column = put_part(&w, column, end, look[i], part[i]);
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

struct entry {
    enum top_look look;
    bool chosen;
    char text[TOP_TEXT_SIZE];
};

static size_t count_entries(const struct top_model *m)
{
    return m->seen.runs.count + m->seen.fault_count;
}

static void make_run(struct entry *e, const struct run *r, bool chosen, unsigned columns)
{
    e->look = run_has_failed(r) ? TOP_BROKEN : r->ended ? TOP_FAINT : TOP_PLAIN;
    e->chosen = chosen;
    (void)top_text_run(e->text, r, columns);
}

/* Makes an entry: runs under way come first, then faults, then runs that have ended. */
static void make_entry(struct entry *e, const struct top_model *m, const struct top_view *v,
                       size_t index, unsigned columns)
{
    const struct runs *runs = &m->seen.runs;
    const struct run *chosen =
        v->interactive && v->focus == TOP_FOCUS_RUN ? top_view_run(v, m) : NULL;
    size_t going = 0;

    for (size_t i = 0; i < runs->count; i++)
        going += !runs->run[i].ended;
    if (index >= going && index < going + m->seen.fault_count) {
        *e = (struct entry){.look = TOP_BROKEN};
        top_model_fault_text(m, &m->seen.faults[index - going], e->text, sizeof e->text);
        return;
    }
    const bool ended = index >= going;
    size_t before = ended ? index - going - m->seen.fault_count : index;
    for (size_t i = 0; i < runs->count; i++)
        if (runs->run[i].ended == ended && before-- == 0) {
            make_run(e, &runs->run[i], &runs->run[i] == chosen, columns);
            return;
        }
}

/* The lines that all lists need if no text is cut; at most TOP_MOST_ROWS. */
static unsigned list_lines(const struct top_model *m, const struct top_view *v, unsigned columns)
{
    const size_t entries = count_entries(m);
    unsigned lines = m->seen.runs.left_out > 0;
    struct entry e;

    if (entries + lines >= TOP_MOST_ROWS)
        return TOP_MOST_ROWS;
    for (size_t i = 0; i < entries && lines < TOP_MOST_ROWS; i++) {
        make_entry(&e, m, v, i, columns);
        lines += top_count_lines(e.text, columns);
    }
    return lines < 1 ? 1 : lines < TOP_MOST_ROWS ? lines : TOP_MOST_ROWS;
}

/* Draws the lists. If there is not room for all lines, each entry has one, the first ones more while there is room, and
 * the last line says how many entries are left out. */
static void draw_lists(struct top_screen *s, const struct top_model *m, const struct top_view *v,
                       unsigned first, unsigned rows, unsigned columns)
{
    struct top_window w = top_window_make(s, first, 0, rows, columns);
    const size_t entries = count_entries(m), left_out = m->seen.runs.left_out;
    const unsigned closing = left_out > 0 || entries > w.rows;
    unsigned row = 0;
    struct entry e;

    if (w.rows == 0)
        return;
    if (entries + left_out == 0)
        (void)top_put(&w, 0, 0, TOP_FAINT, false, "nothing runs, and no faults are known");
    const size_t shown = entries < w.rows - closing ? entries : w.rows - closing;
    unsigned spare = w.rows - closing - (unsigned)shown;
    for (size_t i = 0; i < shown; i++) {
        make_entry(&e, m, v, i, w.columns);
        const unsigned used =
            top_put_lines(&w, row, 0, w.columns, 1 + spare, e.look, e.chosen, e.text);
        row += used;
        spare -= used - 1;
    }
    if (closing)
        (void)top_print(&w, row, 0, TOP_FAINT, "and %zu more", entries - shown + left_out);
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

/* Draws the keys of a page. Where there is little room, help and the end are kept. */
static void draw_keys(struct top_window *w, enum top_page page)
{
    static const char *const keys[][KEYS] = {
        [TOP_PAGE_TORUS] = {"arrows: choose", "tab: links, runs", "enter: details", "space: pause",
                            "?: help", "q: quit"},
        [TOP_PAGE_DETAILS] = {"up, down: scroll", "left, right: next", "space: pause",
                              "enter, q: back", "?: help", ""},
        [TOP_PAGE_HELP] = {"up, down: scroll", "enter, q: back", "", "", "", ""},
    };
    unsigned count = 0, kept = 0, length = 0, column = 0;

    while (count < KEYS && keys[page][count][0] != '\0')
        length += 2 + (unsigned)strlen(keys[page][count++]);
    for (kept = count; kept > 2 && length > w->columns + 2;)
        length -= 2 + (unsigned)strlen(keys[page][--kept - 2]);
    for (unsigned i = 0; i < kept; i++) /* the last two, whatever is left out before them */
        column = put_part(w, column, w->columns, TOP_FAINT,
                          keys[page][i + 2 < kept ? i : count - kept + i]);
}

static void draw_foot(struct top_screen *s, const struct top_model *m, const struct top_view *v)
{
    struct top_window w = top_window_make(s, s->rows - 1, 0, 1, s->columns);
    char text[TOP_TEXT_SIZE];

    draw_keys(&w, v->page);
    if (s->rows <= LEAST_ROWS || v->page != TOP_PAGE_TORUS || m->seen.now.state == NULL)
        return;
    w.row--;
    chosen_text(text, m, v, s->columns);
    (void)top_put_lines(&w, 0, 0, s->columns, 1, TOP_TITLE, false, text);
}

/* ---- Pages ----------------------------------------------------------------------------------- */

/* Draws the torus and the lists between two rows, and the panel beside the torus or below the lists, if there is room. */
static void draw_body(struct top_screen *s, const struct top_model *m, struct top_view *v,
                      unsigned first, unsigned rows)
{
    const unsigned wanted = list_lines(m, v, s->columns);
    unsigned least = wanted < LEAST_LISTS ? wanted : LEAST_LISTS;

    if (least > rows / 3)
        least = rows / 3;
    const unsigned most = rows - least;
    const struct top_layout l = top_layout_make(&m->seen.now.torus, most, s->columns);
    unsigned grid = l.height < most ? l.height : most;
    v->rows = most;
    v->columns = s->columns;
    draw_grid(s, m, v, &l, first, grid);
    const bool beside = s->columns >= l.width + PANEL_GAP + TOP_PANEL_COLUMNS;
    if (beside) {
        const unsigned spare = rows > wanted + 1 ? rows - wanted - 1 : 0;
        const unsigned high = spare < PANEL_MOST_ROWS ? spare : PANEL_MOST_ROWS;
        grid = high > grid ? high : grid;
        const struct top_window w =
            top_window_make(s, first, l.width + PANEL_GAP, grid, s->columns);
        if (grid >= TOP_PANEL_ROWS)
            top_draw_panel(&w, m, v);
    }
    const unsigned gap = rows - grid > wanted; /* an empty line, if there is one to spare */
    draw_lists(s, m, v, first + grid + gap, rows - grid - gap, s->columns);
    const unsigned used = grid + gap + wanted + 1;
    if (!beside && s->columns >= TOP_PANEL_COLUMNS && used + TOP_PANEL_ROWS <= rows) {
        const struct top_window w = top_window_make(s, first + used, 0, rows - used, s->columns);
        top_draw_panel(&w, m, v);
    }
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
        struct top_window w = top_window_make(s, row, 0, NOTICE_LINES, s->columns);
        row += top_put_lines(&w, 0, 0, s->columns, NOTICE_LINES, TOP_BROKEN, false, v->notice);
    }
    if (v->interactive)
        draw_foot(s, m, v);
    if (v->page == TOP_PAGE_TORUS && m->seen.now.state != NULL) {
        struct top_window w = top_window_make(s, row++, 0, 1, s->columns);
        (void)top_draw_legend(&w, 0);
    }
    if (s->rows <= row + foot)
        return;
    if (v->page == TOP_PAGE_HELP || (v->page == TOP_PAGE_DETAILS && m->seen.now.state != NULL))
        draw_page(s, m, v, row, s->rows - row - foot);
    else if (m->seen.now.state != NULL)
        draw_body(s, m, v, row, s->rows - row - foot);
}

/* ---- All of it ------------------------------------------------------------------------------- */

/* Writes the whole title, with the age of the view. */
static void title_text(char out[TOP_TEXT_SIZE], const struct top_model *m, const struct top_view *v)
{
    char part[TITLE_PARTS + 1][TOP_TEXT_SIZE];
    size_t used = 0;

    out[0] = '\0';
    title_parts(part, &m->seen);
    age_text(part[TITLE_PARTS], v);
    for (unsigned i = 0; i <= TITLE_PARTS; i++)
        if (part[i][0] != '\0')
            used += (size_t)snprintf(out + used, TOP_TEXT_SIZE - used, "%s%.90s",
                                     used > 0 ? "  " : "", part[i]);
}

/* A torus that is wider than a terminal is drawn in parts, with some columns of nodes each. */
struct parts {
    unsigned columns, count;
};

static struct parts divide(const struct top_layout *l, unsigned columns)
{
    if (l->width <= columns || l->cell_width > columns)
        return (struct parts){l->width, 1};
    const unsigned most = columns / l->cell_width * l->cell_width;
    return (struct parts){most, (l->width + most - 1) / most};
}

int top_draw_all(struct top_screen *s, const struct top_model *m, const struct top_view *view,
                 unsigned columns, bool wrapped, bool unicode)
{
    const struct top_layout l = top_layout_make(&m->seen.now.torus, TOP_MOST_ROWS, columns);
    struct top_screen unmade = {.unicode = unicode};
    struct top_window nothing = {.screen = &unmade};
    struct top_view v = *view;
    char title[TOP_TEXT_SIZE];

    /* No text is longer than TOP_TEXT_SIZE. */
    const unsigned wide = wrapped ? columns : TOP_TEXT_SIZE;
    const struct parts parts = wrapped ? divide(&l, columns) : (struct parts){l.width, 1};
    nothing.columns = wide;
    title_text(title, m, &v);
    const unsigned title_lines = top_count_lines(title, wide);
    const unsigned head = title_lines + top_draw_legend(&nothing, 0);
    const unsigned lines = list_lines(m, &v, wide), grid = parts.count * (l.height + 1);
    if (top_screen_make(s, head + grid + lines, wide > parts.columns ? wide : parts.columns,
                        unicode) != 0)
        return -1;
    struct top_window w = top_window_make(s, 0, 0, head, wide);
    (void)top_put_lines(&w, 0, 0, wide, title_lines, TOP_TITLE, false, title);
    (void)top_draw_legend(&w, title_lines);
    for (unsigned i = 0; i < parts.count; i++) {
        w = top_window_make(s, head + i * (l.height + 1), 0, l.height, parts.columns);
        w.from_column = i * parts.columns;
        top_draw_torus(&w, &l, m, &v);
    }
    draw_lists(s, m, &v, head + grid, lines, wide);
    return 0;
}
