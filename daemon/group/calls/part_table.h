/* The call that opens a part: the first member makes the table of its decisions, and all take it. */
#ifndef TORUSD_GROUP_CALLS_PART_TABLE_H
#define TORUSD_GROUP_CALLS_PART_TABLE_H

#include "daemon/group/record/call.h"

/* The memory of such a call: a vector of bytes, to which the first member alone contributes. Returns 0 with *what,
 * or -1 with *e. `mask`: of the part; 0: the whole. */
int part_table_call(struct checked *what, uint32_t mask, struct error *e);
/* Whether this member makes the table of such a call. */
bool part_table_is_made_here(const struct call *c);
/* Makes it. Returns 1; 0 if schedules are being counted; or -1 with *e. */
int part_table_make(struct call *c, struct error *e);
/* It has come: the calls of the part can be carried out. Returns 0, or -1 with *e. */
int part_table_take(const struct call *c, struct error *e);

#endif
