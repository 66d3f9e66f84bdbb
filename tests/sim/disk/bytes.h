/* The functions of daemon/torusd/disk/file_system.h that read and write. Bytes written to an output are checked at
 * once. */
#pragma once

#include "tests/sim/disk/file_system.h"

/* Sets these functions. */
void disk_bytes_init(struct file_system *files);
