/* All attempts that this node knows: by handle, and in the order in which they began or ended. */
#pragma once

#include "daemon/torusd/exchange/record/attempt.h"

struct attempt_name;

/* Returns the attempt with this handle, or NULL. */
struct attempt *attempt_find(struct exchanges *exchanges, uint32_t handle);
/* Returns the attempt with this id that is under way here, otherwise the youngest that has ended, or NULL. */
struct attempt *attempt_find_id(const struct exchanges *exchanges, const struct exchange_id *id);
/* Like attempt_find_id(), by the text of the id. Returns NULL also if the text is not an id. */
struct attempt *attempt_find_text(const struct exchanges *exchanges, const char *text);
/* Creates an attempt, STARTING and without a job. The table owns it until attempt_forget() or
 * attempt_free_when_closed(). Returns NULL if there is no memory. */
struct attempt *attempt_new(struct exchanges *exchanges, const struct attempt_name *name,
                            uint32_t root);
/* Sets *name to a name of this node that no attempt or job has. */
void attempt_new_name(struct exchanges *exchanges, struct attempt_name *name);
/* Removes and frees an attempt; its engine, source and sink must be closed. */
void attempt_forget(struct attempt *x);
/* Gives up the attempt's schedule and routes, if it has any. */
void attempt_leave_schedule(struct attempt *x);
/* Like attempt_forget(), but if a source or sink is still being closed, the attempt is freed after that. */
void attempt_free_when_closed(struct attempt *x);
