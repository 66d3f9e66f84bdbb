/* Chunks wait in a queue, and a job reads as many as there are, up to a limit. */
#ifndef TORUSD_FILES_SOURCE_READING_JOBS_H
#define TORUSD_FILES_SOURCE_READING_JOBS_H

#include "daemon/files/source/source_record.h"

/* A chunk is to be read. */
void reading_jobs_add(struct folder_source *s, struct chunk *c);

/* Gives what waits to jobs, if there is enough of it. Returns 0, or -1 without memory. */
int reading_jobs_start(struct folder_source *s);

/* Returns -1 with *e. */
int reading_jobs_no_memory(struct error *e);

#endif
