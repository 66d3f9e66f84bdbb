/* The rates of links that plans of this node's exchanges and groups use: those of the link states (router/rates.h),
 * relative to the fastest links. They are taken over at once if a link has clearly changed after PLAN_RATES_HOLD
 * without a change; otherwise at most once in that time. So plans follow neither noise nor a link that changes all the
 * time. The root of an exchange or group lists them in Prepare, so nodes need not know the same ones. */
#pragma once

#include "daemon/lib/base/limits.h"
#include "daemon/lib/schedule/damage.h"
#include "daemon/torusd/exchange/attempt.h"

#define PLAN_RATES_HOLD (10 * SECONDS)
/* This many changes may follow each other at once, and then one in each PLAN_RATES_HOLD, so that a node that states
 * other rates all the time does not make the others plan all the time. */
#define PLAN_RATES_AT_ONCE 8u
/* An exchange continues on a new plan only if it would still take as long. */
#define PLAN_RATES_TIME_LEFT (2 * SECONDS)

/* Sets the rates of the channels of *d, if spec_uses_rates(); otherwise does nothing. Returns 0, or -1 with *e. */
int plan_rates_add(const struct exchanges *exchanges, const struct spec *s, struct damage *d,
                   struct error *e);

/* Sets the full rate of rates that the root has sent, for people: known if they are those of this node, too. */
void plan_rates_set_full(const struct exchanges *exchanges, struct damage *d);

/* To be called when a node has stated other rates, links have come up or gone down, or a group is open. */
void plan_rates_heard(struct exchanges *exchanges);

/* Whether plans use other rates than when this node, the root, planned this attempt. */
bool plan_rates_have_changed(const struct attempt *x);
/* Whether this node is the root of an exchange that should continue on a new plan for that reason: it can, and has much to
 * do still. */
bool plan_rates_call_for_another(const struct attempt *x);

/* Takes over the rates that nodes have stated, if it is time. Exchanges of this node that are under way, and have much
 * to do still, continue on a new plan; so do open groups, each at most once in PLAN_RATES_HOLD. */
void plan_rates_tick(struct exchanges *exchanges, uint64_t now);

/* Returns when plan_rates_tick() must be called next; ROUTER_NEVER: it need not be called. */
uint64_t plan_rates_deadline(const struct exchanges *exchanges);

/* Frees the rates. */
void plan_rates_free(struct exchanges *exchanges);

/* --- the list in Prepare: for each slow channel its number (rank * ports + port) and its rate, 1 to DAMAGE_FULL_RATE -
 * 1; channels rising --- */

/* Sets the list of a prepare, which the caller frees; it is empty if all links have the full rate. Returns 0; or -1 if
 * memory is short, and then the caller frees nothing. */
int plan_rates_pack(const struct damage *d, struct peer_prepare *prepare);

/* Reads the list into *d, whose links and nodes are set. Returns 0, or -1 with *e: no root sends such a list. */
int plan_rates_unpack(const struct peer_prepare *prepare, struct damage *d, struct error *e);
