/* Pieces wait at their files, ordered by offset, until the current iteration of the loop has handled all
 * input and has sent its frames. So links do not wait for files, and one call writes adjoining pieces. A job
 * writes all waiting pieces of one or several files; a file is never in two jobs. Under load this makes few
 * and large jobs. Files in memory need no jobs; only as many bytes wait for them as stay in the processor's
 * cache. */
#pragma once

#include "daemon/torusd/files/sink/sink_record.h"

/* Frees a list of pieces, whether they were written or not. */
void pieces_drop(struct folder_sink *s, struct piece *piece);

/* Queues the file of `origin` for writing, if it has waiting pieces and no job has the file. */
void pieces_enqueue(struct folder_sink *s, uint32_t origin);

/* Inserts a piece among the waiting pieces of its file, by offset. */
void pieces_insert(struct output *o, struct piece *piece);

/* Whether the last waiting piece of a file ends at `offset`. */
bool pieces_end_at(const struct output *o, uint64_t offset);

/* Sets *kept to a reference to the bytes, or to a copy. Bytes that will be written in this iteration of the
 * loop are not copied, because they keep their slab for a short time only. Returns 0, or -1 if there is no
 * memory. */
int pieces_keep_bytes(struct folder_sink *s, const struct output *o, const struct extent *bytes,
                      struct extent *kept);
