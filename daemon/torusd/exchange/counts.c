#include "daemon/torusd/exchange/counts.h"

#include "daemon/torusd/exchange/commit/decisions.h"
#include "daemon/torusd/exchange/record/job.h"

void exchanges_count(const struct exchanges *exchanges, struct exchange_counts *counts)
{
    *counts = (struct exchange_counts){.totals = exchanges->totals};
    for (const struct attempt *x = exchanges->active; x != NULL; x = x->next) {
        if (kind_of(x)->has_session)
            continue;
        counts->under_way += !state_of(x)->unheard;
        if (x->local.engine != NULL)
            counts->totals.delivered_bytes += x->local.engine->counts.bytes_delivered;
    }
    for (const struct job *j = exchanges->jobs; j != NULL; j = j->next)
        counts->waiting += job_waits(j) && !kind_of_spec(&j->spec)->has_session;
    for (const struct doubt *d = exchanges->doubts; d != NULL; d = d->next)
        counts->in_doubt++;
    for (const struct decision *d = exchanges->decisions; d != NULL; d = d->next)
        counts->unconfirmed += decision_is_on_record(exchanges, d);
}
