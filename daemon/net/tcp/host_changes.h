/* Looks at all doors again when interfaces, addresses or routes of this host have changed. */
#ifndef TORUSD_NET_TCP_HOST_CHANGES_H
#define TORUSD_NET_TCP_HOST_CHANGES_H

#include "daemon/net/tcp/tcp_record.h"

/* Looks at all doors in so many milliseconds, unless that is due anyway. */
void host_changes_look_in(struct tcp *tcp, uint64_t milliseconds);

/* Returns the functions that carrier.h calls for these connections; `closed` is the caller's. */
struct carrier_user host_changes_user(struct tcp *tcp, void (*closed)(void *context));

#endif
