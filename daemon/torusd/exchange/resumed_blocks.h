/* Blocks of an attempt that resumes an earlier one. For any other attempt these functions do nothing. */
#pragma once

#include "daemon/torusd/exchange/attempt.h"

/* Takes over what is kept at this node. Returns 0, or -1 with *e. */
int resumed_blocks_begin(struct attempt *x, struct error *e);
/* Makes the request ask for the kept output, and for source files that have not changed. */
void resumed_blocks_ask(const struct attempt *x, struct folder_request *request);
/* Makes the open source and sink skip what has arrived. Returns 0, or -1 with *e. */
int resumed_blocks_wrap(struct attempt *x, struct error *e);
/* To be called when source and sink are open. What no longer exists counts as not arrived. */
void resumed_blocks_opened(struct attempt *x);
/* Calculates what is missing, after all nodes have told what has arrived. Returns 0, or -1 with *e. */
int resumed_blocks_lay_out(struct attempt *x, struct error *e);
/* For generated blocks: calculates the largest missing block, and the missing bytes, at this node. */
void resumed_blocks_sizes(struct attempt *x);
/* For files, at the root, after all nodes have told: calculates the largest missing block on all nodes. Returns
 * 0, or -1 with *e. */
int resumed_blocks_largest(struct attempt *x, struct error *e);
