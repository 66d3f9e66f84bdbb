#include <stdarg.h>
#include <string.h>

#include "client/cli/drawing/node_positions.h"
#include "client/cli/terminal/writer.h"
#include "client/cli/top/draw.h"
#include "proto/text.h"

#define BAR 12u

_Static_assert(TOP_TEXT_SIZE >= FORMAT_SIZE, "texts are formatted in place");

const char *top_text_rate(char out[TOP_TEXT_SIZE], double bytes_per_second)
{
    if (bytes_per_second < 0)
        (void)snprintf(out, TOP_TEXT_SIZE, "-");
    else
        format_rate(out, bytes_per_second * 8);
    return out;
}

const char *top_text_bytes(char out[TOP_TEXT_SIZE], uint64_t bytes)
{
    format_bytes(out, (double)bytes);
    return out;
}

const char *top_text_seconds(char out[TOP_TEXT_SIZE], double seconds)
{
    format_seconds(out, seconds);
    return out;
}

const char *top_text_load(char out[TOP_TEXT_SIZE], double load)
{
    if (load < 0)
        (void)snprintf(out, TOP_TEXT_SIZE, "-");
    else
        (void)snprintf(out, TOP_TEXT_SIZE, "%.0f %%", load * 100);
    return out;
}

static void add(char out[TOP_TEXT_SIZE], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add(char out[TOP_TEXT_SIZE], const char *format, ...)
{
    const size_t used = strlen(out);
    va_list ap;

    va_start(ap, format);
    (void)vsnprintf(out + used, TOP_TEXT_SIZE - used, format, ap);
    va_end(ap);
}

static void add_bar(char out[TOP_TEXT_SIZE], double part)
{
    char bar[BAR + 1] = "";

    for (unsigned i = 0; i < BAR; i++)
        bar[i] = (double)i + 0.5 < part * BAR ? '=' : ' ';
    add(out, " [%s]", bar);
}

static void add_group(char out[TOP_TEXT_SIZE], const struct run *r)
{
    if (r->missing[0] != '\0')
        add(out, "  waiting for %s %.60s", strchr(r->missing, ',') != NULL ? "nodes" : "node",
            r->missing);
    else if (r->open < r->nodes)
        add(out, "  being opened");
    else
        add(out, "  open on %u %s", r->nodes, text_plural(r->nodes, "node", "nodes"));
    add(out, "  %llu calls done", (unsigned long long)r->calls_done);
    if (r->call_rate >= 0)
        add(out, "  %.*f calls/s", r->call_rate < 10 ? 1 : 0, r->call_rate);
}

static void run_text(char out[TOP_TEXT_SIZE], const struct run *r, bool bar)
{
    char text[TOP_TEXT_SIZE];

    (void)snprintf(out, TOP_TEXT_SIZE, "%s %.30s", run_kind_name(r->kind), r->id);
    if (r->kind == RUN_GROUP) {
        add_group(out, r);
    } else {
        add(out, "  %.40s  %.60s", r->what, run_state(r, text, sizeof text));
        if (r->part >= 0 && !r->ended && bar)
            add_bar(out, r->part);
        if (r->part >= 0 && !r->ended)
            add(out, " %3d %%", (int)(r->part * 100));
    }
    if (r->rate > 0 && !r->ended)
        add(out, "  %.20s/s", top_text_bytes(text, (uint64_t)r->rate));
    if (r->left >= 0)
        add(out, "  %.30s left",
            top_text_seconds(text, r->left < 10 ? r->left : (double)(uint64_t)(r->left + 0.5)));
    if (r->kind != RUN_GROUP && run_reason(r, text, sizeof text)[0] != '\0')
        add(out, "  %s", text);
}

const char *top_text_run(char out[TOP_TEXT_SIZE], const struct run *r, unsigned columns)
{
    run_text(out, r, true);
    if (strlen(out) > columns)
        run_text(out, r, false);
    return out;
}

const char *top_text_node(char out[TOP_TEXT_SIZE], const struct top_model *m, uint32_t rank)
{
    char at[COORDINATES_SIZE];

    (void)snprintf(out, TOP_TEXT_SIZE, "node %u %s", rank,
                   coordinates_text(&m->seen.now.torus, rank, NULL, at, sizeof at));
    if (top_model_host(m, rank)[0] != '\0')
        add(out, " %s", top_model_host(m, rank));
    return out;
}

const char *top_text_end(char out[TOP_TEXT_SIZE], const struct top_model *m, uint32_t rank,
                         unsigned port)
{
    char name[TORUS_PORT_NAME_SIZE];

    (void)snprintf(out, TOP_TEXT_SIZE, "%u:%s", rank,
                   torus_port_name(&m->seen.now.torus, rank, port, name));
    if (top_model_host(m, rank)[0] != '\0')
        add(out, " %s", top_model_host(m, rank));
    return out;
}
