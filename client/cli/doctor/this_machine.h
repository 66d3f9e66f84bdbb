/* The machine on which torusctl runs, where no daemon can be asked. */
#pragma once

#include "client/cli/doctor/doctor.h"

#define CONFIGURATION "/etc/torusd/torusd.ini"
#define CLUSTER_FILE "/etc/torusd/cluster.ini"
#define UNIT "torusd.service"

/* Returns the facts of this machine, which the caller frees with free(); NULL if memory is short. They include the disks
 * of the folders that the configuration names, if the configuration can be read. */
char *this_machine_facts(void);

/* Adds findings that say why no daemon can be asked at this socket; `error` is what the attempt said. */
void this_machine_check_daemon(struct doctor *d, const char *socket, const char *error);
