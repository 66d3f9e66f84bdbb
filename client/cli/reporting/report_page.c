#include "client/cli/reporting/report_page.h"

#include "client/cli/reporting/report_texts.h"
#include "client/cli/tracing/trace_file.h"
#include "client/cli/web/page.h"
#include "client/cli/web/web_texts.h"

static json_t *findings_value(const struct trace_data *d)
{
    struct finding found[FINDINGS_MOST];
    unsigned count = findings_make(d, found);
    json_t *list = json_array();

    for (unsigned i = 0; i < count; i++)
        (void)json_array_append_new(
            list, json_pack("{s:s, s:I, s:f, s:s}", "kind", finding_name(found[i].kind), "node",
                            found[i].node != TORUS_NO_NODE ? (json_int_t)found[i].node : -1,
                            "seconds", found[i].seconds, "text", found[i].text));
    return list;
}

/* The part of the time of all ports, by state. */
static json_t *shares_value(const struct trace_data *d)
{
    double sum[TORUS_TRACE_STATES] = {0}, all = 0;
    json_t *list = json_array();

    for (uint32_t node = 0; node < d->torus.nodes; node++)
        for (unsigned port = 0; d->node[node].traced && port < torus_ports(&d->torus); port++)
            for (unsigned s = 0;
                 d->node[node].port[port].neighbour != TORUS_NO_NODE && s < TORUS_TRACE_STATES;
                 s++) {
                sum[s] += d->node[node].port[port].state[s];
                all += d->node[node].port[port].state[s];
            }
    for (unsigned s = 0; s < TORUS_TRACE_STATES; s++)
        (void)json_array_append_new(list, json_pack("{s:s, s:f}", "ports",
                                                    trace_state_name((enum torus_trace_state)s),
                                                    "share", all > 0 ? sum[s] / all : 0));
    return list;
}

/* Returns the facts about the run that the page shows. Members of a wrong type are left out. */
static json_t *run_value(const struct trace_data *d)
{
    static const char *const numbers[] = {"seconds", "bound_seconds", "predicted_seconds"};
    static const char *const texts[] = {"operation", "algorithm"};
    const json_t *run = json_object_get(d->own, "run");
    json_t *o = json_object(), *value;

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (json_is_number(value = json_object_get(run, numbers[i])))
            (void)json_object_set(o, numbers[i], value);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (json_is_string(value = json_object_get(run, texts[i])))
            (void)json_object_set(o, texts[i], value);
    return o;
}

/* The parts of the trace that have been checked: whatever else the file has does not come to the page. */
static json_t *trace_value(const struct trace_data *d)
{
    const json_t *from = json_object_get(d->own, "nodes");
    json_t *nodes = json_array(), *states = json_array();

    for (uint32_t node = 0; node < d->torus.nodes; node++) {
        /* A copy: the names of *d are texts of the original. */
        json_t *o = d->node[node].traced ? json_copy(json_array_get(from, node))
                                         : json_pack("{s:s}", "name", d->node[node].name);
        if (d->node[node].traced)
            (void)json_object_set_new(o, "name", json_string(d->node[node].name));
        (void)json_array_append_new(nodes, o);
    }
    for (unsigned s = 0; s < TORUS_TRACE_STATES; s++)
        (void)json_array_append_new(states,
                                    json_string(trace_state_name((enum torus_trace_state)s)));
    return json_pack("{s:s, s:f, s:f, s:o, s:o, s:o}", "id", d->id, "seconds", d->seconds,
                     "clock_error", d->clock_error, "run", run_value(d), "states", states, "nodes",
                     nodes);
}

static const struct section sections[] = {
    TABLE("findings", FIELD("what stands out, the worst first", "text")),
    RECORD(NULL, FIELD("trace of", "id"), FIELD("torus", "dims"),
           FIELD("recorded", "seconds", FORMAT_SECONDS),
           FIELD("clocks right to", "clock_error", FORMAT_SECONDS)),
    TABLE("shares", FIELD("all ports", "ports"), FIELD("of the time", "share", FORMAT_PERCENT)),
};

int report_print(const struct cli *cli, const struct trace_data *d)
{
    char dims[TORUS_TEXT_SIZE];
    json_t *value =
        json_pack("{s:s, s:s, s:f, s:f, s:o, s:o}", "id", d->id, "dims",
                  torus_format(&d->torus, dims), "seconds", d->seconds, "clock_error",
                  d->clock_error, "findings", findings_value(d), "shares", shares_value(d));

    return cli_print(cli, value, &(struct view){sections, sizeof sections / sizeof sections[0]});
}

int report_page_write(const struct cli *cli, const char *file, const struct trace_data *d)
{
    static const char *const scripts[] = {web_texts_js, web_colours_js, web_torus_js, report_js,
                                          NULL};
    struct error e;
    json_t *torus = torus_json(&d->torus, &e);

    if (torus == NULL)
        return cli_fail(cli, &e);
    json_t *data = json_pack("{s:o, s:o, s:o}", "torus", torus, "trace", trace_value(d), "findings",
                             findings_value(d));
    return page_file_write(cli, file,
                           &(struct page){.body = report_html,
                                          .style = web_style_css,
                                          .more_style = report_css,
                                          .scripts = scripts,
                                          .data = data});
}
