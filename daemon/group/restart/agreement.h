/* When a link has gone down and the group goes on without it, its members agree which calls are made again:
 * from the first that is not over at one of them on. Each says which calls are over there, in a vector of
 * which all hear the largest elements: like a wave, in the whole first, then in each part of which a member
 * has called something. Nothing else is sent in a part before.
 *
 * A call that all have made and whose data all have is over everywhere; it ends at once where that was not
 * known. All others are made again, under their numbers, by all members. A reduction whose result some have
 * is made again as the spreading of that: on other trees it would have other bits. Of a large call, rounds
 * that all members have finished are not moved again. */
#ifndef TORUSD_GROUP_RESTART_AGREEMENT_H
#define TORUSD_GROUP_RESTART_AGREEMENT_H

#include "daemon/group/record/part.h"

/* After links have gone down: on the whole, then on each part that has been opened somewhere. Fails the
 * session if there is no memory. */
void agreement_begin(struct part *p);
/* Goes on as far as possible. */
void agreement_advance(struct part *p);
void agreement_free(struct part *p);

#endif
