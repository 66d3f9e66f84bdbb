/* Describes the progress of a streaming engine. */
#pragma once

#include "daemon/torusd/engine/engine.h"

/* engine_ops.describe */
void streaming_describe(const struct engine *engine, char *text, size_t size);

/* engine_ops.arrived */
void streaming_arrived(const struct engine *engine,
                       void (*tell)(void *context, uint32_t origin, uint64_t begin, uint64_t end),
                       void *context);

/* engine_ops.waits */
void streaming_waits(const struct engine *engine, enum engine_wait *port);
