/* All files are brought to the disk; then the journal says that they are there. */
#ifndef TORUSD_FILES_SINK_SEALING_H
#define TORUSD_FILES_SINK_SEALING_H

#include "daemon/files/sink/sink_record.h"

/* As sink_ops.finish(). */
bool sink_finish(struct sink *base);

#endif
