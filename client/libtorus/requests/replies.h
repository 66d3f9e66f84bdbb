/* Replies of the daemon to the operation under way. */
#ifndef TORUSD_CLIENT_REPLIES_H
#define TORUSD_CLIENT_REPLIES_H

#include "client/libtorus/requests/client.h"

#define CLIENT_TICK 200 /* the least time in ms between two calls of a progress function */

/* Handles a reply to the operation under way, which it may end. Takes over `reply`. */
void client_handle(struct torus_client *c, Control__Reply *reply);

/* Calls the operation's progress function, which must exist, and sets the time of the next call.
 * That function may cancel the operation. */
void client_report(struct torus_client *c);

#endif
