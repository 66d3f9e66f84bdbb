/* Makes the result of an exchange or a barrier from the daemon's reply. */
#ifndef TORUSD_CLIENT_EXCHANGE_RESULT_H
#define TORUSD_CLIENT_EXCHANGE_RESULT_H

#include <torus/torus.h>

#include "proto/control.pb-c.h"

/* Takes over `reply`, also on failure, and stores a struct torus_result at the struct
 * torus_result ** `result`, unless that is NULL; the caller of the library frees it. Returns 0,
 * or -1 with *e: _PROTOCOL if the reply contradicts itself, or _MEMORY. */
int result_from(Control__Reply *reply, void *result, struct torus_error *e);

#endif
