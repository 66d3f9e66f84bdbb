/* Whole numbers that people write. */
#pragma once

#include <stdint.h>

#include "proto/error.h"

/* Reads a whole number up to `most`, of decimal digits only. Returns 0, or -1 with *e (ERROR_USAGE). */
int number_parse(const char *text, uint32_t most, uint32_t *number, struct error *e);
