/* The calibration in the state folder. `context` is the folders. */
#pragma once

#include "daemon/torusd/planning/calibration.h"
#include "proto/error.h"

/* As storage.store_calibration(). Calibrations are written one after the other, so that the last one
 * remains. */
void calibrations_store(void *context, const struct calibration *c);

/* As storage.load_calibration(). */
int calibrations_load(void *context, struct calibration *c, struct error *e);
