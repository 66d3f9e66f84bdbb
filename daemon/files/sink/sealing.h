/* Brings all files to the disk, and then records in the journal that the output is finished. */
#ifndef TORUSD_FILES_SINK_SEALING_H
#define TORUSD_FILES_SINK_SEALING_H

#include "daemon/files/sink/sink_record.h"

/* As sink_ops.finish(). */
bool sink_finish(struct sink *base);

#endif
