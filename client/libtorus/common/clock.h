/* The monotonic clock. */
#ifndef TORUSD_CLIENT_CLOCK_H
#define TORUSD_CLIENT_CLOCK_H

#include <stdint.h>

/* Returns milliseconds since an arbitrary moment in the past. */
int64_t clock_ms(void);

#endif
