/* The functions of daemon/files/system/file_system.h that read and write: what is written to an output is compared at once. */
#ifndef TORUSD_TESTS_SIM_DISK_BYTES_H
#define TORUSD_TESTS_SIM_DISK_BYTES_H

#include "tests/sim/disk/file_system.h"

/* Fills them in. */
void disk_bytes_init(struct file_system *files);

#endif
