/* Writes every route of an algorithm to a file that imported.h, and other programs, can read. */
#pragma once

#include <stdio.h>

#include "daemon/lib/schedule/algorithm.h"

/* Prints the header, and one line for each source, destination and segment, in this order. With
 * `by_period`, prints only the routes of the sources from which all others follow. Stops early
 * after an error of `out`; the caller checks ferror(). The torus must be accepted. Returns 0, or -1
 * with *e without memory. */
int schedule_export(FILE *out, const struct torus *t, const struct algorithm *a, bool by_period,
                    struct error *e);

/* As schedule_export(), without the header and by_period. */
int schedule_export_routes(FILE *out, const struct torus *t, const struct algorithm *a,
                           struct error *e);

/* For schedules that are converted from other formats: prints the header of one for all ports, and the line of a
 * route. */
void schedule_export_header(FILE *out, const struct torus *t, const char *name,
                            enum schedule_operation operation, bool streaming, uint32_t segments);
void schedule_export_route(FILE *out, uint32_t source, uint32_t destination, uint32_t segment,
                           const struct leg *legs, uint32_t count);
