#include "client/cli/drawing/chart.h"

#include <math.h>
#include <string.h>

#include "client/cli/drawing/svg.h"

enum {
    PANEL_WIDTH = 420,
    PANEL_HEIGHT = 380,
    LEFT = 64, /* of a panel, for the numbers */
    TOP = 64,
    BOTTOM = 48,
    GAP = 24, /* between panels */
    LEGEND = 230,
    LINE = 17,
    NAMES_MOST = 128,
};

/* The range of an axis, in powers of ten. */
struct axis {
    double low, high;
    int at, length; /* on the page; a negative length goes up */
};

struct legend {
    const struct chart_series *series[NAMES_MOST]; /* the first of each name */
    size_t count;
};

static bool is_drawn(const struct chart_point *p)
{
    return p->x > 0 && p->y > 0;
}

static double place(const struct axis *a, double value)
{
    return a->at + a->length * (log10(value) - a->low) / (a->high - a->low);
}

/* Finds the ranges of all points of a panel. */
static void find_axes(const struct chart_panel *p, struct axis *x, struct axis *y)
{
    x->low = y->low = INFINITY;
    x->high = y->high = -INFINITY;
    for (const struct chart_series *s = p->series; s < p->series + p->count; s++) {
        for (const struct chart_point *at = s->points; at < s->points + s->count; at++) {
            if (!is_drawn(at))
                continue;
            x->low = fmin(x->low, log10(at->x));
            x->high = fmax(x->high, log10(at->x));
            y->low = fmin(y->low, log10(at->y));
            y->high = fmax(y->high, log10(at->y));
        }
    }
    if (!(x->low <= x->high))
        x->low = y->low = x->high = y->high = 0;
    x->low -= 0.05;
    x->high += 0.05;
    y->low = floor(y->low);
    y->high = fmax(ceil(y->high), y->low + 1);
}

/* Lines and numbers at powers of ten, or at 1, 2 and 5 times these if the axis is short. */
static void draw_grid(FILE *out, const struct axis *a, const struct axis *across, bool upright)
{
    static const double steps[] = {1, 2, 5};
    const size_t used = a->high - a->low > 2.5 ? 1 : 3;

    for (int decade = (int)floor(a->low); decade <= (int)ceil(a->high); decade++) {
        for (size_t i = 0; i < used; i++) {
            const double value = steps[i] * pow(10, decade), at = place(a, value);
            if (log10(value) < a->low - 1e-9 || log10(value) > a->high + 1e-9)
                continue;
            if (upright)
                (void)fprintf(out,
                              "<path d='M%.1f %dv%d' class='grid'/>"
                              "<text x='%.1f' y='%d' text-anchor='middle'>%.7g</text>\n",
                              at, across->at, across->length, at, across->at + 18, value);
            else
                (void)fprintf(out,
                              "<path d='M%d %.1fh%d' class='grid'/>"
                              "<text x='%d' y='%.1f' text-anchor='end'>%.7g</text>\n",
                              across->at, at, across->length, across->at - 6, at + 4, value);
        }
    }
}

static size_t index_of(const struct legend *l, const char *name)
{
    size_t i = 0;

    while (i < l->count && strcmp(l->series[i]->name, name) != 0)
        i++;
    return i;
}

static void fill_legend(struct legend *l, const struct chart_panel *panels, size_t count)
{
    l->count = 0;
    for (const struct chart_panel *p = panels; p < panels + count; p++)
        for (size_t i = 0; i < p->count && l->count < NAMES_MOST; i++)
            if (index_of(l, p->series[i].name) == l->count)
                l->series[l->count++] = &p->series[i];
}

/* Colours as far apart as the golden angle makes them; bounds are grey. */
static void put_style(FILE *out, const struct legend *l, const struct chart_series *s)
{
    const size_t i = index_of(l, s->name);

    if (s->is_bound)
        (void)fprintf(out, "stroke='#888' stroke-dasharray='5 4'");
    else
        (void)fprintf(out, "stroke='hsl(%u,70%%,%u%%)'", (unsigned)(i * 137 % 360),
                      i % 2 == 0 ? 42u : 55u);
}

