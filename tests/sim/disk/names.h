/* The functions of daemon/files/system/file_system.h for names. */
#ifndef TORUSD_TESTS_SIM_DISK_NAMES_H
#define TORUSD_TESTS_SIM_DISK_NAMES_H

#include "tests/sim/disk/file_system.h"

/* Sets these functions. */
void disk_names_init(struct file_system *files);

#endif
