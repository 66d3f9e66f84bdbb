/* Writes metrics as text: in the format of OpenMetrics 1.0, or in that of Prometheus 0.0.4. No I/O. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/lib/base/histogram.h"

#define EXPOSITION_MOST (4u << 20) /* a longer text is given up */

enum metric_kind { METRIC_GAUGE, METRIC_COUNTER, METRIC_INFO, METRIC_HISTOGRAM };

struct metric {
    const char *name; /* without _total or _info; ends with the unit, if there is one */
    const char *unit; /* "seconds", "bytes"; "": none */
    enum metric_kind kind;
    const char *help; /* a sentence without quotes, backslashes and line ends */
};

struct label {
    const char *name, *value; /* bytes of the value that are not printable ASCII become '?' */
};

/* A text that grows. Filled by exposition_begin(). */
struct exposition {
    bool openmetrics;
    char *text; /* NULL: there was no memory, or the text was too long */
    size_t length, size;
    const struct metric *metric; /* of the samples that follow */
};

/* Begins a text; the caller calls exposition_end(). */
void exposition_begin(struct exposition *x, bool openmetrics);
/* Begins a metric, which must live as long as the text. All its samples must follow, each with other labels. */
void exposition_metric(struct exposition *x, const struct metric *metric);
/* Adds a sample. For METRIC_INFO the value is 1. */
void exposition_value(struct exposition *x, const struct label *labels, size_t count, double value);
/* Begins a metric that has one sample, without labels. */
void exposition_single(struct exposition *x, const struct metric *metric, double value);
/* Adds the samples of a METRIC_HISTOGRAM without labels. */
void exposition_histogram(struct exposition *x, const struct histogram *h);
/* Ends the text. Returns it, which the caller frees, and sets *length; or NULL. */
char *exposition_end(struct exposition *x, size_t *length);

/* Chooses the format of metrics. */

/* Whether a client with this header Accept (NULL: none) gets OpenMetrics, and not the older format of Prometheus. It
 * does unless the header prefers text/plain or another text. The header may contain anything. */
bool accept_openmetrics(const char *header);
