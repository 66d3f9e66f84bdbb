/* The life of one connection; admission.c says how it begins. */
#pragma once

#include <stdbool.h>

#include "proto/error.h"

struct link;

/* Closes the connection and frees the link; if a caller still uses the link, this happens soon afterwards.
 * With `tell_peer` the reason is sent to the peer first, so that the peer can log it. */
void link_give_up(struct link *link, const struct error *why, bool tell_peer);

/* To be called when the connection has ended (end of file, reset, write error). Frees the link. */
void link_closed(struct link *link, const char *reason);

/* Frees the handshake state of a link, and overwrites its keys. To be called when the link has proved
 * itself, or is freed. */
void link_forget_stranger(struct link *link);
