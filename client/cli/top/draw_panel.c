/* Draws, beside or below the torus if there is room, the rates of the last surveys, and the links that matter most: those
 * on which packets are sent again, then those with the highest loads. */
#include <string.h>

#include "client/cli/top/draw.h"

#define LABEL 11u /* columns of the numbers of the axis, of "500 Mbit/s" and a space */
#define AXIS_LINES 3u
#define LEAST_BARS 3u
#define MOST_BARS 8u
#define EIGHTHS 8u
#define NUMBERS 33u /* columns of the rate, the load, and what is sent again */
#define RATE_COLUMNS 13u
#define LOAD_COLUMNS 8u
#define MOST_LINKS 32u
#define IDLE 0.005 /* load of a link that is not worth a line */

/* ---- Rates ----------------------------------------------------------------------------------- */

/* The lowest of 1, 2, 5, 10, 20 ... bits a second that is not below a rate. Both in bytes a second. */
static double round_up(double rate)
{
    static const double steps[] = {1, 2, 5, 10};
    double power = 1.0 / 8;

    while (power * 10 < rate)
        power *= 10;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (power * steps[i] >= rate)
            return power * steps[i];
    return power * 10;
}

/* Returns the character for a cell of a bar of which that many eighths are filled, from below; more than EIGHTHS fill
 * it. */
static uint32_t bar_cell(const struct top_window *w, unsigned eighths)
{
    if (eighths == 0)
        return ' ';
    if (!w->screen->unicode)
        return eighths >= EIGHTHS / 2 ? '#' : '.';
    return 0x2580 + (eighths < EIGHTHS ? eighths : EIGHTHS);
}

static void draw_bar(struct top_window *w, unsigned row, unsigned column, unsigned rows,
                     double part)
{
    const unsigned whole = rows * EIGHTHS;
    unsigned eighths = (unsigned)(part * whole + 0.5);

    if (part > 0 && eighths == 0)
        eighths = 1;
    for (unsigned i = 0; i < rows; i++) {
        const unsigned below = (rows - 1 - i) * EIGHTHS;
        const unsigned here = eighths <= below ? 0 : eighths - below;
        if (here > 0)
            top_put_character(w, row + i, column, TOP_LOW, false, bar_cell(w, here));
    }
}

/* Draws the rates of all links together over time, with numbers at its axes. Returns the lines. */
static unsigned draw_rates(struct top_window *w, const struct top_model *m,
                           const struct top_view *v, unsigned rows)
{
    const double step = v->interval > 0 ? v->interval : 1, newest = top_model_newest(m);
    const unsigned columns = w->columns - LABEL - 1;
    double rate[TOP_POINTS], most = 0;
    const unsigned count = columns < TOP_POINTS ? columns : TOP_POINTS;
    char text[TOP_TEXT_SIZE];

    (void)top_put(w, 0, 0, TOP_TITLE, false, "all links together");
    if (newest < 0) {
        (void)top_put(w, 1, 0, TOP_FAINT, false, "rates are known after the second survey");
        return 2;
    }
    for (unsigned i = 0; i < count; i++) {
        rate[i] = top_model_rate_at(m, newest - (count - 1 - i) * step, step);
        most = rate[i] > most ? rate[i] : most;
    }
    most = round_up(most);
    (void)top_text_rate(text, most);
    (void)top_put(w, 1, LABEL - 1 - top_text_columns(text), TOP_FAINT, false, text);
    (void)top_put(w, rows, LABEL - 2, TOP_FAINT, false, "0");
    for (unsigned i = 0; i < rows; i++)
        top_put_character(w, 1 + i, LABEL, TOP_FAINT, false, w->screen->unicode ? 0x2502 : '|');
    for (unsigned i = 0; i < count; i++)
        if (rate[i] >= 0)
            draw_bar(w, 1, LABEL + 1 + i, rows, rate[i] / most);
    (void)top_print(w, 1 + rows, LABEL, TOP_FAINT, "%.30s before",
                    top_text_seconds(text, (count - 1) * step));
    const char *right = "last survey";
    (void)top_put(w, 1 + rows, LABEL + 1 + count - top_text_columns(right), TOP_FAINT, false,
                  right);
    return 2 + rows;
}

