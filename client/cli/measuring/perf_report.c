#include "client/cli/measuring/perf_report.h"

#include <math.h>

#include "client/cli/terminal/json.h"
#include "client/cli/terminal/quantile.h"

const char *const perf_types[] = {NULL,     "int8",   "int16",  "int32",   "int64",   "uint8",
                                  "uint16", "uint32", "uint64", "float32", "float64", NULL};
const char *const perf_operators[] = {NULL,  "sum", "product", "min", "max",
                                      "and", "or",  "xor",     NULL};

/* Adds the median and the quartiles under the three keys. */
static int set_times(json_t *o, const char *const key[3], const double *sorted, size_t count)
{
    static const double part[] = {0.5, 0.25, 0.75};
    int r = 0;

    for (size_t i = 0; i < 3; i++)
        r |= json_object_set_new(
            o, key[i], sorted != NULL ? json_real(quantile(sorted, count, part[i])) : json_null());
    return r;
}

static json_t *each(const double *seconds, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; seconds != NULL && i < count; i++)
        (void)json_array_append_new(list, json_real(seconds[i]));
    return list;
}

/* Adds the rate, the bound and their ratio, for calls back to back if these were measured. */
static int set_rates(json_t *o, const struct perf_row *row, double link_mbit)
{
    const double *times = row->period != NULL ? row->period : row->latency;
    double time = quantile(times, row->repeat, 0.5);
    double bound = link_mbit > 0 ? row->bound * 8 / (link_mbit * 1e6) : 0;

    return json_object_set_new(o, "bits_per_second",
                               row->received > 0 && time > 0 ? json_real(row->received * 8 / time)
                                                             : json_null()) |
           json_object_set_new(o, "bound_seconds", bound > 0 ? json_real(bound) : json_null()) |
           json_object_set_new(
               o, "ratio", bound > 0 ? json_real(round(time / bound * 1e3) / 1e3) : json_null());
}

json_t *perf_row_value(const struct perf_plan *plan, const struct perf_row *row, double link_mbit)
{
    static const char *const latency[] = {"latency_seconds", "latency_q1_seconds",
                                          "latency_q3_seconds"};
    static const char *const period[] = {"period_seconds", "period_q1_seconds",
                                         "period_q3_seconds"};
    json_t *o = json_object();
    int r = 0;

    if (plan->operation->sized)
        r |= json_object_set_new(o, "bytes", json_count(row->bytes));
    r |= json_object_set_new(o, "repeat", json_count(row->repeat));
    r |= set_times(o, latency, row->latency, row->repeat);
    r |= set_times(o, period, row->period, row->repeat);
    r |= set_rates(o, row, link_mbit);
    r |= json_object_set_new(o, "latency_seconds_each", each(row->latency, row->repeat));
    r |= json_object_set_new(o, "period_seconds_each", each(row->period, row->repeat));
    if (plan->verify) {
        r |= json_object_set_new(o, "wrong", json_count(row->wrong));
        r |= json_object_set_new(o, "contents", json_string(row->wrong == 0 ? "right" : "WRONG"));
    }
    if (r == 0)
        return o;
    json_decref(o);
    return NULL;
}

static json_t *dimensions(uint32_t mask)
{
    json_t *list = json_array();

    for (unsigned d = 0; d < TORUS_MAX_DIMS; d++)
        if ((mask >> d & 1) != 0)
            (void)json_array_append_new(list, json_integer(d));
    return list;
}

json_t *perf_value(const struct perf_plan *plan, const struct torus *whole,
                   const struct torus *part, double link_mbit, json_t *rows)
{
    char text[TORUS_TEXT_SIZE];
    json_t *o = json_object();
    int r = json_set_torus(o, whole);

    r |= json_object_set_new(o, "node_count", json_integer(whole->nodes));
    r |= json_object_set_new(o, "link_mbit", link_mbit > 0 ? json_number(link_mbit) : json_null());
    r |= json_object_set_new(o, "operation", json_string(plan->operation->name));
    if (plan->dimensions != 0) {
        r |= json_object_set_new(o, "part", json_string(torus_format(part, text)));
        r |= json_object_set_new(o, "part_dimensions", dimensions(plan->dimensions));
    }
    if (plan->operation->reduces) {
        r |= json_object_set_new(o, "type", json_string(perf_types[plan->type]));
        r |= json_object_set_new(o, "operator", json_string(perf_operators[plan->combination]));
    }
    if (plan->operation->rooted)
        r |= json_object_set_new(o, "root", json_integer(plan->root));
    r |= json_object_set_new(o, "memory", json_string(plan->ordinary ? "ordinary" : "registered"));
    r |= json_object_set_new(o, "pause_seconds", json_real((double)plan->pause_ns / 1e9));
    r |= json_object_set_new(o, "warm_up", json_integer(plan->warm_up));
    r |= json_object_set_new(o, "verified", json_boolean(plan->verify));
    r |= json_object_set_new(o, "results", rows);
    if (r == 0)
        return o;
    json_decref(o);
    return NULL;
}

static const struct field head_fields[] = {
    {"torus", "dims", FORMAT_TORUS},
    {"nodes", "node_count", FORMAT_PLAIN},
    {"links", "link_mbit", FORMAT_MBIT},
    {"operation", "operation", FORMAT_PLAIN},
    {"part", "part", FORMAT_PLAIN},
    {"type", "type", FORMAT_PLAIN},
    {"operator", "operator", FORMAT_PLAIN},
    {"root", "root", FORMAT_PLAIN},
    {"memory", "memory", FORMAT_PLAIN},
    {"pause", "pause_seconds", FORMAT_SECONDS},
    {0},
};
static const struct field row_fields[] = {
    {"size", "bytes", FORMAT_BYTES},
    {"calls", "repeat", FORMAT_PLAIN},
    {"latency", "latency_seconds", FORMAT_SECONDS},
    {"25 %", "latency_q1_seconds", FORMAT_SECONDS},
    {"75 %", "latency_q3_seconds", FORMAT_SECONDS},
    {"back to back", "period_seconds", FORMAT_SECONDS},
    {"25 %", "period_q1_seconds", FORMAT_SECONDS},
    {"75 %", "period_q3_seconds", FORMAT_SECONDS},
    {"per node", "bits_per_second", FORMAT_RATE},
    {"bound", "bound_seconds", FORMAT_SECONDS},
    {"ratio", "ratio", FORMAT_PLAIN},
    {"contents", "contents", FORMAT_PLAIN},
    {0},
};
static const struct section sections[] = {
    {.layout = LAYOUT_RECORD, .fields = head_fields},
    {.layout = LAYOUT_TABLE, .key = "results", .fields = row_fields},
};
const struct view perf_view = {sections, sizeof sections / sizeof sections[0]};
