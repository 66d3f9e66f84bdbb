/* Rechecks all connectors when interfaces, addresses or routes of this host have changed. */
#pragma once

#include "daemon/torusd/net/tcp/tcp_record.h"

/* Rechecks all connectors after so many milliseconds, unless a recheck is due earlier. */
void host_changes_recheck_in(struct tcp *tcp, uint64_t milliseconds);

/* Returns the functions that carrier.h calls for these connections; `closed` is the caller's. */
struct carrier_user host_changes_user(struct tcp *tcp, void (*closed)(void *context));
