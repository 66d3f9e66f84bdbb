/* Brings all files to the disk, and then records in the journal that the output is finished. */
#pragma once

#include "daemon/torusd/files/sink/sink_record.h"

/* As sink_ops.finish(). */
bool sink_finish(struct sink *base);
