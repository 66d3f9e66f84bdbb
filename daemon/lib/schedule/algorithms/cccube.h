/* The CC-cube algorithms (cccube.c): one for each number of packets, Q, which is the degree in the
 * family (family.h), and a family for each number of ports. */
#pragma once

#include "daemon/lib/schedule/algorithms/family.h"

extern const struct family family_cccube;

/* The families in which a node sends, and receives, at most k messages at a time, for k from 1 to
 * CCCUBE_PORTS_MOST: cccube-k1, cccube-k2 ... */
#define CCCUBE_PORTS_MOST 8u
extern const struct family family_cccube_ports[CCCUBE_PORTS_MOST];

#define CCCUBE_SUMMARY                                                                             \
    "hypercube's exchange, embedded without conflicts: one bit of the node's number after the "    \
    "other"
#define CCCUBE_ACCEPTS "a torus or mesh of 2^d nodes without a path longer than 65535 hops"
#define CCCUBE_SOURCE                                                                              \
    "Diaz de Cerio, Valero-Garcia and Gonzalez, Complete Exchange Algorithms for Meshes and Tori " \
    "Using a Systematic Approach, section 4"

/* The functions of all these families (family.h) and of their bases (algorithm.h). */
struct cost_counts cccube_counts(const struct family *f, const struct torus *t, uint32_t degree);
uint32_t cccube_most(const struct family *f, const struct torus *t);
