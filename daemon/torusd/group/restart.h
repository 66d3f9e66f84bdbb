/* How a part is made, what is kept of it while its group is restarted, and how it ends. */
#pragma once

#include "daemon/torusd/group/state.h"

/* Makes the whole of a session (mask 0) or a part of it; part_free() frees it. Returns NULL with *e
 * (ERROR_MEMORY). */
struct part *part_new(struct session *s, uint32_t mask, struct error *e);
/* Frees a part with its calls; does not take it out of the session's list. */
void part_free(struct part *p);
/* Frees all engines, and everything that depends on which links are down; the calls stay. */
void part_suspend(struct part *p);
/* Finds what part_suspend() has freed, for the links that are down now. Returns 0, or -1 with *e. */
int part_renew(struct part *p, struct error *e);

/* Makes suspended calls restart from their beginning, although all members have finished rounds of them. Data that has
 * arrived may be damaged, and the digest shows that only when the whole block is there. Reductions keep their rounds,
 * because their results may have overwritten the input. */
void part_forget_progress(struct part *p);

/* When a link has gone down and the group continues without it, its members agree which calls are made again,
 * from the first call that is not over at one of them. Each member says which calls are over there, in a
 * vector; all members receive the largest value of each element. This works like a wave. It runs in the whole
 * first, then in each part in which a member has called something. Until it ends, nothing else is sent in that
 * part.
 *
 * A call that all members have made and whose data all members have is over at all members; it ends at once
 * where this was not known. All members make the other calls again, under the same numbers. If some members
 * have the result of a reduction, they send that result to the others, because other trees would give other
 * bits. Rounds of a large call that all members have finished are not moved again, unless data was damaged. */

/* Starts an agreement after links have gone down: in the whole, then in each part that was opened at some
 * member. Fails the session if there is no memory. */
void agreement_begin(struct part *p);
/* Continues the agreement as far as possible now. */
void agreement_advance(struct part *p);
