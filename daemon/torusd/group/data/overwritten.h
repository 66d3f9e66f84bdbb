/* Saves the parts of a vector in place that results overwrite, because a repeated call needs them. */
#pragma once

#include <stdint.h>

#include "proto/error.h"

struct overwritten; /* a list; NULL: empty */

/* Saves `length` bytes at `to`, which are at `offset` of their owner's block. Returns 0, or -1 with *e
 * (ERROR_MEMORY). */
int overwritten_save(struct overwritten **list, uint8_t *to, uint64_t offset, uint64_t length,
                     struct error *e);
/* Frees what begins within the first `bytes` bytes of each block; UINT64_MAX: everything. */
void overwritten_forget(struct overwritten **list, uint64_t bytes);
/* Writes everything back and frees the list. */
void overwritten_restore(struct overwritten **list);
