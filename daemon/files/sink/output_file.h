/* A file of the output: opened in jobs, and held open between them if it may. */
#ifndef TORUSD_FILES_SINK_OUTPUT_FILE_H
#define TORUSD_FILES_SINK_OUTPUT_FILE_H

#include "daemon/files/sink/sink_record.h"

/* Opens the file of `origin`, or makes it. Returns its descriptor, or -1 with *e. */
int output_open(struct folder_sink *s, uint32_t origin, struct error *e);

/* Its job is over: it stays open if it may. */
void output_leave(struct folder_sink *s, uint32_t origin, int fd);

/* Closes it if it was held open. */
void output_close(struct folder_sink *s, uint32_t origin);

/* Begins to write to the disk what has been written to the file. */
void output_start_sync(struct folder_sink *s, struct output *o, int fd);

/* Cuts off what was written to it by an attempt before, and does not count. Returns 0 or -errno. */
int output_limit(struct folder_sink *s, uint32_t origin, int fd);

/* Whether there is a block in the file of `origin`. */
bool output_has_block(const struct folder_sink *s, uint32_t origin);

/* `result` is the -errno of a write. Returns -1 with *e. */
int output_cannot_write(const struct folder_sink *s, uint32_t origin, int result, struct error *e);

#endif
