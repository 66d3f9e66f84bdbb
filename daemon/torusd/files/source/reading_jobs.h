/* A queue of chunks to read; each job reads as many as there are, up to a limit. */
#pragma once

#include "daemon/torusd/files/source/source_record.h"

/* Queues a chunk for reading. */
void reading_jobs_add(struct folder_source *s, struct chunk *c);

/* Starts jobs for the queued chunks, if there are enough of them. Returns 0, or -1 if there is no memory. */
int reading_jobs_start(struct folder_source *s);

/* Fills *e: there is no memory. Returns -1. */
int reading_jobs_no_memory(struct error *e);
