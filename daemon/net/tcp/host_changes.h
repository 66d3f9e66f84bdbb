/* Interfaces, addresses and routes of this host change: all doors are looked at again. */
#ifndef TORUSD_NET_TCP_HOST_CHANGES_H
#define TORUSD_NET_TCP_HOST_CHANGES_H

#include "daemon/net/tcp/tcp_record.h"

/* Looks in so many milliseconds, unless that is due anyway. */
void host_changes_look_in(struct tcp *tcp, uint64_t milliseconds);

/* Who watches the carriers (carrier.h) of these connections; `closed` is the caller's. */
struct carrier_user host_changes_user(struct tcp *tcp, void (*closed)(void *context));

#endif
