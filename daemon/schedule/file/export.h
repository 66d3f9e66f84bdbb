/* Every route of an algorithm, as a file that imported.h reads and other programs can. */
#ifndef TORUSD_SCHEDULE_FILE_EXPORT_H
#define TORUSD_SCHEDULE_FILE_EXPORT_H

#include <stdio.h>

#include "daemon/schedule/algorithm.h"

/* Prints the header and one line for each source, destination and segment, in this order. With
 * `by_period`, prints only the routes of the sources from which all other routes follow. Stops
 * early after an error of `out`, which the caller looks for. The torus must be accepted. Returns
 * 0, or -1 with *e set if there is no memory. */
int schedule_export(FILE *out, const struct torus *t, const struct algorithm *a, bool by_period,
                    struct error *e);

/* Prints the routes without the header; otherwise as schedule_export(). */
int schedule_export_routes(FILE *out, const struct torus *t, const struct algorithm *a,
                           struct error *e);

#endif
