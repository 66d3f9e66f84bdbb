/* The files of an output: jobs open them, and they stay open between jobs as long as there are
 * descriptors. */
#pragma once

#include "daemon/torusd/files/sink/sink_record.h"

/* Opens the file of `origin`, or makes it. Returns its descriptor, or -1 with *e. */
int output_open(struct folder_sink *s, uint32_t origin, struct error *e);

/* To be called at the end of a job: keeps the file open if a descriptor can be reserved; otherwise closes
 * it. */
void output_leave(struct folder_sink *s, uint32_t origin, int fd);

/* Checks that nobody but torusd has written to the open file. Returns 0, or -1 with *e. */
int output_check(const struct folder_sink *s, uint32_t origin, int fd, struct error *e);

/* Notes the file as it is now, after torusd has written to it. Returns 0 or -errno. */
int output_note(struct folder_sink *s, uint32_t origin, int fd);

/* Checks that the name of the file still leads to the file as torusd has left it. Returns 1; 0 if it does not, with *kind;
 * or -errno (-ENOENT: there is none). */
int output_is_there(const struct folder_sink *s, uint32_t origin, enum file_kind *kind);

/* Closes the file if it was kept open. */
void output_close(struct folder_sink *s, uint32_t origin);

/* Starts to write the file's bytes from memory to the disk. */
void output_start_sync(struct folder_sink *s, struct output *o, int fd);

/* Cuts off bytes of an earlier attempt that cannot be kept (output.limit). Returns 0, or -1 with *e. */
int output_limit(struct folder_sink *s, uint32_t origin, int fd, struct error *e);

/* Whether the file of `origin` gets a block. */
bool output_has_block(const struct folder_sink *s, uint32_t origin);

/* Fills *e for a failed write; `result` is its -errno. Returns -1. */
int output_cannot_write(const struct folder_sink *s, uint32_t origin, int result, struct error *e);
