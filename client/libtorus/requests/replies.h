/* Handles the daemon's replies to the operation under way. */
#pragma once

#include "client/libtorus/requests/client.h"

#define CLIENT_TICK 200 /* ms after which the progress function is called again without a reply */

/* Handles a reply to the operation under way, which may end the operation. Takes ownership of `reply`. */
void client_handle(struct torus_client *c, Control__Reply *reply);

/* Returns whether the operation has a progress function. */
bool client_shows_progress(const struct torus_client *c);

/* Calls the progress function of the operation, which must exist and may cancel the operation. Sets the time of the
 * next call. */
void client_report(struct torus_client *c);
