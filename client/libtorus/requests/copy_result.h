/* Converts the daemon's reply to the result of a copy. */
#pragma once

#include <torus/torus.h>

#include "proto/control.pb-c.h"

/* A convert_fn: stores a struct torus_copy_result * at `result`, a struct torus_copy_result **. The user of the library
 * frees it. Takes ownership of `reply`, also on failure. Returns 0, or -1 with *e: _PROTOCOL if the reply contradicts
 * itself, or _MEMORY. */
int copy_result_from(Control__Reply *reply, void *result, struct torus_error *e);

/* Converts the copies in a status, whose texts stay in it. Returns 0, or -1 with *e. In either case the caller frees
 * *one and *list. */
int copies_from(const Control__Status *status, struct torus_copy_activity **one,
                const struct torus_copy_activity ***list, struct torus_error *e);

/* Returns the phase with this number on the wire; the last one for an unknown number. */
enum torus_copy_phase copy_phase_of(uint32_t number);
