/* How a group that is open gets more memory; see memory.c. */
#pragma once

#include "daemon/torusd/group/call.h"

/* Whether the group asks for memory before this call. Counts the call, which is the next one of the program. */
bool memory_is_wanted(struct part *p, const struct checked_call *what);
/* Sets *what to the call that asks. Returns 0, or -1 with *e (ERROR_MEMORY). */
int memory_call(struct checked_call *what, struct error *e);
/* Reserves what this node can give, and offers it to the other members: the call starts. */
void memory_offer(struct call *c);
/* Takes what all members have offered: the call is complete. Returns 0, or -1 with *e: the members have not agreed. */
int memory_take(struct call *c, struct error *e);

static inline bool memory_is_asked_for(const struct call *c)
{
    return (uint32_t)c->what.call.operation == GROUP_GROW;
}
