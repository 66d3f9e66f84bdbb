#include "daemon/torusd/router/flood_limit.h"

#include <stdlib.h>

#include "daemon/lib/base/limits.h"

int flood_limit_init(struct flood_limit *f, const struct flood_rules *rules, unsigned ports)
{
    *f = (struct flood_limit){.rules = rules, .ports = ports};
    for (unsigned port = 0; port < ports; port++)
        f->allowance[port].left = rules->burst * (SECONDS / rules->rate);
    f->message = calloc((size_t)ports * rules->kept, sizeof *f->message);
    return f->message != NULL || ports == 0 ? 0 : -1;
}

void flood_limit_free(struct flood_limit *f)
{
    free(f->message);
    f->message = NULL;
}

/* Whether the message has been heard, or its initiator has asked too often in the last second. */
static bool is_refused(const struct flood_limit *f, const struct flooded *message, uint64_t now)
{
    unsigned cost = message->cost;

    for (unsigned i = 0; i < f->ports * f->rules->kept; i++) {
        const struct flooded *heard = &f->message[i];
        if (heard->at == 0 || heard->initiator != message->initiator)
            continue;
        if (heard->id == message->id && heard->number == message->number)
            return true;
        if (elapsed(heard->at, now) < 1 * SECONDS)
            cost += heard->cost;
    }
    return cost > f->rules->initiator;
}

struct flooded *flood_limit_take(struct flood_limit *f, unsigned port,
                                 const struct flooded *message, uint64_t now)
{
    const struct flood_rules *rules = f->rules;
    const uint64_t one = SECONDS / rules->rate;

    if (is_refused(f, message, now) ||
        !allowance_take(&f->allowance[port], now, message->cost * one, rules->burst * one))
        return NULL;
    struct flooded *heard = &f->message[port * rules->kept + f->next[port]];
    f->next[port] = (f->next[port] + 1) % rules->kept;
    *heard = *message;
    heard->at = now > 0 ? now : 1;
    heard->port = port;
    return heard;
}

struct flooded *flood_limit_answer(struct flood_limit *f, uint32_t initiator, uint64_t id)
{
    for (unsigned i = 0; i < f->ports * f->rules->kept; i++) {
        struct flooded *heard = &f->message[i];
        if (heard->at != 0 && heard->initiator == initiator && heard->id == id &&
            heard->answers_left > 0) {
            heard->answers_left--;
            return heard;
        }
    }
    return NULL;
}
