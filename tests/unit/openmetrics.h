/* A strict parser of the text format of OpenMetrics 1.0, as far as torusd uses it. */
#pragma once

#include <stddef.h>

/* Returns NULL if the text follows the format, else what is wrong with it; *line is the number of the line, from 1. */
const char *openmetrics_fault(const char *text, size_t length, unsigned *line);
