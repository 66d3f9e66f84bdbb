#include "daemon/torusd/copy/calls.h"

#include <stdlib.h>

#include "daemon/lib/base/limits.h"
#include "proto/elapsed.h"

int copy_calls_init(struct copy_calls *c, unsigned ports)
{
    *c = (struct copy_calls){.ports = ports};
    for (unsigned port = 0; port < ports; port++)
        c->room[port] = COPY_CALLS_BURST;
    c->call = calloc((size_t)ports * COPY_CALLS_KEPT, sizeof *c->call);
    return c->call != NULL || ports == 0 ? 0 : -1;
}

void copy_calls_free(struct copy_calls *c)
{
    free(c->call);
    c->call = NULL;
}

/* Whether the call has been heard, or its asker has called too often in the last second. */
static bool is_refused(const struct copy_calls *c, const struct peer_copy_call *call, uint64_t now)
{
    unsigned recent = 0;

    for (unsigned i = 0; i < c->ports * COPY_CALLS_KEPT; i++) {
        const struct heard_call *heard = &c->call[i];
        if (heard->at == 0 || heard->asker != call->asker)
            continue;
        if (heard->id == call->id && heard->number == call->number)
            return true;
        recent += elapsed(heard->at, now) < 1 * SECONDS;
    }
    return recent >= COPY_CALLS_ASKER;
}

bool copy_calls_take(struct copy_calls *c, unsigned port, const struct peer_copy_call *call,
                     uint64_t now)
{
    if (is_refused(c, call, now))
        return false;
    c->room[port] += (double)elapsed(c->at[port], now) / (double)SECONDS * COPY_CALLS_RATE;
    if (c->room[port] > COPY_CALLS_BURST)
        c->room[port] = COPY_CALLS_BURST;
    c->at[port] = now;
    if (c->room[port] < 1)
        return false;
    c->room[port] -= 1;
    c->call[port * COPY_CALLS_KEPT + c->next[port]] = (struct heard_call){
        .id = call->id, .at = now > 0 ? now : 1, .asker = call->asker, .number = call->number};
    c->next[port] = (c->next[port] + 1) % COPY_CALLS_KEPT;
    return true;
}

bool copy_calls_pass(struct copy_calls *c, const struct peer_copy_refusal *refusal, uint32_t nodes)
{
    for (unsigned i = 0; i < c->ports * COPY_CALLS_KEPT; i++) {
        struct heard_call *heard = &c->call[i];
        if (heard->at != 0 && heard->asker == refusal->asker && heard->id == refusal->id &&
            heard->refusals < nodes) {
            heard->refusals++;
            return true;
        }
    }
    return false;
}
