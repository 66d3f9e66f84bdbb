/* The machine on which torusctl runs, where no daemon can be asked. */
#ifndef TORUSD_CLI_THIS_MACHINE_H
#define TORUSD_CLI_THIS_MACHINE_H

#include "client/cli/doctor/doctor.h"

#define CONFIGURATION "/etc/torusd/torusd.ini"
#define UNIT "torusd.service"

/* Gathers the facts, with the folders of the configuration if it can be read; malloc'ed. NULL if there is no memory. */
char *this_machine_facts(void);

/* Adds findings that say why no daemon can be asked at this socket; `error` is what the attempt said. */
void this_machine_check_daemon(struct doctor *d, const char *socket, const char *error);

#endif
