/* The sink of an exchange of files: an output folder. */
#pragma once

#include "daemon/torusd/files/record/folders_record.h"

struct folder_sink;

/* Starts to prepare the output folder of an exchange, or continues with a kept one (request->kept_sink).
 * Returns NULL if there is no memory. */
struct sink *folder_sink(struct folders *folders, const struct folder_request *request,
                         const struct block_events *events);
