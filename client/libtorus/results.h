/* Replies turned into the public structs. Texts and arrays of texts stay in the unpacked message,
 * which the result keeps; only arrays of structs are made anew. */
#ifndef TORUSD_CLIENT_RESULTS_H
#define TORUSD_CLIENT_RESULTS_H

#include <torus/torus.h>

#include "proto/control.pb-c.h"

/* Each takes over `reply`, of the kind that its name says, on failure too. Returns the result, or
 * NULL with *e set: _PROTOCOL if the reply contradicts itself, or _MEMORY. */
struct torus_client_status *status_from(Control__Reply *reply, struct torus_client_error *e);
struct torus_client_links *links_from(Control__Reply *reply, struct torus_client_error *e);
struct torus_exchange_result *exchange_from(Control__Reply *reply, struct torus_client_error *e);
struct torus_candidates *candidates_from(Control__Reply *reply, struct torus_client_error *e);

/* Copies it, unless it makes no sense. Returns 0, or -1 with *e set. */
int calibration_from(const Control__Calibration *in, struct torus_calibration *out,
                     struct torus_client_error *e);

#endif
