/* Reads bytes a second time, to repair a damaged piece. */
#pragma once

#include "daemon/torusd/files/source/source_record.h"

/* As source_ops.reread(). */
int source_reread(struct source *base, uint32_t destination, uint64_t offset, uint32_t length,
                  const uint8_t **bytes, struct error *e);
