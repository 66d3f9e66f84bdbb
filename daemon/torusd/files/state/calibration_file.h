/* The file in the state folder with the last calibration that this node knows: lines of text, each with a
 * name and a number. */
#pragma once

#include "daemon/torusd/files/state/journal.h"
#include "daemon/torusd/planning/calibration.h"

/* Reads and checks the file. Returns 1 with *c, 0 if there is none, or -1 with *e: it is damaged, or cannot
 * be read. */
int calibration_file_read(const struct journal *j, struct calibration *c, struct error *e);

/* Replaces the file: a crash leaves the old or the new calibration. Returns 0, or -1 with *e. */
int calibration_file_write(const struct journal *j, const struct calibration *c, struct error *e);
