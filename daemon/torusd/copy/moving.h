/* Moves documents, or what is missing of streams, in rounds: while one round is sent, the next one is read, and the last
 * one is written, in threads. */
#pragma once

#include "daemon/torusd/copy/agent_record.h"

/* Begins to move. Returns 0, or -1: the agent has failed. */
int moving_begin(struct agent *a, enum moved what);
/* Continues. Returns 1 if everything has been moved and written here; 0; or -1: the agent has failed. */
int moving_advance(struct agent *a);
/* The call of a slot has ended. */
void moving_called(struct agent *a, unsigned slot);
/* Whether works are under way. */
bool moving_works(const struct agent *a);
/* What keeps the next call back. */
enum group_client_wait moving_waits(const struct agent *a);
/* Frees everything; no work may be under way. */
void moving_end(struct agent *a);
