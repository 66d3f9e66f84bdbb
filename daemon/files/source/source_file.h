/* A file of a source: opened, lent to jobs, and never changed meanwhile. */
#ifndef TORUSD_FILES_SOURCE_SOURCE_FILE_H
#define TORUSD_FILES_SOURCE_SOURCE_FILE_H

#include "daemon/files/source/source_record.h"

/* The path of a block's file. Returns `out`, which has room for FILE_PATH. */
const char *source_file_path(const struct folder_source *s, uint32_t d, char *out);

/* Returns -1 with *e. */
int source_file_changed(const char *path, struct error *e);

/* What tells this file, as it is, from another one; never 0. */
uint64_t source_file_mark(const struct file *f);

/* Whether a file has not been written to in between. */
bool source_file_is_as_before(const struct file_status *now, const struct file_status *before);

/* Opens the file of `d`, in a job. Returns 0, also if it is missing and may be, or -1 with *e. */
int source_file_open(struct folder_source *s, uint32_t d, struct error *e);

/* In a job: the descriptor that is held, or one of its own for the same file, which is not written to
 * meanwhile. Returns it, or -1 with *e. */
int source_file_borrow(const struct folder_source *s, uint32_t d, struct error *e);

/* The job does not need it any more. */
void source_file_return(const struct folder_source *s, uint32_t d, int fd);

#endif
