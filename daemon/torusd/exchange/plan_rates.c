#include "daemon/torusd/exchange/plan_rates.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "daemon/lib/base/log.h"
#include "daemon/lib/schedule/detour/detour.h"
#include "daemon/torusd/exchange/abort.h"
#include "daemon/torusd/exchange/job.h"
#include "daemon/torusd/exchange/membership.h"
#include "daemon/torusd/exchange/states.h"
#include "proto/elapsed.h"

#define GATHER (50 * MILLISECONDS) /* many statements arrive together */
#define CLEARLY 5u / 4u            /* a link has changed, if its rate has by this factor */
#define ROUNDS_LEFT 2u             /* fewest for which a new plan is made while an exchange runs */

/* --- the rates that nodes state, relative to the fastest --- */

static size_t channels_of(const struct torus *t)
{
    return (size_t)t->nodes * torus_ports(t);
}

/* Returns an array with the rate of each channel, which the caller frees, and sets the full rate. Returns NULL if all links
 * are alike or memory is short: then the plan treats them as alike. */
static uint16_t *stated_rates(struct exchanges *exchanges, uint32_t *full_kbit)
{
    const struct torus *t = router_torus(exchanges->set.router);
    const struct topology *topology = router_topology(exchanges->set.router);
    const size_t channels = channels_of(t);
    const bool knows = router_knows_rates(exchanges->set.router);
    uint32_t *kbit = knows ? calloc(channels, sizeof *kbit) : NULL;
    uint16_t *rates = kbit != NULL ? calloc(channels, sizeof *rates) : NULL;

    exchanges->rates.fastest = 0;
    for (size_t i = 0; rates != NULL && i < channels; i++) {
        const uint32_t rank = (uint32_t)(i / torus_ports(t));
        const unsigned port = (unsigned)(i % torus_ports(t));
        if (topology_link_up(topology, rank, port))
            kbit[i] = topology_channel_rate(topology, rank, port);
        if (kbit[i] > exchanges->rates.fastest)
            exchanges->rates.fastest = kbit[i];
    }
    const bool differ = rates != NULL && damage_relative_rates(kbit, channels, rates);
    *full_kbit = differ ? damage_full_rate(kbit, channels) : 0;
    free(kbit);
    if (differ)
        return rates;
    free(rates);
    return NULL;
}

static uint16_t rate_of(const uint16_t *rates, size_t channel)
{
    return rates != NULL ? rates[channel] : DAMAGE_FULL_RATE;
}

/* --- those that plans use --- */

int plan_rates_add(const struct exchanges *exchanges, const struct spec *s, struct damage *d,
                   struct error *e)
{
    if (d->torus.nodes > DETOUR_DISJOINT_MOST && strcmp(s->algorithm, FOUND_DISJOINT_NAME) == 0)
        return 0; /* its trees for tori know no rates */
    return spec_uses_rates(s) ? membership_add_rates(exchanges, d, e) : 0;
}

void plan_rates_heard(struct exchanges *exchanges)
{
    const uint64_t at = router_now(exchanges->set.router) + GATHER;

    if (at < exchanges->rates.look_at)
        exchanges->rates.look_at = at;
}

static bool is_clear(uint32_t before, uint32_t now)
{
    return before > now * CLEARLY || now > before * CLEARLY;
}

/* Whether any rate differs from those in use; *at_once: one does so by more than noise, and has not for long. */
static bool differ(const struct exchanges *exchanges, const uint16_t *fresh, uint64_t now,
                   bool *at_once)
{
    const size_t channels = channels_of(router_torus(exchanges->set.router));
    const uint64_t *cleared = exchanges->rates.cleared;
    bool any = false;

    *at_once = false;
    for (size_t i = 0; i < channels; i++) {
        const uint32_t before = rate_of(exchanges->rates.used, i), then = rate_of(fresh, i);
        const bool lately =
            cleared != NULL && cleared[i] > 0 && elapsed(cleared[i], now) < PLAN_RATES_HOLD;
        any = any || before != then;
        *at_once = *at_once || (!lately && is_clear(before, then));
    }
    return any;
}

