/* The side of a setup that receives it, and runs the command. */
#ifndef TORUSD_DISCOVERY_SETUP_TAKE_H
#define TORUSD_DISCOVERY_SETUP_TAKE_H

#include "daemon/discovery/record.h"
#include "proto/discovery.pb-c.h"

/* Handles a letter from the sender of a setup. */
void setup_take_letter(struct discovery *d, const struct host_id *from,
                       const Discovery__Letter *letter);

/* Starts the command for a setup that waits, asks for missing parts, and forgets setups whose senders are
 * silent. Returns when to call it again. */
uint64_t setup_take_tick(struct discovery *d);

/* The command has ended for the setup that it ran for. */
void setup_take_ended(struct discovery *d, const struct setup_answer *answer);

/* Forgets all setups. */
void setup_take_free(struct discovery *d);

#endif
