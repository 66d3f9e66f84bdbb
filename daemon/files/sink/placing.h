/* Gives the output its final name. */
#ifndef TORUSD_FILES_SINK_PLACING_H
#define TORUSD_FILES_SINK_PLACING_H

#include "daemon/files/sink/sink_record.h"

/* As sink_ops.commit(). */
int sink_commit(struct sink *base, struct error *e);

#endif
