/* Submits calls on the page that a program shares with its daemon, and waits for their end. */
#pragma once

#include "client/libtorus/link/link.h"

/* Returns the slot of the next call. The slot must be free. The caller fills in its request, and then calls
 * link_submit(). */
struct program_slot *link_next_slot(struct program_link *link);

/* Submits the call in the next slot to the daemon. */
void link_submit(struct program_link *link);

/* Returns whether call `number` has ended. If so, *e is the error of the call, or has code 0. */
bool link_has_ended(const struct program_link *link, uint32_t number, struct torus_error *e);

/* Returns whether call `number` is under way and late, so that the daemon has named the nodes that it waits for. If
 * so, copies this text to `whom`. */
bool link_is_late(const struct program_link *link, uint32_t number, char *whom, size_t size);

/* Checks that the group can be used: it has not failed, and this process has opened it. Returns 0, or -1 with *e. */
int link_check_group(struct program_link *link, struct torus_error *e);

/* Waits at most `nanoseconds` until call `number` has ended. Returns whether it has ended. Other threads may use the
 * link meanwhile, but must not close it. */
bool link_pause(const struct program_link *link, uint32_t number, uint64_t nanoseconds);

/* Waits until call `number` or the connection has ended. Sets *e as link_has_ended() does, or to the error of the
 * connection. */
void link_wait(struct program_link *link, uint32_t number, struct torus_error *e);

/* The program has learned the end of so many more calls (may be 0). Once it knows of every ended call, this clears
 * the descriptor of link_notices(). */
void link_acknowledge(struct program_link *link, uint32_t calls);

/* Returns a descriptor that is readable while a call has ended whose end the program has not learned. */
int link_notices(struct program_link *link);
