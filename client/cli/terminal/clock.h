/* The monotonic clock. */
#ifndef TORUSD_CLI_CLOCK_H
#define TORUSD_CLI_CLOCK_H

#include <stdint.h>

/* Return the time since an arbitrary moment in the past, in milliseconds or seconds. */
int64_t clock_ms(void);
double clock_seconds(void);

#endif
