/* The report of this host. */
#ifndef TORUSD_DISCOVERY_OWN_REPORT_H
#define TORUSD_DISCOVERY_OWN_REPORT_H

#include "daemon/discovery/record.h"

/* Makes and stores a new report of this host's interfaces and neighbours, and sets the time of the next one.
 * Without memory the former report stays for a moment. */
void own_report_make(struct discovery *d);

#endif
