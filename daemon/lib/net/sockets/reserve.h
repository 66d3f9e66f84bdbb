/* Descriptors held in reserve, so that an operation that must not fail still gets one when all others are
 * in use. */
#pragma once

#include <stdbool.h>

#define RESERVE_MOST 32u

/* Zero-initialise. */
struct reserve {
    unsigned wanted, held;
    int fd[RESERVE_MOST];
};

/* Opens descriptors until `wanted` (at most RESERVE_MOST) are held, or no more can be opened. Call it again
 * after a descriptor has been closed. */
void reserve_fill(struct reserve *r, unsigned wanted);

/* To be called with the errno of a call that could not open a descriptor. If there was none left and one is
 * held, releases it and returns true: the caller should try again. */
bool reserve_release_one(struct reserve *r, int error);

/* Whether an errno means that no descriptor, or no memory for one, is free at the moment. */
bool reserve_is_shortage(int error);

/* Closes all held descriptors. */
void reserve_close(struct reserve *r);