/* ---- Links ----------------------------------------------------------------------------------- */

/* A direction of a link. */
struct direction {
    uint32_t rank;
    unsigned port;
    double resent, load;
};

static bool is_worse(const struct direction *a, const struct direction *b)
{
    return a->resent > b->resent || (a->resent <= b->resent && a->load > b->load);
}

/* Finds the directions that matter most, in their order. Returns how many there are, at most `most`. */
static unsigned find_links(const struct top_model *m, struct direction *list, unsigned most)
{
    unsigned count = 0;

    for (uint32_t rank = 0; rank < m->seen.now.torus.nodes; rank++)
        for (unsigned port = 0; port < m->seen.ports; port++) {
            const struct observed_link l = observed_link(&m->seen, rank, port);
            if (l.state != LINK_UP)
                continue;
            const struct direction d = {rank, port, l.here->resent > 0 ? l.here->resent : 0,
                                        l.away};
            if (d.resent <= 0 && d.load < IDLE)
                continue;
            unsigned at = count < most ? count++ : most;
            for (; at > 0 && is_worse(&d, &list[at - 1]); at--)
                if (at < most)
                    list[at] = list[at - 1];
            if (at < most)
                list[at] = d;
        }
    return count;
}

static void draw_link(struct top_window *w, unsigned row, const struct top_model *m,
                      const struct direction *d)
{
    const struct observed_link l = observed_link(&m->seen, d->rank, d->port);
    const unsigned name = w->columns - NUMBERS;
    char text[3 * TOP_TEXT_SIZE], from[TOP_TEXT_SIZE], to[TOP_TEXT_SIZE];

    (void)top_text_end(from, m, d->rank, d->port);
    (void)snprintf(to, sizeof to, "%u%s%s", l.neighbour,
                   top_model_host(m, l.neighbour)[0] != '\0' ? " " : "",
                   top_model_host(m, l.neighbour));
    (void)snprintf(text, sizeof text, "%s to %s", from, to);
    (void)top_put_lines(w, row, 0, name - 1, 1, TOP_PLAIN, false, text);
    (void)top_put(w, row, name, TOP_PLAIN, false, top_text_rate(text, l.here->sent));
    (void)top_put(w, row, name + RATE_COLUMNS, TOP_PLAIN, false, top_text_load(text, d->load));
    if (d->resent > 0)
        (void)top_print(w, row, name + RATE_COLUMNS + LOAD_COLUMNS, TOP_BROKEN, "%.*f /s",
                        d->resent < 9.95 ? 1 : 0, d->resent);
}

static void draw_links(struct top_window *w, unsigned row, const struct top_model *m)
{
    const unsigned name = w->columns - NUMBERS;
    struct direction list[MOST_LINKS];
    const unsigned rows = w->rows > row + 1 ? w->rows - row - 1 : 0;
    const unsigned count = find_links(m, list, rows < MOST_LINKS ? rows : MOST_LINKS);

    if (rows == 0)
        return;
    (void)top_put(w, row, 0, TOP_TITLE, false, "links");
    (void)top_put(w, row, name, TOP_FAINT, false, "sent");
    (void)top_put(w, row, name + RATE_COLUMNS, TOP_FAINT, false, "load");
    (void)top_put(w, row, name + RATE_COLUMNS + LOAD_COLUMNS, TOP_FAINT, false, "sent again");
    for (unsigned i = 0; i < count; i++)
        draw_link(w, row + 1 + i, m, &list[i]);
    if (count == 0)
        (void)top_put(w, row + 1, 0, TOP_FAINT, false,
                      m->points > 0 ? "no link carries anything" : "not known yet");
}

void top_draw_panel(const struct top_window *window, const struct top_model *m,
                    const struct top_view *v)
{
    struct top_window w = *window;
    unsigned bars = w.rows > AXIS_LINES ? (w.rows - AXIS_LINES) / 2 : 0;

    bars = bars < LEAST_BARS ? LEAST_BARS : bars > MOST_BARS ? MOST_BARS : bars;
    if (w.columns < TOP_PANEL_COLUMNS || w.rows < TOP_PANEL_ROWS)
        return;
    draw_links(&w, draw_rates(&w, m, v, bars), m);
}