static void take_over(struct exchanges *exchanges, uint16_t *fresh, uint32_t full_kbit,
                      uint64_t now)
{
    const size_t channels = channels_of(router_torus(exchanges->set.router));
    struct plan_rates *r = &exchanges->rates;

    if (r->cleared == NULL) /* without memory, PLAN_RATES_AT_ONCE alone is the limit */
        r->cleared = calloc(channels, sizeof *r->cleared);
    for (size_t i = 0; r->cleared != NULL && i < channels; i++)
        if (is_clear(rate_of(r->used, i), rate_of(fresh, i)))
            r->cleared[i] = now;
    free(r->used);
    r->used = fresh;
    r->full_kbit = full_kbit;
    r->changed_at = now;
    r->changes++;
}

bool plan_rates_have_changed(const struct attempt *x)
{
    return x->planned_at != x->exchanges->rates.changes && spec_uses_rates(&x->spec);
}

bool plan_rates_call_for_another(const struct attempt *x)
{
    const struct rounds *r = &x->rounds;
    /* While the first round lasts, perhaps all that may have begun is nearly done. */
    const uint64_t done = r->round > 0 ? r->round : r->admitted;
    const uint64_t took = elapsed(r->first_go_at, router_now(router_of(x)));

    if (!attempt_is_root(x) || !plan_rates_have_changed(x) || !retry_may_continue(x) ||
        r->count < done + ROUNDS_LEFT)
        return false;
    return (double)took * (double)(r->count - done) / (double)done >= (double)PLAN_RATES_TIME_LEFT;
}

/* What moves in steps waits for the end of a round: what has arrived of a round would be sent again. */
static void change_exchanges(struct exchanges *exchanges)
{
    struct attempt *x, *next;

    DL_FOREACH_SAFE (exchanges->active, x, next)
        if (x->mode == MODE_STREAMING && plan_rates_call_for_another(x))
            retry_rates_changed(x);
}

/* Whether plans may change now: a link has clearly changed, or they have not changed for long. */
static bool may_change(struct plan_rates *r, bool at_once, uint64_t now)
{
    const bool held = r->changed_at > 0 && elapsed(r->changed_at, now) < PLAN_RATES_HOLD;

    return (at_once || !held) && allowance_take(&r->allowance, now, PLAN_RATES_HOLD,
                                                PLAN_RATES_AT_ONCE * PLAN_RATES_HOLD);
}

/* Whether this is an open group of this node that was planned with other rates. */
static bool is_outdated(const struct attempt *x)
{
    const struct torus *t = torus_of(x);
    const struct damage *d = x->avoided != NULL ? &x->avoided->damage : NULL;

    if (!attempt_is_root(x) || !kind_of(x)->has_session || !state_of(x)->moves ||
        x->fault.at != ROUTER_NEVER)
        return false;
    for (uint32_t i = 0; i < channels_of(t); i++) {
        const uint32_t rank = i / torus_ports(t);
        const unsigned port = i % torus_ports(t);
        const bool used = d != NULL ? damage_has_link(d, rank, port)
                                    : torus_neighbour(t, rank, port) != TORUS_NO_NODE;
        const uint16_t planned = d != NULL ? damage_rate(d, rank, port) : DAMAGE_FULL_RATE;
        if (used && planned != rate_of(x->exchanges->rates.used, i))
            return true;
    }
    return false;
}

/* Restarts open groups of this node that were planned with other rates. A group is restarted at most once in
 * PLAN_RATES_HOLD, because each restart pauses it. */
static void change_groups(struct exchanges *exchanges, uint64_t now)
{
    struct attempt *x, *next;

    DL_FOREACH_SAFE (exchanges->active, x, next) {
        if (!is_outdated(x))
            continue;
        const uint64_t at = x->job->replanned_at > 0 ? x->job->replanned_at + PLAN_RATES_HOLD : now;
        if (now >= at) {
            x->job->replanned_at = now;
            retry_rates_changed(x);
        } else if (at < exchanges->rates.look_at) {
            exchanges->rates.look_at = at;
        }
    }
}

