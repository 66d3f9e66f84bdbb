/* The registry: all algorithms that have a name, except most members of families. */
#pragma once

#include "daemon/lib/schedule/algorithm.h"
#include "daemon/lib/schedule/torus.h"

/* The rows of the registry, for registry.c and for the algorithms themselves. To add an algorithm,
 * write a file that defines `algorithm_<identifier>`, and add an entry to this list: the
 * identifier, and the name, which may have a dash where the identifier has none. A MEMBER is a
 * member of a family (family.h) that is listed, and that `auto` tries: the identifier of the
 * family's base, the member's name, and its degree.
 *
 * The order matters to `auto`: for an allgather it takes the first algorithm that can carry it out on the torus; for an
 * exchange, the last of the algorithms that are predicted to be equally fast. */

#define ALGORITHMS(ROW, MEMBER)                                                                    \
    ROW(ar, "ar")                                                                                  \
    ROW(ar1, "ar1")                                                                                \
    ROW(at2_printed, "at2-printed")                                                                \
    ROW(at2, "at2")                                                                                \
    ROW(at2_1port, "at2-1port")                                                                    \
    ROW(squares, "squares")                                                                        \
    ROW(suh_shin, "suh-shin")                                                                      \
    ROW(pt, "pt")                                                                                  \
    ROW(mt, "mt")                                                                                  \
    ROW(a1, "a1")                                                                                  \
    ROW(a2, "a2")                                                                                  \
    ROW(a3, "a3")                                                                                  \
    ROW(halves, "halves")                                                                          \
    ROW(cccube, "cccube")                                                                          \
    MEMBER(cccube, "cccube-q2", 2)                                                                 \
    MEMBER(cccube, "cccube-q4", 4)                                                                 \
    MEMBER(cccube, "cccube-q8", 8)                                                                 \
    ROW(atape, "atape")                                                                            \
    ROW(orders, "orders")                                                                          \
    ROW(orders_s48, "orders-s48")                                                                  \
    ROW(stream, "stream")                                                                          \
    ROW(tree, "tree")                                                                              \
    ROW(pair, "pair")                                                                              \
    ROW(pair_s2, "pair-s2")                                                                        \
    ROW(pair_s4, "pair-s4")                                                                        \
    ROW(dim, "dim")                                                                                \
    ROW(dim_s2, "dim-s2")                                                                          \
    ROW(dim_1port, "dim-1port")                                                                    \
    ROW(lanes_1port, "lanes-1port")                                                                \
    ROW(dim_tree, "dim-tree")                                                                      \
    ROW(direct, "direct")                                                                          \
    ROW(tseng_gupta, "tseng-gupta")                                                                \
    ROW(balanced, "balanced")                                                                      \
    ROW(yangwang, "yangwang")                                                                      \
    ROW(saadschultz, "saadschultz")                                                                \
    ROW(matched, "matched")                                                                        \
    ROW(disjoint, "disjoint")                                                                      \
    ROW(trees, "trees")

#define ALGORITHM_DECLARE(identifier, name) extern const struct algorithm algorithm_##identifier;
#define ALGORITHM_NOTHING(base, name, degree)
ALGORITHMS(ALGORITHM_DECLARE, ALGORITHM_NOTHING)
#undef ALGORITHM_DECLARE
#undef ALGORITHM_NOTHING

/* Finds dim-k2 to dim-k8 (dim.c), which are not in the registry; NULL for other names. */
const struct algorithm *dim_with_ports(const char *name);

/* The costs of A3 (a3.c) according to its paper, corollary 3. */

/* Steps, and blocks on the busiest channel summed over the steps. A3 must accept the torus. */
uint32_t a3_startups(const struct torus *t);
uint64_t a3_transmission(const struct torus *t);

/* The algorithm of an allgather whose blocks are split. */

/* The algorithm whose trees load the channels most evenly, for blocks that are long enough to be
 * split: it has two segments for each dimension of more than one node. Never NULL; not in the
 * registry, never freed. */
const struct algorithm *even_algorithm(const struct torus *t);

/* The algorithms in a fixed order, the first at index 0; NULL for any other index. They are never
 * freed. algorithm_find() returns the algorithm with this name, or NULL; it also knows dim-k3 and
 * others that are not in the registry, and members of families, such as cccube-q5, which it makes (family.h). */
const struct algorithm *algorithm_at(size_t index);
size_t algorithm_count(void);
const struct algorithm *algorithm_find(const char *name);
/* Whether the algorithm is in the registry. */
bool algorithm_is_listed(const struct algorithm *a);

/* The names of all algorithms, "ar, at2, direct", for messages. Never freed. */
const char *algorithm_names(void);

/* Writes the names of the algorithms that can carry out an operation, in the same form, cut off
 * after ALGORITHM_NAMES_SIZE - 1 characters. `names` has room for ALGORITHM_NAMES_SIZE. Returns
 * `names`. */
#define ALGORITHM_NAMES_SIZE 512
const char *algorithm_names_for(enum schedule_operation operation, char *names);
