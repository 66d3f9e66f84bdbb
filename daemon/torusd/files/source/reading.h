/* Reads blocks segment by segment, one chunk ahead. */
#pragma once

#include "daemon/torusd/files/source/source_record.h"

/* As source_ops.lay_out() and read(). */
int source_lay_out(struct source *base, uint64_t round_bytes, uint32_t segments, struct error *e);
int source_read(struct source *base, uint32_t destination, uint64_t offset, uint32_t most,
                struct extent *out, struct error *e);
