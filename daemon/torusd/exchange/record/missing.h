/* Finds the nodes that have not entered a barrier or group. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct job;

/* Returns the number of nodes that have not entered, and writes their ranks to `list` ("3, 7"), as many as fit
 * into `size` (at least 32) bytes. Covers the branches below this node that have not reported completely. At
 * node 0 that is the whole torus; another node that has not heard from node 0 names only node 0. With spec.wait, the root
 * names the nodes that it cannot reach, as long as it waits for them. */
uint32_t exchange_missing(const struct job *j, char *list, size_t size);
