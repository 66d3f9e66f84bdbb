/* Links that stand out. */
#ifndef TORUSD_CLI_FIND_LINKS_H
#define TORUSD_CLI_FIND_LINKS_H

#include "client/cli/reporting/finding_list.h"

/* Adds a finding for each link that went down. */
void find_links_down(struct finding_list *l);
/* Adds a finding for each cable of which a direction is slow, or on which TCP sent packets again. */
void find_links(struct finding_list *l);

#endif
