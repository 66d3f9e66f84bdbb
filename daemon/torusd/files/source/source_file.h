/* A file of a source: opens it, lends it to jobs, and checks it for changes. */
#pragma once

#include "daemon/torusd/files/source/source_record.h"

/* Writes the path of a block's file to `out`, which has room for FILE_PATH bytes. Returns `out`. */
const char *source_file_path(const struct folder_source *s, uint32_t d, char *out);

/* Fills *e: the file has changed. Returns -1. */
int source_file_changed(const char *path, struct error *e);

/* Returns a digest of the identity, size and time of the file; never 0. */
uint64_t source_file_mark(const struct file *f);

/* Whether the file has not changed between the two statuses. */
bool source_file_is_as_before(const struct file_status *now, const struct file_status *before);

/* Opens the file of `d`, in a job. Returns 0, also if the file is missing and may be; or -1 with *e. */
int source_file_open(struct folder_source *s, uint32_t d, struct error *e);

/* In a job: returns the descriptor that is kept open; or opens the file again, if it has not changed since it
 * was first opened. Returns -1 with *e on failure. */
int source_file_borrow(const struct folder_source *s, uint32_t d, struct error *e);

/* Closes a borrowed descriptor, unless it is the one that is kept open. */
void source_file_return(const struct folder_source *s, uint32_t d, int fd);
