/* Filling the public error object. */
#ifndef TORUSD_CLIENT_FAIL_H
#define TORUSD_CLIENT_FAIL_H

#include <torus/torus.h>

/* Fills *e (which may be NULL) and returns -1. The exchange's id in it is cleared. */
int fail(struct torus_client_error *e, enum torus_client_error_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Names the exchange that *e (which may be NULL) is about. */
void fail_exchange(struct torus_client_error *e, const char *id);

#endif
