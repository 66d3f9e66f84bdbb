#include "client/cli/top/view.h"

#include <string.h>

#include "client/cli/top/layout.h"

#define PAGE_LINES 10u
#define MOST_SCROLL 100000u

void top_view_set_time(struct top_view *v, time_t taken)
{
    struct tm broken;

    if (localtime_r(&taken, &broken) != NULL)
        (void)strftime(v->time, sizeof v->time, "%H:%M:%S", &broken);
}

static size_t run_index(const struct top_view *v, const struct top_model *m)
{
    for (size_t i = 0; i < m->seen.runs.count; i++)
        if (m->seen.runs.run[i].kind == v->run_kind && strcmp(m->seen.runs.run[i].id, v->run) == 0)
            return i;
    return 0;
}

const struct run *top_view_run(const struct top_view *v, const struct top_model *m)
{
    return m->seen.runs.count > 0 ? &m->seen.runs.run[run_index(v, m)] : NULL;
}

static void choose_run(struct top_view *v, const struct top_model *m, size_t i)
{
    (void)snprintf(v->run, sizeof v->run, "%s", m->seen.runs.run[i].id);
    v->run_kind = m->seen.runs.run[i].kind;
}

/* Chooses the next port with a cable, `step` 1 or -1. Returns whether there is one. */
static bool next_port(struct top_view *v, const struct top_model *m, unsigned from, int step)
{
    const unsigned ports = torus_ports(&m->seen.now.torus);

    for (unsigned i = 0; i < ports; i++) {
        const unsigned port = (from + (step > 0 ? i : ports - i)) % ports;
        if (torus_neighbour(&m->seen.now.torus, v->node, port) == TORUS_NO_NODE)
            continue;
        v->port = port;
        return true;
    }
    return false;
}

void top_view_check(struct top_view *v, const struct top_model *m)
{
    if (m->seen.now.state == NULL)
        return;
    if (v->node >= m->seen.now.torus.nodes)
        v->node = 0;
    const bool port = next_port(v, m, v->port % (torus_ports(&m->seen.now.torus) + 1), 1);
    if (v->focus == TOP_FOCUS_LINK && !port)
        v->focus = TOP_FOCUS_NODE;
    if (v->focus == TOP_FOCUS_RUN && m->seen.runs.count == 0) {
        v->focus = TOP_FOCUS_NODE;
        v->page = v->page == TOP_PAGE_DETAILS ? TOP_PAGE_TORUS : v->page;
    }
}

static void move(struct top_view *v, const struct top_model *m, int down, int across)
{
    const struct top_layout l = top_layout_make(&m->seen.now.torus, v->rows, v->columns);
    const unsigned ports = torus_ports(&m->seen.now.torus);
    const int step = down + across;

    if (v->focus == TOP_FOCUS_NODE) {
        v->node = top_layout_move(&l, v->node, down, across);
    } else if (v->focus == TOP_FOCUS_LINK) {
        (void)next_port(v, m, step > 0 ? (v->port + 1) % ports : (v->port + ports - 1) % ports,
                        step);
    } else {
        const size_t i = run_index(v, m);
        if (step > 0 ? i + 1 < m->seen.runs.count : i > 0)
            choose_run(v, m, step > 0 ? i + 1 : i - 1);
    }
}

static void scroll(struct top_view *v, int lines)
{
    if (lines < 0)
        v->scroll = v->scroll > (unsigned)-lines ? v->scroll - (unsigned)-lines : 0;
    else if (v->scroll < MOST_SCROLL)
        v->scroll += (unsigned)lines;
}

static void turn_focus(struct top_view *v, const struct top_model *m, unsigned step)
{
    v->focus = (enum top_focus)((v->focus + step) % TOP_FOCUSES);
    if (v->focus == TOP_FOCUS_RUN && m->seen.runs.count == 0)
        v->focus = step == 1 ? TOP_FOCUS_NODE : TOP_FOCUS_LINK;
    v->scroll = 0;
    top_view_check(v, m);
}

static void open_page(struct top_view *v, enum top_page page)
{
    v->page = v->page == page ? TOP_PAGE_TORUS : page;
    v->scroll = 0;
}

static void arrow(struct top_view *v, const struct top_model *m, int down, int across)
{
    if (v->page == TOP_PAGE_TORUS)
        move(v, m, down, across);
    else if (v->page == TOP_PAGE_DETAILS && across != 0)
        move(v, m, 0, across);
    else
        scroll(v, down);
}

bool top_view_key(struct top_view *v, const struct top_model *m, enum top_key key)
{
    if (key == TOP_KEY_QUIT && v->page == TOP_PAGE_TORUS)
        return false;
    if (key == TOP_KEY_HELP)
        open_page(v, TOP_PAGE_HELP);
    if (key == TOP_KEY_PAUSE)
        v->paused = !v->paused;
    if (key == TOP_KEY_ESCAPE || key == TOP_KEY_QUIT ||
        (key == TOP_KEY_ENTER && v->page == TOP_PAGE_HELP))
        open_page(v, TOP_PAGE_TORUS);
    else if (key == TOP_KEY_ENTER)
        open_page(v, TOP_PAGE_DETAILS);
    if (key == TOP_KEY_PAGE_UP || key == TOP_KEY_PAGE_DOWN)
        scroll(v, key == TOP_KEY_PAGE_UP ? -(int)PAGE_LINES : (int)PAGE_LINES);
    if (m->seen.now.state == NULL)
        return true;
    if (key == TOP_KEY_UP || key == TOP_KEY_DOWN)
        arrow(v, m, key == TOP_KEY_UP ? -1 : 1, 0);
    if (key == TOP_KEY_LEFT || key == TOP_KEY_RIGHT)
        arrow(v, m, 0, key == TOP_KEY_LEFT ? -1 : 1);
    if (key == TOP_KEY_TAB || key == TOP_KEY_BACK_TAB)
        turn_focus(v, m, key == TOP_KEY_TAB ? 1 : TOP_FOCUSES - 1);
    top_view_check(v, m);
    return true;
}
