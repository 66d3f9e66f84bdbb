/* The writing half of tree_store.h: what comes from another node is put onto this machine's disk. staging.h has where,
 * placing.h how it gets its names. */
#pragma once

#include "daemon/torusd/tree/tree_files.h"

/* Adds the functions of writers to the store of a struct tree_files. */
void tree_writer_add(struct tree_store *store);

/* These functions; `context` is that struct tree_files. */
int writer_open(void *context, const struct tree_write_options *options, struct tree_writer **w,
                struct error *e);
int writer_write_document(struct tree_writer *w, enum tree_document which, const uint8_t *bytes,
                          size_t length, struct error *e);
int writer_compare(struct tree_writer *w, struct tree_progress *progress, const uint8_t **wanted,
                   size_t *length, struct error *e);
int writer_missing(struct tree_writer *w, uint32_t most, struct tree_progress *progress,
                   const struct tree_span **span, uint32_t *spans, struct error *e);
int writer_write(struct tree_writer *w, uint64_t offset, const uint8_t *bytes, size_t length,
                 struct error *e);
int writer_leave(struct tree_writer *w, const uint64_t *index, uint32_t count, struct error *e);
int writer_finish(struct tree_writer *w, struct tree_progress *progress, struct error *e);
int writer_check_places(struct tree_writer *w, const uint64_t *place, uint32_t places,
                        struct error *e);
size_t writer_going(const struct tree_writer *w, const uint8_t **paths);
uint64_t writer_granularity(const struct tree_writer *w);
void writer_report(const struct tree_writer *w, struct tree_report *report);
void writer_close(struct tree_writer *w);
