/* The sink of an exchange of files: an output folder. */
#ifndef TORUSD_FILES_SINK_FOLDER_SINK_H
#define TORUSD_FILES_SINK_FOLDER_SINK_H

#include "daemon/files/record/folders_record.h"

struct folder_sink;

/* Begins to prepare the output folder of an exchange, or goes on with one that was parked. Returns NULL without
 * memory. */
struct sink *folder_sink(struct folders *folders, const struct folder_request *request,
                         const struct block_events *events);

#endif
