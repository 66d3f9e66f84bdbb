/* Links that stand out. */
#pragma once

#include "client/cli/reporting/finding_list.h"

/* Adds a finding for each link that went down. */
void find_links_down(struct finding_list *l);
/* Adds a finding for each cable of which a direction is slow, or on which TCP sent packets again. */
void find_links(struct finding_list *l);
