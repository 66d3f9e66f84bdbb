/* When a link has gone down and the group continues without it, its members agree which calls are made again,
 * from the first call that is not over at one of them. Each member says which calls are over there, in a
 * vector; all members receive the largest value of each element. This works like a wave. It runs in the whole
 * first, then in each part in which a member has called something. Until it ends, nothing else is sent in that
 * part.
 *
 * A call that all members have made and whose data all members have is over at all members; it ends at once
 * where this was not known. All members make the other calls again, under the same numbers. If some members
 * have the result of a reduction, they send that result to the others, because other trees would give other
 * bits. Rounds of a large call that all members have finished are not moved again. */
#pragma once

#include "daemon/torusd/group/record/part.h"

/* Starts an agreement after links have gone down: in the whole, then in each part that was opened at some
 * member. Fails the session if there is no memory. */
void agreement_begin(struct part *p);
/* Continues the agreement as far as possible now. */
void agreement_advance(struct part *p);
/* Ends an agreement that is under way, if there is one. */
void agreement_free(struct part *p);
