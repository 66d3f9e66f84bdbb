/* Fills the public error object. */
#pragma once

#include <torus/torus.h>

/* Fills *e, unless `e` is NULL, without an exchange id. Returns -1. */
int fail(struct torus_error *e, enum torus_error_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* fail() with TORUS_ERROR_MEMORY. Returns -1. */
int fail_memory(struct torus_error *e);

/* Sets the exchange id of *e. */
void fail_exchange(struct torus_error *e, const char *id);

/* Copies a text to `out` without control characters, cut to `size` bytes with the terminating 0. */
void copy_text(char *out, size_t size, const char *text);
