/* The functions of daemon/files/system/file_system.h that read and write. Bytes written to an output are checked at
 * once. */
#ifndef TORUSD_TESTS_SIM_DISK_BYTES_H
#define TORUSD_TESTS_SIM_DISK_BYTES_H

#include "tests/sim/disk/file_system.h"

/* Sets these functions. */
void disk_bytes_init(struct file_system *files);

#endif
