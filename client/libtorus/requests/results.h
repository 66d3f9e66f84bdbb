/* Turns replies into the public structs. Texts and lists of texts stay in the unpacked message,
 * which the result keeps; only the public structs are allocated. */
#ifndef TORUSD_CLIENT_RESULTS_H
#define TORUSD_CLIENT_RESULTS_H

#include <torus/torus.h>

#include "proto/control.pb-c.h"

/* Each function takes over `reply`, of the kind that its name says, also on failure, and stores
 * a result at `result`, a struct torus_status ** and so on; the caller of the library frees it.
 * Returns 0, or -1 with *e: _PROTOCOL if the reply contradicts itself, or _MEMORY. */
int status_from(Control__Reply *reply, void *result, struct torus_error *e);
int links_from(Control__Reply *reply, void *result, struct torus_error *e);
int candidates_from(Control__Reply *reply, void *result, struct torus_error *e);
int calibration_from(Control__Reply *reply, void *result, struct torus_error *e); /* may be NULL */

/* For the files that do this: memory for `count` elements, which is not NULL if `count` is 0; a
 * text with control characters removed; an error about the daemon's reply; whether a number can
 * be a measurement. */
void *several(size_t count, size_t size);
const char *clean(char *text);
int senseless(struct torus_error *e, const char *what);
bool measurable(double value);

#endif
