#include "client/mpi/communicators/claims.h"

static struct lane_seen lane_seen_now(const struct lane_votes *l)
{
    struct lane_seen seen = {.owner = l->owner, .calls = l->calls};

    seen.known = l->owner != VOTE_ANY && l->calls != VOTE_ANY && l->owner == -l->minus_owner &&
                 l->calls == -l->minus_calls;
    return seen;
}

void claims_remember(struct lanes_seen *seen, const struct votes *all, uint32_t calls)
{
    seen->at = calls;
    for (unsigned l = 0; l < LANES_MOST; l++)
        seen->lane[l] = lane_seen_now(&all->lane[l]);
}

/* Returns how many calls the owner of a lane has made since the votes in *last; UINT32_MAX if its lane cannot be
 * taken away. */
static uint32_t use_of(const struct lane_votes *l, const struct lane_seen *last)
{
    struct lane_seen now = lane_seen_now(l);

    if (!l->yields || !now.known || !last->known || now.owner != last->owner)
        return UINT32_MAX;
    return (uint32_t)(now.calls - last->calls);
}

struct claim claims_decide(const struct votes *all, const struct lanes_seen *last, uint32_t calls)
{
    uint32_t least = UINT32_MAX;
    unsigned least_used = 0;

    if (!all->proceeds)
        return (struct claim){CLAIM_NOTHING, 0};
    for (unsigned l = 0; l < LANES_MOST; l++)
        if (all->lane[l].free)
            return (struct claim){CLAIM_LANE, l};
    for (unsigned l = 0; l < LANES_MOST; l++) {
        uint32_t use = use_of(&all->lane[l], &last->lane[l]);
        if (use < least) {
            least = use;
            least_used = l;
        }
    }
    if (least == 0)
        return (struct claim){CLAIM_LANE, least_used};
    if (all->opens && calls >= OPEN_AFTER)
        return (struct claim){CLAIM_NEW, (unsigned)all->lanes};
    /* The asking communicator must have made more than twice as many calls. Otherwise two communicators that call
     * equally often would take the lane from each other again and again. */
    if (least < (calls - last->at) / 2)
        return (struct claim){CLAIM_LANE, least_used};
    return (struct claim){CLAIM_NOTHING, 0};
}
