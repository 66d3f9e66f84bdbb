/* Pieces wait with their files, in the order of their offsets, until all that came in with a turn of
 * the loop is there and what it brought forth has been sent: so links do not wait for files, and
 * pieces that adjoin are written with one call. A job writes all that waits with one file, or with
 * several, and a file is never in two jobs: under load jobs are few. Where files lie in memory no job
 * is needed, and no more waits than stays in the processor's cache. */
#ifndef TORUSD_FILES_SINK_PIECES_H
#define TORUSD_FILES_SINK_PIECES_H

#include "daemon/files/sink/sink_record.h"

/* Frees pieces that are written, or are not going to be. */
void pieces_drop(struct folder_sink *s, struct piece *piece);

/* The file of `origin` waits to be written, if there is something for it and no job has it. */
void pieces_enqueue(struct folder_sink *s, uint32_t origin);

/* A piece among those that wait with its file, by their offsets. */
void pieces_insert(struct output *o, struct piece *piece);

/* Whether what waits last with a file ends there. */
bool pieces_end_at(const struct output *o, uint64_t offset);

/* Keeps bytes until they are written; those that are written in this turn of the loop do not keep their slab for
 * long. Returns 0, or -1 without memory. */
int pieces_keep_bytes(struct folder_sink *s, const struct output *o, const struct extent *bytes,
                      struct extent *kept);

#endif
