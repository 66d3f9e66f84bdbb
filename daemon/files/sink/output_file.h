/* A file of the output: jobs open it, and it stays open between them if there are descriptors. */
#ifndef TORUSD_FILES_SINK_OUTPUT_FILE_H
#define TORUSD_FILES_SINK_OUTPUT_FILE_H

#include "daemon/files/sink/sink_record.h"

/* Opens the file of `origin`, or makes it. Returns its descriptor, or -1 with *e. */
int output_open(struct folder_sink *s, uint32_t origin, struct error *e);

/* To be called at the end of the job: keeps the file open if there are descriptors; else closes it. */
void output_leave(struct folder_sink *s, uint32_t origin, int fd);

/* Closes the file if it was kept open. */
void output_close(struct folder_sink *s, uint32_t origin);

/* Starts to bring the written bytes of the file to the disk. */
void output_start_sync(struct folder_sink *s, struct output *o, int fd);

/* Cuts off the bytes that an earlier attempt wrote and that do not count. Returns 0 or -errno. */
int output_limit(struct folder_sink *s, uint32_t origin, int fd);

/* Whether the file of `origin` gets a block. */
bool output_has_block(const struct folder_sink *s, uint32_t origin);

/* Fills *e for a failed write; `result` is its -errno. Returns -1. */
int output_cannot_write(const struct folder_sink *s, uint32_t origin, int result, struct error *e);

#endif
