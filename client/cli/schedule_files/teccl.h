/* Exchanges and allgathers in the JSON of TE-CCL (get_flow_schedule() of its solvers): sends of chunks in epochs.
 *
 *     {"8-Chunk paths": {"Demand at 2 for chunk 2 from 0 met by epoch 3":
 *                            [[[0, "0->1 with volume 1.0 in epoch 0"], [3, "1->2 with volume 1.0 in epoch 3"]]], ...},
 *      "7-Flows": ["Chunk 2 from 0 traveled over 0->1 with volume 1.0 in epoch 0", ...], ...}
 *
 * Published files also name these keys "7-chunk paths" and "6-Flows". Without volumes it is an allgather; the paths of
 * a demand are then one list: ["0->1 in epoch 0", "1->2 in epoch 3 via switches 8"]. An epoch is a step.
 *
 * In an allgather a chunk is a segment. In an exchange chunk c is for GPU c modulo their number; it is cut into as many
 * segments as make each volume a whole number of them. */
#pragma once

#include <stddef.h>

#include "daemon/lib/schedule/torus.h"

#define TECCL_BYTES_MOST (16u << 20) /* JSON takes up to forty times its length in memory */

/* Converts JSON to torusd's format (imported.h), without verifying the schedule. The devices at which chunks begin are
 * the GPUs, and node r is the GPU with the r-th lowest number; other devices are switches. A send goes straight from
 * GPU to GPU (straight_leg.h). If the file has no chunk paths, the flows must bring each chunk to each node once.
 *
 * Returns 0 with *routes, which the caller frees, or -1 with NULL and *e: ERROR_MEMORY, or ERROR_REFUSED, whose text
 * names the line, the demand or the flow. */
int teccl_read(const char *json, size_t length, const struct torus *t, char **routes,
               size_t *routes_length, struct error *e);
