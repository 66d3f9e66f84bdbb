/* Describes what a job with spec.wait waits for. */
#include "daemon/torusd/exchange/phases/waiting.h"

#include "daemon/torusd/exchange/commit/decisions.h"
#include "daemon/torusd/exchange/record/absent.h"
#include "daemon/torusd/exchange/record/predicates.h"
#include "daemon/torusd/exchange/record/sentence.h"

static bool is_unreachable(const void *context, uint32_t rank)
{
    const struct job *j = context;

    return absent_is_unreachable(j->exchanges, rank);
}

static bool is_unconfirmed(const void *context, uint32_t rank)
{
    const struct job *j = context;
    const struct decision *d = decision_find(j->exchanges, &j->attempt->id);

    return d != NULL && !decision_has(d, rank) && absent_is_unreachable(j->exchanges, rank);
}

void waiting_describe(const struct job *j, struct sentence *s)
{
    const struct torus *t = router_torus(j->exchanges->set.router);
    bool begins = job_waits(j) && j->fault.at != ROUTER_NEVER;
    bool ends = job_is_under_way(j) && j->attempt->state == EXCHANGE_COMMITTING &&
                attempt_is_root(j->attempt);

    if (!job_waits_for_nodes(j) || (!begins && !ends))
        return;
    if (sentence_add_nodes(s, t, ends ? is_unconfirmed : is_unreachable, j) == 0 && begins)
        sentence_add(s, "links: %s", j->fault.e.text);
}
