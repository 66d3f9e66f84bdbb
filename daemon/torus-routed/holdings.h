/* What torus-routed has set on this host, so that it, or a later process, can remove it again: the lock and the notes
 * in the folder of --state, the interface with the addresses of the host, routes, settings, rules of firewalls. */
#pragma once

#include "daemon/torus-routed/host_addresses.h"
#include "daemon/torus-routed/kernel/kernel.h"
#include "daemon/torus-routed/kernel/settings.h"

struct holdings {
    const char *state, *interface; /* of the options; borrowed */
    struct netlink netlink;
    struct settings settings;
    int lock, place;      /* of the state folder, and of the network namespace */
    char noted[IFNAMSIZ]; /* the interface that is ours; "": none */
};

/* Takes the place of the only torus-routed in this network namespace, and the state folder, and reads what a former
 * process has noted. Fails if another process has one of them, or if there are links in the folder. Returns 0, or -1 with *e. The caller calls holdings_close() in any case. */
int holdings_open(struct holdings *h, const char *state, const char *interface, struct error *e);
void holdings_close(struct holdings *h);

/* Whether this process, or a former one, has set anything. */
bool holdings_any(const struct holdings *h);

/* Fails if the interface exists, and neither we nor 'torusctl ip-routes' have made it: it would be lost at the end.
 * Returns 0, or -1 with *e. */
int holdings_may_use_interface(struct holdings *h, struct error *e);

/* Makes the interface with the addresses of this host, and sets what the host needs to forward. Repairs what others have
 * changed since the last call. Without IPv6, *v6 becomes false and IPv4 is set. Returns 0, or -1 with *e. */
int holdings_prepare(struct holdings *h, const struct host_entry *self, uint32_t rank, bool *v6,
                     struct error *e);

/* Removes everything that the notes list; with `all`, also routes and torus0 that no note lists. Returns 0, or -1 with
 * *e: then something is left, and its notes. */
int holdings_remove(struct holdings *h, bool all, struct error *e);
