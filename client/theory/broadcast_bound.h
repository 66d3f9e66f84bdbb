/* Lower bounds on the time of broadcasts. Yang, Wang: All-to-All Communication, theorem 1, for any
 * product of graphs instead of n x n tori and meshes.
 *
 * The model is the paper's: a node may use all its channels at the same time, and has received a whole
 * message before it passes the message on. With the startup time alpha, the switching time delta and
 * the time L * gamma to transmit a message, a broadcast takes at least alpha + delta + b * L * gamma,
 * where b is one of these numbers:
 * - One-to-all: the diameter. If the source is at one end of a longest shortest path, the message
 *   crosses that many channels one after another. This is 2(n-1) on n x n meshes and 2*floor(n/2)
 *   on n x n tori.
 * - All-to-all: the larger of the diameter and ceil((N-1)/d), where d is the number of links of the
 *   node with the fewest. This node receives N-1 messages by d channels. The second number is
 *   ceil((n^2-1)/2) on n x n meshes and ceil((n^2-1)/4) on n x n tori, and never smaller than the
 *   diameter there, except on 2x2. (The paper does not round up, and does not name the diameter.) */
#pragma once

#include "daemon/lib/schedule/product.h"

/* In transmissions of a message: b above. 0 on a single node. */
uint32_t broadcast_bound_one_to_all(const struct product *p);
uint32_t broadcast_bound_all_to_all(const struct product *p);
