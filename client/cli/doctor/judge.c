#include "client/cli/doctor/judge.h"

void doctor_judge(struct doctor *d)
{
    check_nodes(d);
    check_links(d);
    check_cables(d);
    check_interfaces(d);
    check_keys(d);
    check_clocks(d);
    check_disks(d);
    check_limits(d);
    check_routes(d);
    check_system(d);
}
