/* Powers of two. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Whether n is 1, 2, 4, ... */
static inline bool is_power_of_two(uint32_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

/* The index of the lowest set bit of a number other than 0. */
static inline unsigned lowest_bit(uint32_t n)
{
    return (unsigned)__builtin_ctz(n);
}

/* The exponent of a power of two. */
static inline unsigned power_of(uint32_t n)
{
    return lowest_bit(n);
}
