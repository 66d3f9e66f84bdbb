/* All checks. */
#pragma once

#include "client/cli/doctor/doctor.h"

/* Runs all checks. The caller gives *d to doctor_free(). */
void doctor_judge(struct doctor *d);

/* --- the checks, a file each --- */

void check_nodes(struct doctor *d);  /* missing nodes, versions */
void check_links(struct doctor *d);  /* links that are down, packets that are sent again */
void check_cables(struct doctor *d); /* cables that lead elsewhere, ranks that two machines have */
void check_interfaces(struct doctor *d); /* MTU, speed, errors, offloads */
void check_clocks(struct doctor *d);
void check_keys(struct doctor *d);
void check_disks(struct doctor *d);
void check_limits(struct doctor *d); /* files, memory, load */
void check_system(struct doctor *d); /* settings of the kernel, governors */
void check_routes(struct doctor *d); /* IP routes, firewall */
