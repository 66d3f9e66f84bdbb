/* Shows the findings of a diagnosis. */
#pragma once

#include <jansson.h>

#include "client/cli/doctor/diagnosis.h"

/* {"worst": ..., "nodes": N, "answered": {"state": N, "facts": N}, "counts": {...}, "checks": [{"check": ..., "fine": N,
 * "not_seen": N, "wrong": N}, ...], "findings": [...]}; without findings that are fine unless `all`. What has one cause is
 * one finding: `hosts` lists its machines, and `each` what was found at each of them. NULL if memory is short. */
json_t *doctor_report_value(const struct diagnosis *d, bool all);
/* Prints such a value for people; on a terminal, wrapped at words. Returns 0, or -1 if memory is short; the caller checks
 * ferror(out). */
int doctor_report_print(FILE *out, const json_t *value);
/* The exit status: 0 fine or hints, 1 warnings, 2 errors, 3 no daemon could be asked. */
int doctor_report_status(const struct diagnosis *d);
