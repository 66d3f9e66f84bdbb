/* One that waits (spec.wait) does not fail when a node or link goes down that it needs: its root takes the attempt
 * back as it does to go around a link (retry.c), and begins the next one when what it needs is up again, as long as
 * its timeout allows. So a restart of a daemon, other than the root's, is no failure. After the decision to commit
 * its client waits for nodes that are down, too, to hear of success when these have confirmed. */
#include "daemon/exchange/internal.h"
#include "daemon/exchange/sentence.h"

bool waiting_may(const struct attempt *x)
{
    return x->spec.wait && !attempt_is_open_group(x);
}

bool waiting_next(const struct job *j)
{
    return j->spec.wait && !job_has_been_open(j);
}

bool waiting_or_around(const struct attempt *x)
{
    return x->goes_around || waiting_may(x);
}

bool waiting_or_around_next(const struct job *j)
{
    return around_may(&j->spec) || waiting_next(j);
}

static bool is_unreachable(const void *context, uint32_t rank)
{
    const struct job *j = context;

    return absent_is_unreachable(j->all, rank);
}

static bool is_unconfirmed(const void *context, uint32_t rank)
{
    const struct job *j = context;
    const struct decision *d = decision_find(j->all, j->attempt->id);

    return d != NULL && !decision_has(d, rank) && absent_is_unreachable(j->all, rank);
}

void waiting_describe(const struct job *j, struct sentence *s)
{
    const struct torus *t = router_torus(j->all->set.router);
    bool begins = job_waits(j) && j->fault.at != ROUTER_NEVER;
    bool ends = job_is_under_way(j) && j->attempt->state == EXCHANGE_COMMITTING &&
                attempt_is_root(j->attempt);

    if (!waiting_next(j) || (!begins && !ends))
        return;
    if (sentence_add_nodes(s, t, ends ? is_unconfirmed : is_unreachable, j) == 0 && begins)
        sentence_add(s, "links: %s", j->fault.e.text);
}
