/* The calibration in the state folder. `context` is the folders. */
#ifndef TORUSD_FILES_TASKS_CALIBRATIONS_H
#define TORUSD_FILES_TASKS_CALIBRATIONS_H

#include "daemon/planning/calibration.h"
#include "proto/error.h"

/* As storage.store_calibration(). Calibrations are written one after the other, so that the last one
 * remains. */
void calibrations_store(void *context, const struct calibration *c);

/* As storage.load_calibration(). */
int calibrations_load(void *context, struct calibration *c, struct error *e);

#endif
