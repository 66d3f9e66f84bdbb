/* Makes all files of an output before bytes arrive. */
#pragma once

#include "daemon/torusd/files/sink/sink_record.h"

/* As sink_ops.lay_out(). */
int sink_lay_out(struct sink *base, uint64_t round_bytes, uint32_t segments, struct error *e);