static void draw_series(FILE *out, const struct legend *l, const struct chart_series *s,
                        const struct axis *x, const struct axis *y)
{
    bool begun = false;
    char name[256];

    svg_escape(name, sizeof name, s->name);
    (void)fprintf(out, "<g class='line' ");
    put_style(out, l, s);
    (void)fprintf(out, "><title>%s</title><path d='", name);
    for (const struct chart_point *at = s->points; at < s->points + s->count; at++) {
        if (!is_drawn(at))
            continue;
        (void)fprintf(out, "%c%.1f %.1f", begun ? 'L' : 'M', place(x, at->x), place(y, at->y));
        begun = true;
    }
    (void)fprintf(out, "'/>");
    for (const struct chart_point *at = s->points; at < s->points + s->count && !s->is_bound; at++)
        if (is_drawn(at))
            (void)fprintf(out, "<circle cx='%.1f' cy='%.1f' r='2.5'/>", place(x, at->x),
                          place(y, at->y));
    (void)fprintf(out, "</g>\n");
}

static void draw_panel(FILE *out, const struct legend *l, const struct chart_panel *p, int left)
{
    struct axis x = {.at = left + LEFT, .length = PANEL_WIDTH - LEFT},
                y = {.at = TOP + PANEL_HEIGHT, .length = -PANEL_HEIGHT};
    char title[256], label[256];

    find_axes(p, &x, &y);
    svg_escape(title, sizeof title, p->title);
    svg_escape(label, sizeof label, p->x_label);
    (void)fprintf(out,
                  "<text x='%d' y='%d' class='title'>%s</text>"
                  "<text x='%d' y='%d' text-anchor='middle'>%s</text>\n",
                  x.at, TOP - 12, title, x.at + x.length / 2, TOP + PANEL_HEIGHT + 38, label);
    draw_grid(out, &x, &y, true);
    draw_grid(out, &y, &x, false);
    for (size_t i = 0; i < p->count; i++)
        draw_series(out, l, &p->series[i], &x, &y);
}

static void draw_legend(FILE *out, const struct legend *l, int left)
{
    char name[256];

    for (size_t i = 0; i < l->count; i++) {
        const int y = TOP + 8 + (int)i * LINE;
        svg_escape(name, sizeof name, l->series[i]->name);
        (void)fprintf(out, "<g class='line' ");
        put_style(out, l, l->series[i]);
        (void)fprintf(out, "><path d='M%d %dh24'/></g><text x='%d' y='%d'>%s%s</text>\n", left, y,
                      left + 32, y + 4, l->series[i]->is_bound ? "bound, " : "", name);
    }
}

void chart_draw(FILE *out, const char *title, const struct chart_panel *panels, size_t count)
{
    struct legend legend;
    const int width = (int)count * (PANEL_WIDTH + GAP) + LEGEND;
    char text[256];

    fill_legend(&legend, panels, count);
    const int lines = TOP + 16 + (int)legend.count * LINE, axes = TOP + PANEL_HEIGHT + BOTTOM;
    const int height = lines > axes ? lines : axes;
    svg_escape(text, sizeof text, title);
    (void)fprintf(out,
                  "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' "
                  "viewBox='0 0 %d %d' font-family='sans-serif' font-size='12'>\n"
                  "<title>%s</title>\n<style>.grid{stroke:#ddd;fill:none}"
                  ".line{fill:none;stroke-width:1.6}.title{font-weight:bold}</style>\n"
                  "<rect width='%d' height='%d' fill='#fff'/>\n"
                  "<text x='%d' y='24' font-size='15'>%s</text>\n",
                  width, height, width, height, text, width, height, LEFT, text);
    for (size_t i = 0; i < count; i++)
        draw_panel(out, &legend, &panels[i], (int)i * (PANEL_WIDTH + GAP));
    draw_legend(out, &legend, (int)count * (PANEL_WIDTH + GAP) + 8);
    (void)fputs("</svg>\n", out);
}
