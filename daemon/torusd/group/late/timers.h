/* Time limits of a session: for calls that are late, and for censuses without an answer. */
#pragma once

#include "daemon/torusd/group/record/session_record.h"

/* Returns when timers_tick() is due (as router_now()), or ROUTER_NEVER. */
uint64_t timers_deadline(const struct session *s);
/* Asks about calls that are late, and fails those whose census has no answer. */
void timers_tick(struct session *s, uint64_t now);
