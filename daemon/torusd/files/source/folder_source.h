/* The source of an exchange of files: a folder, or a file. */
#pragma once

#include "daemon/torusd/files/record/folders_record.h"

/* Starts to open the source of an exchange. Returns NULL if there is no memory. */
struct source *folder_source(struct folders *folders, const struct folder_request *request,
                             const struct block_events *events);

/* Closes a source that its caller has not used. No events follow. */
void folder_source_disown(struct source *source);
