/* Delivers setups over the links of the cluster, through the discovery processes of the hosts. */
#ifndef TORUSD_CLI_DELIVER_LINKS_H
#define TORUSD_CLI_DELIVER_LINKS_H

#include "client/cli/cluster/deliver.h"

/* Like deliver(), whose parameters these are. This host comes first: if it fails, the others are not tried, and if
 * others fail, this host has the cluster key with which they accept the same setups again. Sets the error of each host
 * that failed. */
void deliver_links(struct delivery *list, uint32_t count, bool apply, const char *socket,
                   const struct secrets *secrets);

#endif
