/* What an attempt takes at this node: the plan, the blocks, the memory for those on their way, and the engine that
 * moves them. */
#ifndef TORUSD_EXCHANGE_RECORD_LOCAL_RESOURCES_H
#define TORUSD_EXCHANGE_RECORD_LOCAL_RESOURCES_H

#include "daemon/exchange/record/attempt.h"

/* The plan and the blocks, as far as it goes now. Returns 1: done, 0: something is under way, or -1 with *e. */
int local_resources_open(struct attempt *x, struct error *e);
/* The memory and the engine. Returns as that. */
int local_resources_make_engine(struct attempt *x, struct error *e);
/* Root only: how much goes in a round, at most; own.largest_block is everybody's, and the algorithm has
 * been chosen. Returns 0, or -1 with *e. */
int local_resources_choose_rounds(struct attempt *x, struct error *e);
/* Frees the engine, if there is one, and gives back its memory; an open group keeps that for its next attempt. */
void local_resources_release_engine(struct attempt *x);
/* Closes the blocks. `keep`: a finished output stays under its temporary name. */
void local_resources_close(struct attempt *x, bool keep);

#endif
