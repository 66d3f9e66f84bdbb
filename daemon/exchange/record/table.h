/* All attempts that this node knows: by handle, and in the order of their beginning or end. */
#ifndef TORUSD_EXCHANGE_RECORD_TABLE_H
#define TORUSD_EXCHANGE_RECORD_TABLE_H

#include "daemon/exchange/record/attempt.h"

struct name;

/* NULL: none has this handle. */
struct attempt *attempt_find(struct exchanges *all, uint32_t handle);
/* The one under way here, else the youngest that has ended; NULL: none. */
struct attempt *attempt_find_id(const struct exchanges *all, const struct exchange_id *id);
/* The same by the text of its id; NULL also if that is no id. */
struct attempt *attempt_find_text(const struct exchanges *all, const char *text);
/* STARTING, and of nobody's job yet. NULL: no memory. */
struct attempt *attempt_new(struct exchanges *all, const struct name *name, uint32_t root);
/* A name of this node's own that no attempt or job has. */
void attempt_new_name(struct exchanges *all, struct name *name);
/* Frees it; nothing of it is open. */
void attempt_forget(struct attempt *x);
/* It does not need its schedule or its routes, if any, any more. */
void attempt_leave_schedule(struct attempt *x);
/* Frees it with the exchanges, or, if its source or sink is still closing, after that. */
void attempt_let_go(struct attempt *x);

#endif
