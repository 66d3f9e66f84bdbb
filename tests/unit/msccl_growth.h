/* Schedules in MSCCL's XML that grow, all of them valid unless said otherwise. Each returns text to be
 * freed by the caller. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* For a torus of 2: GPU 0 has `count` thread blocks, each of which waits for the next one. */
char *msccl_deep(uint32_t count, size_t *length);

/* For a torus of 2: two thread blocks of `count` steps, each of which waits for the other's. */
char *msccl_alternating(uint32_t count, size_t *length);

/* For a ring of `nodes`: every GPU sends to every other one on a thread block of its own, all
 * segments of a block in one step. */
char *msccl_wide(uint32_t nodes, uint32_t segments, size_t *length);
