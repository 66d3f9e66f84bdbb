/* The side of a setup that receives it. */
#pragma once

#include "daemon/lib/discovery/record.h"
#include "proto/discovery.pb-c.h"

/* A letter from the sender of a setup. */
struct setup_letter {
    const struct host_id *from;
    const Discovery__Letter *letter;
    unsigned interface; /* that has brought it */
    bool proved;        /* its sender has the cluster key */
};
void setup_take_letter(struct discovery *d, const struct setup_letter *l);

/* Gives the next waiting setup to io.apply(), asks for missing chunks, and forgets setups whose senders have gone
 * silent. Returns when to call it again. */
uint64_t setup_take_tick(struct discovery *d);

/* The setup that io.apply() was given has ended. */
void setup_take_ended(struct discovery *d, const struct setup_end *end);

/* Forgets all setups. */
void setup_take_free(struct discovery *d);
