/* One that waits (spec.wait) does not fail when a node or link goes down that it needs: its root takes the attempt
 * back as it does to go around a link (retry.c), and begins the next one when what it needs is up again, as long as
 * its timeout allows. So a restart of a daemon, other than the root's, is no failure. After the decision to commit
 * its client waits for nodes that are down, too, to hear of success when these have confirmed. */
#include "daemon/exchange/internal.h"
#include "daemon/exchange/sentence.h"

bool waiting_may(const struct exchange *x)
{
    return x->spec.wait && !standing_is_one(x);
}

bool waiting_or_around(const struct exchange *x)
{
    return x->goes_around || waiting_may(x);
}

static bool is_unreachable(const void *context, uint32_t rank)
{
    const struct exchange *x = context;

    return absent_is_unreachable(x->all, rank);
}

static bool is_unconfirmed(const void *context, uint32_t rank)
{
    const struct exchange *x = context;
    const struct decision *d = decision_find(x->all, x->id);

    return d != NULL && !decision_has(d, rank) && absent_is_unreachable(x->all, rank);
}

void waiting_describe(const struct exchange *x, struct sentence *s)
{
    bool begins = !exchange_has_begun(x) && x->fault.at != ROUTER_NEVER;
    bool ends = x->state == EXCHANGE_COMMITTING && exchange_is_root(x);

    if (!waiting_may(x) || (!begins && !ends))
        return;
    if (sentence_add_nodes(s, torus_of(x), ends ? is_unconfirmed : is_unreachable, x) == 0 &&
        begins)
        sentence_add(s, "links: %s", x->fault.e.text);
}
