/* Calls on the page that a program shares with its daemon: made, waited for, and known to have ended. */
#ifndef TORUSD_CLIENT_LINK_CALLS_H
#define TORUSD_CLIENT_LINK_CALLS_H

#include "client/libtorus/link/link.h"

/* The slot of the next call, whose request the caller fills in before link_submit(). It must not be
 * in use any more. */
struct program_slot *link_next_slot(struct program_link *link);
void link_submit(struct program_link *link);

/* Whether call `number` has ended; then *e says why, or has code 0. */
bool link_has_ended(const struct program_link *link, uint32_t number, struct torus_error *e);

/* Whether the daemon has said whom a call that has not ended waits for; then copies that. */
bool link_is_late(const struct program_link *link, uint32_t number, char *whom, size_t size);

/* Whether the group has not failed: 0, or -1 with *e. */
int link_is_whole(struct program_link *link, struct torus_error *e);

/* Waits until call `number` has ended, for that long at most. Returns whether it has. Other threads may use
 * the link meanwhile, as long as they do not close it. */
bool link_pause(const struct program_link *link, uint32_t number, uint64_t nanoseconds);

/* Waits until call `number` has ended, as above, or the connection. */
void link_wait(struct program_link *link, uint32_t number, struct torus_error *e);

/* The caller knows of the end of one more call, or has looked. */
void link_told(struct program_link *link, uint32_t calls);

/* Readable whenever a call has ended that the caller does not know of. */
int link_notices(struct program_link *link);

#endif
