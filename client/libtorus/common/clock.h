/* The monotonic clock. */
#pragma once

#include <stdint.h>

/* Returns milliseconds since an arbitrary moment in the past. */
int64_t clock_ms(void);
