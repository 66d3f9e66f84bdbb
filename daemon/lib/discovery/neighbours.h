/* Which hosts this host hears on its interfaces. */
#pragma once

#include "daemon/lib/discovery/record.h"
#include "proto/discovery.pb-c.h"

/* Sends a hello over an interface, and sets the time of the next one. `leaving`: the neighbours forget this
 * host at once. */
void neighbours_hello(struct discovery *d, struct own_interface *at, bool leaving);

/* Handles a hello. */
void neighbours_take_hello(struct discovery *d, struct own_interface *at,
                           const struct discovery_address *from, const Discovery__Signed *s);

/* Drops neighbours that have been silent for too long, or all if the interface cannot be used. */
void neighbours_expire(struct discovery *d, struct own_interface *at);

/* Notes that the report of this host must change. It is made after a short pause, so that it has all changes of a
 * moment. */
void neighbours_changed(struct discovery *d);

/* Returns the neighbour *from that this host hears on its interface `by`, and the index of that interface; NULL if it
 * hears no such neighbour. */
const struct neighbour *neighbours_find(const struct discovery *d, const char *by,
                                        const struct heard *from, unsigned *interface);

/* Notes that a packet arrived from a host with which this host cannot speak: its report has not arrived yet, or its
 * release speaks another version. If that lasts, the interface is reported as unanswered. */
void neighbours_note_stranger(const struct discovery *d, struct own_interface *at);
