#include "daemon/lib/host/gather.h"

/* Interfaces come last: a machine may have so many of them that some are left out. What that is, nobody knows then. */
void gather_facts(struct facts *f, const char *settings, const struct gather_setup *setup)
{
    facts_begin(f);
    facts_add_lines(f, settings);
    gather_system(f);
    gather_clock(f);
    gather_limits(f);
    gather_disks(f, setup);
    gather_ip_routes(f);
    gather_diverted_cables(f, settings);
    gather_firewall(f);
    gather_interfaces(f, setup->past);
}
