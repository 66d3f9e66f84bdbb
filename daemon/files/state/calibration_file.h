/* The last calibration that a node has heard of, in its state folder: lines of text, a name and a
 * number in each. */
#ifndef TORUSD_FILES_STATE_CALIBRATION_FILE_H
#define TORUSD_FILES_STATE_CALIBRATION_FILE_H

#include "daemon/files/state/journal.h"
#include "daemon/planning/calibration.h"

/* Reads and checks it. Returns 1 with *c, 0 if there is none, or -1 with *e: damaged, or it cannot
 * be read. */
int calibration_file_read(const struct journal *j, struct calibration *c, struct error *e);

/* Puts it in the place of the one before: a crash leaves this one or that one. Returns 0, or -1
 * with *e. */
int calibration_file_write(const struct journal *j, const struct calibration *c, struct error *e);

#endif
