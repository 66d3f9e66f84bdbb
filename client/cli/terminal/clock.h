/* The monotonic clock. */
#pragma once

#include <stdint.h>

/* Return the time since an arbitrary moment in the past, in milliseconds or seconds. */
int64_t clock_ms(void);
double clock_seconds(void);
