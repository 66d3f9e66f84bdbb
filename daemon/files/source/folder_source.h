/* The source of an exchange of files: a folder, or a file. */
#ifndef TORUSD_FILES_SOURCE_FOLDER_SOURCE_H
#define TORUSD_FILES_SOURCE_FOLDER_SOURCE_H

#include "daemon/files/record/folders_record.h"

/* Begins to open the source of an exchange. Returns NULL without memory. */
struct source *folder_source(struct folders *folders, const struct folder_request *request,
                             const struct block_events *events);

/* The caller does not take it after all: it closes, and nobody hears of it. */
void folder_source_disown(struct source *source);

#endif
