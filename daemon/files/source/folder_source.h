/* The source of an exchange of files: a folder, or a file. */
#ifndef TORUSD_FILES_SOURCE_FOLDER_SOURCE_H
#define TORUSD_FILES_SOURCE_FOLDER_SOURCE_H

#include "daemon/files/record/folders_record.h"

/* Starts to open the source of an exchange. Returns NULL if there is no memory. */
struct source *folder_source(struct folders *folders, const struct folder_request *request,
                             const struct block_events *events);

/* Closes a source that its caller has not used. No events follow. */
void folder_source_disown(struct source *source);

#endif
