/* The life of one connection; admission.c says how it begins. */
#ifndef TORUSD_ROUTER_LINKS_LINK_H
#define TORUSD_ROUTER_LINKS_LINK_H

#include <stdbool.h>

#include "proto/error.h"

struct link;

/* Closes the connection and frees the link, unless it is in use: then soon. With tell_peer the other side is told
 * why first, so that it can name the reason in its own log. */
void link_give_up(struct link *link, const struct error *why, bool tell_peer);

/* The connection is gone (end of file, reset, write error). The link is freed. */
void link_closed(struct link *link, const char *reason);

/* It has been proved, or goes: frees what it had as a stranger, keys overwritten. */
void link_forget_stranger(struct link *link);

#endif
