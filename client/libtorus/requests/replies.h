/* Replies of the daemon to the operation under way. */
#ifndef TORUSD_CLIENT_REPLIES_H
#define TORUSD_CLIENT_REPLIES_H

#include "client/libtorus/requests/client.h"

#define CLIENT_TICK 200 /* ms between two calls of a progress function, at most */

/* Takes over a reply while an operation is under way, which it may end. */
void client_handle(struct torus_client *c, Control__Reply *reply);

/* Calls the operation's progress function, which there is, and sets when it is called next. It may cancel the
 * operation. */
void client_report(struct torus_client *c);

#endif
