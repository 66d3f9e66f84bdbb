/* Fills the public error object. */
#ifndef TORUSD_CLIENT_FAIL_H
#define TORUSD_CLIENT_FAIL_H

#include <torus/torus.h>

/* Fills *e, unless `e` is NULL, clears the exchange's id in it, and returns -1. */
int fail(struct torus_error *e, enum torus_error_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

int fail_memory(struct torus_error *e);

/* Sets the id of the exchange that *e is about. */
void fail_exchange(struct torus_error *e, const char *id);

/* Copies a text, cut to `size`, without control characters. */
void copy_text(char *out, size_t size, const char *text);

#endif
