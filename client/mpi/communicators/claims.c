#include "client/mpi/communicators/claims.h"

#define OPEN_AFTER 16u /* calls; a lane costs memory of every daemon (client/doc/programs.md) */

static struct look look_at(const struct lane_votes *l)
{
    struct look look = {.owner = l->owner, .calls = l->calls};

    look.known = l->owner != VOTE_ANY && l->calls != VOTE_ANY && l->owner == -l->minus_owner &&
                 l->calls == -l->minus_calls;
    return look;
}

void claims_look(struct looks *looks, const struct votes *all, uint32_t calls)
{
    looks->at = calls;
    for (unsigned l = 0; l < LANES_MOST; l++)
        looks->lane[l] = look_at(&all->lane[l]);
}

/* Calls that the owner has made since the last look; UINT32_MAX if its lane cannot be taken
 * away. */
static uint32_t use_of(const struct lane_votes *l, const struct look *last)
{
    struct look now = look_at(l);

    if (!l->yields || !now.known || !last->known || now.owner != last->owner)
        return UINT32_MAX;
    return (uint32_t)(now.calls - last->calls);
}

struct claim claims_decide(const struct votes *all, const struct looks *last, uint32_t calls)
{
    uint32_t least = UINT32_MAX;
    unsigned idlest = 0;

    if (!all->proceeds)
        return (struct claim){CLAIM_NOTHING, 0};
    for (unsigned l = 0; l < LANES_MOST; l++)
        if (all->lane[l].free)
            return (struct claim){CLAIM_LANE, l};
    for (unsigned l = 0; l < LANES_MOST; l++) {
        uint32_t use = use_of(&all->lane[l], &last->lane[l]);
        if (use < least) {
            least = use;
            idlest = l;
        }
    }
    if (least == 0)
        return (struct claim){CLAIM_LANE, idlest};
    if (all->opens && calls >= OPEN_AFTER)
        return (struct claim){CLAIM_NEW, (unsigned)all->lanes};
    /* Demands twice as many calls, so that two communicators that call equally often do not take
     * the lane from each other again and again. */
    if (least < (calls - last->at) / 2)
        return (struct claim){CLAIM_LANE, idlest};
    return (struct claim){CLAIM_NOTHING, 0};
}
