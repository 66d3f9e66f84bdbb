/* Makes all files of an output before bytes arrive. */
#ifndef TORUSD_FILES_SINK_LAY_OUT_H
#define TORUSD_FILES_SINK_LAY_OUT_H

#include "daemon/files/sink/sink_record.h"

/* As sink_ops.lay_out(). */
int sink_lay_out(struct sink *base, uint64_t round_bytes, uint32_t segments, struct error *e);

#endif
