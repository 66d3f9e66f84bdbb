/* Watches the interfaces of the links by rtnetlink: a cable that is pulled is known at once, without
 * waiting for its silence. Needs no capabilities.
 *
 * Which interface a link uses follows from its local address. The state of all of them is read again
 * whenever the system reports that any interface or address has changed, and whenever it says that
 * reports have been lost; only differences are told. So a cable that is pulled and plugged in again
 * within one turn of the loop is not noticed; TCP sends again what was lost. (For most network cards
 * Linux reports the first change at once, and no more than one a second after it.) */
#ifndef TORUSD_NET_CARRIER_H
#define TORUSD_NET_CARRIER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <uv.h>

#define CARRIER_TEXT_SIZE 160u

struct carrier;

/* Called from carrier_look(): `fault` says why the link of `port` cannot work ("no carrier on eth1"),
 * or is NULL: it can again. */
typedef void carrier_changed(void *context, unsigned port, const char *fault);

/* Returns NULL, and logs it, if interfaces cannot be watched: links are then given up when they are
 * silent. `closed` is called when the last handle has been closed after carrier_close(). */
struct carrier *carrier_open(uv_loop_t *loop, carrier_changed *changed,
                             void (*closed)(void *context), void *context);
void carrier_close(struct carrier *c);

/* The link of `port` has this local address from now on (copied; its port number is ignored). Addresses
 * that no interface has, such as the wildcard's, and those of loopback interfaces are never at fault. */
void carrier_watch(struct carrier *c, unsigned port, const struct sockaddr *local);
/* Whether that has been told of this port. */
bool carrier_watches(const struct carrier *c, unsigned port);

/* Tells what has changed. Call it before the loop sleeps. Returns true if it is to be called again
 * before that. */
bool carrier_look(struct carrier *c);

#endif
