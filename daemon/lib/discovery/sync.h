/* Makes the databases of neighbours equal: new reports are passed on at once; what got lost is found by
 * digests in hellos, and by summaries. */
#pragma once

#include "daemon/lib/discovery/record.h"
#include "proto/discovery.pb-c.h"

/* The allowance of an interface, in nanoseconds: a packet costs SYNC_TOKEN. */
#define SYNC_TOKEN (SECONDS / DISCOVERY_RATE)
#define SYNC_TOKENS_MOST (DISCOVERY_BURST * SYNC_TOKEN)

/* Sends the report of this host to all neighbours. */
void sync_send_own(struct discovery *d);

/* Sends a summary to a neighbour whose digest differs, unless it has just been sent one. */
void sync_compare(struct discovery *d, const struct own_interface *at, struct neighbour *n);

/* Asks for the report of a host. */
void sync_ask(struct discovery *d, const struct own_interface *at,
              const struct discovery_address *to, const struct host_id *host);

/* Handle packets. `at` is the interface by which they came. */
void sync_take_reports(struct discovery *d, struct own_interface *at,
                       const Discovery__Reports *reports);
void sync_take_summary(struct discovery *d, struct own_interface *at,
                       const struct discovery_address *from, const Discovery__Summary *summary);
void sync_take_want(struct discovery *d, struct own_interface *at,
                    const struct discovery_address *from, const Discovery__Want *want);

/* Takes one packet from the interface's allowance for strangers. Returns whether there was one. */
bool sync_allowed(struct discovery *d, struct own_interface *at);
/* The same for a letter that is for another host. It costs twice as much, so that a flood does not use up the allowance
 * that the next host has for this one. */
bool sync_may_pass_on(struct discovery *d, struct own_interface *at);
