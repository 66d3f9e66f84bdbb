/* Calls on the page that a program shares with its daemon: making them, and waiting for their
 * end. */
#ifndef TORUSD_CLIENT_LINK_CALLS_H
#define TORUSD_CLIENT_LINK_CALLS_H

#include "client/libtorus/link/link.h"

/* The slot of the next call, which must not be in use any more. The caller fills in its request
 * before link_submit(). */
struct program_slot *link_next_slot(struct program_link *link);
void link_submit(struct program_link *link);

/* Whether call `number` has ended. If so, *e has the call's error, or code 0. */
bool link_has_ended(const struct program_link *link, uint32_t number, struct torus_error *e);

/* Whether the daemon has named the nodes that a call waits for, which has not ended. If so,
 * copies their names to `whom`. */
bool link_is_late(const struct program_link *link, uint32_t number, char *whom, size_t size);

/* Checks that the group has not failed. Returns 0, or -1 with *e. */
int link_is_whole(struct program_link *link, struct torus_error *e);

/* Waits until call `number` has ended, for at most so many nanoseconds. Returns whether it has
 * ended. Other threads may use the link meanwhile, but must not close it. */
bool link_pause(const struct program_link *link, uint32_t number, uint64_t nanoseconds);

/* Waits until call `number` or the connection has ended; *e is set as by link_has_ended(). */
void link_wait(struct program_link *link, uint32_t number, struct torus_error *e);

/* The caller knows of the end of so many more calls, or has looked for ended calls. */
void link_told(struct program_link *link, uint32_t calls);

/* A descriptor that is readable while a call has ended of which the caller does not know. */
int link_notices(struct program_link *link);

#endif
