/* The call that opens a part: the first member makes the part's table of algorithms, and all members use it. */
#pragma once

#include "daemon/torusd/group/record/call.h"

/* Prepares such a call: a vector of bytes to which only the first member contributes. `mask`: dimensions of the
 * part; 0: the whole. Returns 0 with *what, or -1 with *e. */
int part_table_call(struct checked_call *what, uint32_t mask, struct error *e);
/* Whether this member makes the table of such a call. */
bool part_table_is_made_here(const struct call *c);
/* Makes the table. Returns 1; 0 while schedules are being counted; or -1 with *e. */
int part_table_make(struct call *c, struct error *e);
/* Takes the table that has arrived, so that the part's calls can be carried out. Returns 0, or -1 with *e. */
int part_table_take(const struct call *c, struct error *e);
