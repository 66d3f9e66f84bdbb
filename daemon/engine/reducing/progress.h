/* Describes the progress of a reduction. */
#ifndef TORUSD_ENGINE_REDUCING_PROGRESS_H
#define TORUSD_ENGINE_REDUCING_PROGRESS_H

#include "daemon/engine/engine.h"

/* engine_ops.describe */
void reducing_describe(const struct engine *engine, char *text, size_t size);

#endif