/* Takes over the rates that nodes state, if they are others and it is time. Returns whether it did. */
static bool look(struct exchanges *exchanges, uint64_t now)
{
    struct plan_rates *r = &exchanges->rates;
    uint32_t full_kbit;
    uint16_t *fresh = stated_rates(exchanges, &full_kbit);
    bool at_once;

    if (!differ(exchanges, fresh, now, &at_once)) {
        r->full_kbit = full_kbit; /* all rates may have changed alike */
        free(fresh);
        return false;
    }
    if (!may_change(r, at_once, now)) {
        r->look_at = r->changed_at + PLAN_RATES_HOLD;
        free(fresh);
        return false;
    }
    take_over(exchanges, fresh, full_kbit, now);
    return true;
}

void plan_rates_tick(struct exchanges *exchanges, uint64_t now)
{
    if (now < exchanges->rates.look_at)
        return;
    exchanges->rates.look_at = ROUTER_NEVER;
    if (look(exchanges, now))
        change_exchanges(exchanges);
    change_groups(exchanges, now);
}

uint64_t plan_rates_deadline(const struct exchanges *exchanges)
{
    return exchanges->rates.look_at;
}

void plan_rates_free(struct exchanges *exchanges)
{
    free(exchanges->rates.used);
    free(exchanges->rates.cleared);
    exchanges->rates = (struct plan_rates){0};
}

void plan_rates_set_full(const struct exchanges *exchanges, struct damage *d)
{
    const unsigned ports = torus_ports(&d->torus);
    bool same = d->rate != NULL;

    for (uint32_t i = 0; same && i < channels_of(&d->torus); i++)
        same = !damage_has_link(d, i / ports, i % ports) ||
               damage_rate(d, i / ports, i % ports) == rate_of(exchanges->rates.used, i);
    d->full_kbit = same ? exchanges->rates.full_kbit : 0;
}

/* --- the list in Prepare --- */

int plan_rates_pack(const struct damage *d, struct peer_prepare *prepare)
{
    const unsigned ports = torus_ports(&d->torus);
    uint32_t *list;

    prepare->n_rates = 0;
    prepare->rates = NULL;
    if (d->rate == NULL)
        return 0;
    list = calloc(2 * channels_of(&d->torus), sizeof *list);
    if (list == NULL)
        return -1;
    prepare->rates = list;
    for (uint32_t i = 0; i < channels_of(&d->torus); i++) {
        const uint16_t rate = damage_rate(d, i / ports, i % ports);
        if (rate == DAMAGE_FULL_RATE || !damage_has_link(d, i / ports, i % ports))
            continue;
        list[prepare->n_rates++] = i;
        list[prepare->n_rates++] = rate;
    }
    return 0;
}

int plan_rates_unpack(const struct peer_prepare *prepare, struct damage *d, struct error *e)
{
    const unsigned ports = torus_ports(&d->torus);

    if (prepare->n_rates % 2 != 0)
        return error_set(e, ERROR_PROTOCOL, "prepare has a channel without a rate");
    for (size_t i = 0; i < prepare->n_rates; i += 2) {
        const uint32_t channel = prepare->rates[i], rate = prepare->rates[i + 1];
        if (channel / ports >= d->torus.nodes ||
            !damage_has_link(d, channel / ports, channel % ports) ||
            (i > 0 && channel <= prepare->rates[i - 2]) || rate == 0 || rate >= DAMAGE_FULL_RATE)
            return error_set(e, ERROR_PROTOCOL,
                             "prepare has rate %u of channel %u, which does not exist, is down, or "
                             "is out of order in the list; or no channel has such a rate",
                             rate, channel);
        if (damage_set_rate(d, channel / ports, channel % ports, (uint16_t)rate, e) != 0)
            return -1;
    }
    return 0;
}
