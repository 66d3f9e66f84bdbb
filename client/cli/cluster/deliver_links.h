/* Delivers setups over the links of the cluster, through the discovery processes of the hosts. */
#ifndef TORUSD_CLI_DELIVER_LINKS_H
#define TORUSD_CLI_DELIVER_LINKS_H

#include "client/cli/cluster/deliver.h"

/* Like deliver(), whose parameters these are. Hosts that are further away come first, and this host comes last: a host
 * passes on setups of others before its own configuration changes. Sets the error of each host that failed. */
void deliver_links(struct delivery *list, uint32_t count, bool apply, const char *socket);

#endif
