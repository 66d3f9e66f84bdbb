/* Jobs that make or sync all files of an output, each a part of them. */
#ifndef TORUSD_FILES_SINK_PARTS_H
#define TORUSD_FILES_SINK_PARTS_H

#include "daemon/files/sink/sink_record.h"

/* Runs `run` for parts of all files, and calls over() on the loop when all went well. Returns 0, or -1 without
 * memory. */
int parts_begin(struct folder_sink *s, void (*run)(struct work *work),
                int (*over)(struct folder_sink *s));

#endif
