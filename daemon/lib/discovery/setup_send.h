/* The side of a setup that sends it. */
#pragma once

#include "daemon/lib/discovery/record.h"
#include "proto/discovery.pb-c.h"

/* Handles a letter from the receiver. Returns false if it belongs to no setup of this host. */
bool setup_send_take(struct discovery *d, const struct host_id *from,
                     const Discovery__Letter *letter);

/* Asks again, and gives up. Returns when to call it again. */
uint64_t setup_send_tick(struct discovery *d);

/* Forgets all setups. */
void setup_send_free(struct discovery *d);
