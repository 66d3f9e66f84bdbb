/* Delivers setups over the links of the cluster, through the discovery processes of the hosts. */
#pragma once

#include "client/cli/cluster/deliver.h"

/* Does what deliver() says, over the links. This host is set up first. If it fails, the others are not tried; if others
 * fail, this host already has the cluster key with which they accept the same setups again. Sets the error of each host
 * that failed. */
void deliver_links(struct delivery *list, uint32_t count, bool apply, const char *socket,
                   const struct secrets *secrets);

/* Takes the answer of a host: what its torusctl has printed, if it was `done`. Otherwise sets the error, to what the
 * output says, or else to the first line of `why`. */
void deliver_take(struct delivery *d, const char *output, bool done, const char *why);
