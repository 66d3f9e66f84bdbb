/* The life of one connection; admission.c says how it begins. */
#ifndef TORUSD_ROUTER_LINKS_LINK_H
#define TORUSD_ROUTER_LINKS_LINK_H

#include <stdbool.h>

#include "proto/error.h"

struct link;

/* Closes the connection and frees the link, or, if the link is in use by a caller, does so soon. With
 * tell_peer the peer is told why first, so that it can log the reason. */
void link_give_up(struct link *link, const struct error *why, bool tell_peer);

/* The connection is gone (end of file, reset, write error). The link is freed. */
void link_closed(struct link *link, const char *reason);

/* Frees the handshake state of a link, and overwrites its keys. To be called when the link has proved
 * itself, or is freed. */
void link_forget_stranger(struct link *link);

#endif
