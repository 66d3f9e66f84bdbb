#include "daemon/torusd/metrics/exposition.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define FIRST_SIZE 16384u
#define WHOLE_MOST 9007199254740992.0 /* 2^53: whole numbers up to this are exact */

void exposition_begin(struct exposition *x, bool openmetrics)
{
    *x = (struct exposition){.openmetrics = openmetrics, .size = FIRST_SIZE};
    x->text = malloc(x->size);
}

static void give_up(struct exposition *x)
{
    free(x->text);
    x->text = NULL;
    x->length = x->size = 0;
}

/* Makes room for `more` bytes and a terminating zero. Returns false if there is none. */
static bool make_room(struct exposition *x, size_t more)
{
    size_t size = x->size;
    char *text;

    if (x->text == NULL)
        return false;
    while (size - x->length <= more && size <= EXPOSITION_MOST)
        size *= 2;
    if (size == x->size)
        return true;
    text = size <= EXPOSITION_MOST ? realloc(x->text, size) : NULL;
    if (text == NULL) {
        give_up(x);
        return false;
    }
    x->text = text;
    x->size = size;
    return true;
}

static void add(struct exposition *x, const char *text)
{
    const size_t length = strlen(text);

    if (!make_room(x, length))
        return;
    memcpy(x->text + x->length, text, length + 1);
    x->length += length;
}

__attribute__((format(printf, 2, 3))) static void add_format(struct exposition *x,
                                                             const char *format, ...)
{
    va_list arguments;
    char text[600];

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    add(x, text);
}

static const char *suffix(const struct metric *m)
{
    return m->kind == METRIC_COUNTER ? "_total" : m->kind == METRIC_INFO ? "_info" : "";
}

void exposition_metric(struct exposition *x, const struct metric *m)
{
    static const char *const kinds[] = {[METRIC_GAUGE] = "gauge",
                                        [METRIC_COUNTER] = "counter",
                                        [METRIC_INFO] = "info",
                                        [METRIC_HISTOGRAM] = "histogram"};
    const char *kind = kinds[m->kind], *end = "";

    /* The older format has no infos and no units, and names counters with their suffix. */
    if (!x->openmetrics) {
        end = suffix(m);
        kind = m->kind == METRIC_INFO ? "gauge" : kind;
    }
    add_format(x, "# TYPE %s%s %s\n", m->name, end, kind);
    if (x->openmetrics && m->unit[0] != '\0')
        add_format(x, "# UNIT %s %s\n", m->name, m->unit);
    add_format(x, "# HELP %s%s ", m->name, end);
    add(x, m->help);
    add(x, ".\n");
    x->metric = m;
}

static void add_label_value(struct exposition *x, const char *value)
{
    for (; *value != '\0'; value++) {
        const unsigned char c = (unsigned char)*value;
        if (c == '\\' || c == '"')
            add_format(x, "\\%c", c);
        else
            add_format(x, "%c", c >= ' ' && c < 0x7f ? c : '?');
    }
}

static void add_labels(struct exposition *x, const struct label *labels, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        add_format(x, "%s%s=\"", i == 0 ? "{" : ",", labels[i].name);
        add_label_value(x, labels[i].value);
        add(x, i + 1 == count ? "\"}" : "\"");
    }
}

static void add_number(struct exposition *x, double value)
{
    if (value == floor(value) && fabs(value) <= WHOLE_MOST)
        add_format(x, "%.0f", value);
    else
        add_format(x, "%.15g", value);
}

void exposition_value(struct exposition *x, const struct label *labels, size_t count, double value)
{
    add_format(x, "%s%s", x->metric->name, suffix(x->metric));
    add_labels(x, labels, count);
    add(x, " ");
    add_number(x, value);
    add(x, "\n");
}

void exposition_single(struct exposition *x, const struct metric *metric, double value)
{
    exposition_metric(x, metric);
    exposition_value(x, NULL, 0, value);
}

void exposition_histogram(struct exposition *x, const struct histogram *h)
{
    const char *name = x->metric->name;
    uint64_t count = 0;

    for (unsigned i = 0; i < HISTOGRAM_BOUNDS; i++) {
        const double bound = histogram_bounds[i];
        count += h->bucket[i];
        /* OpenMetrics wants one spelling of each bound: "1.0", not "1". */
        add_format(x, "%s_bucket{le=\"%.9g%s\"} %" PRIu64 "\n", name, bound,
                   bound == floor(bound) ? ".0" : "", count);
    }
    count += h->bucket[HISTOGRAM_BOUNDS];
    add_format(x, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", name, count);
    add_format(x, "%s_count %" PRIu64 "\n%s_sum ", name, count, name);
    add_number(x, h->sum);
    add(x, "\n");
}

char *exposition_end(struct exposition *x, size_t *length)
{
    if (x->openmetrics)
        add(x, "# EOF\n");
    *length = x->length;
    return x->text;
}

#define SPACES " \t"

/* Returns the weight of the parameters of a media type, ";version=1.0.0;q=0.5"; 1 if they have none. */
static double weight_of(const char *parameters, const char *end)
{
    for (const char *at = parameters; at < end; at++) {
        if (*at != ';')
            continue;
        const char *name = at + 1 + strspn(at + 1, SPACES);
        if (end - name > 2 && (name[0] == 'q' || name[0] == 'Q') && name[1] == '=') {
            const double weight = name[2] >= '0' && name[2] <= '9' ? strtod(name + 2, NULL) : 0;
            return weight <= 1 ? weight : 1;
        }
    }
    return 1;
}

static bool begins_with(const char *text, const char *end, const char *beginning)
{
    const size_t length = strlen(beginning);

    return (size_t)(end - text) >= length && strncasecmp(text, beginning, length) == 0;
}

bool accept_openmetrics(const char *header)
{
    double openmetrics = -1, text = -1;

    for (const char *at = header; at != NULL && *at != '\0';) {
        at += strspn(at, SPACES ",");
        const char *end = at + strcspn(at, ",");
        const char *type = at + strcspn(at, ";," SPACES);
        const double weight = weight_of(type, end);
        if (begins_with(at, type, "application/openmetrics-text"))
            openmetrics = weight > openmetrics ? weight : openmetrics;
        else if (begins_with(at, type, "text/"))
            text = weight > text ? weight : text;
        at = end;
    }
    if (openmetrics < 0)
        return text < 0;
    return openmetrics > 0 && openmetrics >= text;
}
