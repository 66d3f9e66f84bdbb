#include "daemon/torusd/exchange/record/totals.h"

#include "daemon/torusd/exchange/record/attempt.h"
#include "daemon/torusd/exchange/record/job.h"
#include "proto/elapsed.h"

void totals_note_end(const struct attempt *x)
{
    struct exchange_totals *totals = &x->exchanges->totals;
    const uint64_t began = x->job != NULL ? x->job->began : x->began;

    totals->ended[x->spec.operation][x->state]++;
    if ((x->state == EXCHANGE_FINISHED || x->state == EXCHANGE_COMMITTED) &&
        !kind_of(x)->has_session)
        histogram_add(&totals->duration,
                      (double)elapsed(began, router_now(router_of(x))) / (double)SECONDS);
}

void totals_note_delivered(const struct attempt *x)
{
    if (x->local.engine != NULL && !kind_of(x)->has_session)
        x->exchanges->totals.delivered_bytes += x->local.engine->counts.bytes_delivered;
}
