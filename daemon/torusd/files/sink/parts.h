/* Jobs that together make or sync all files of an output. */
#pragma once

#include "daemon/torusd/files/sink/sink_record.h"

/* Runs `run` in several jobs, each for a part of the files, and calls over() on the loop if all succeeded.
 * Returns 0, or -1 if there is no memory. */
int parts_begin(struct folder_sink *s, void (*run)(struct work *work),
                int (*over)(struct folder_sink *s));
