/* What results have overwritten of a vector in place: it is needed again if the call is made again. */
#ifndef TORUSD_GROUP_DATA_OVERWRITTEN_H
#define TORUSD_GROUP_DATA_OVERWRITTEN_H

#include <stdint.h>

#include "proto/error.h"

struct overwritten; /* a list; NULL: nothing */

/* Remembers `length` bytes at `to`, which are `offset` bytes behind the beginning of their owner's block. Returns
 * 0, or -1 with *e: no memory. */
int overwritten_save(struct overwritten **list, uint8_t *to, uint64_t offset, uint64_t length,
                     struct error *e);
/* Forgets what begins within the first `bytes` bytes of each block; UINT64_MAX: everything. */
void overwritten_forget(struct overwritten **list, uint64_t bytes);
/* Puts everything back, and forgets it. */
void overwritten_restore(struct overwritten **list);

#endif
