/* Resources of an attempt at this node: the plan, its blocks, memory for blocks on their way, and the engine. */
#pragma once

#include "daemon/torusd/exchange/attempt.h"

/* Makes the plan and opens the blocks, as far as possible now. Returns 1 if that is complete, 0 if work is
 * under way, or -1 with *e. */
int local_resources_open(struct attempt *x, struct error *e);
/* Reserves memory and makes the engine. Returns 1 if that is complete, 0 if work is under way, or -1 with *e. */
int local_resources_make_engine(struct attempt *x, struct error *e);
/* Root only: chooses how many bytes of each block are sent in a round. Needs the largest block of all nodes in
 * local.largest_block, and a chosen algorithm. Returns 0, or -1 with *e. */
int local_resources_choose_rounds(struct attempt *x, struct error *e);
/* Returns how many blocks the busiest channel carries, as far as the routes are known; of a slow channel, more. */
double local_resources_busiest(const struct attempt *x);
/* Adds what the engine has delivered in this repetition to the totals; to be called before the engine forgets that. */
void local_resources_count(const struct attempt *x);
/* Frees the engine, if there is one, and gives its memory back. An open group keeps that memory for its next
 * attempt. */
void local_resources_release_engine(struct attempt *x);
/* Closes the blocks. `keep`: a finished output stays under its temporary name. */
void local_resources_close(struct attempt *x, bool keep);
