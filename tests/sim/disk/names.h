/* The functions of daemon/torusd/disk/file_system.h for names. */
#pragma once

#include "tests/sim/disk/file_system.h"

/* Sets these functions. */
void disk_names_init(struct file_system *files);
