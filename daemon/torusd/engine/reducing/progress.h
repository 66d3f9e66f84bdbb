/* Describes the progress of a reduction. */
#pragma once

#include "daemon/torusd/engine/engine.h"

/* engine_ops.describe */
void reducing_describe(const struct engine *engine, char *text, size_t size);
