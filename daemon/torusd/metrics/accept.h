/* Chooses the format of metrics. */
#pragma once

#include <stdbool.h>

/* Whether a client with this header Accept (NULL: none) gets OpenMetrics, and not the older format of Prometheus: unless
 * the header wants text/plain, or another text, more. The header may contain anything. */
bool accept_openmetrics(const char *header);
