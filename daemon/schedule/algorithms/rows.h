/* The rows of the registry, for registry.c and the algorithms themselves. A new algorithm is one
 * file that defines `algorithm_<identifier>` and one entry in this list: its identifier, and its
 * name, which may have a dash where the identifier has none. `auto` takes the first one that can
 * carry out an allgather on the torus, and of exchanges that are predicted to be equally fast the
 * last one. */
#ifndef TORUSD_SCHEDULE_ALGORITHMS_ROWS_H
#define TORUSD_SCHEDULE_ALGORITHMS_ROWS_H

#include "daemon/schedule/algorithm.h"

#define ALGORITHMS(ROW)                                                                            \
    ROW(ar, "ar")                                                                                  \
    ROW(ar1, "ar1")                                                                                \
    ROW(at2_printed, "at2-printed")                                                                \
    ROW(at2, "at2")                                                                                \
    ROW(at2_1port, "at2-1port")                                                                    \
    ROW(pt, "pt")                                                                                  \
    ROW(mt, "mt")                                                                                  \
    ROW(a1, "a1")                                                                                  \
    ROW(a2, "a2")                                                                                  \
    ROW(a3, "a3")                                                                                  \
    ROW(cccube, "cccube")                                                                          \
    ROW(cccube_q2, "cccube-q2")                                                                    \
    ROW(cccube_q4, "cccube-q4")                                                                    \
    ROW(cccube_q8, "cccube-q8")                                                                    \
    ROW(atape, "atape")                                                                            \
    ROW(stream, "stream")                                                                          \
    ROW(tree, "tree")                                                                              \
    ROW(pair, "pair")                                                                              \
    ROW(pair_s2, "pair-s2")                                                                        \
    ROW(pair_s4, "pair-s4")                                                                        \
    ROW(dim, "dim")                                                                                \
    ROW(dim_s2, "dim-s2")                                                                          \
    ROW(dim_tree, "dim-tree")                                                                      \
    ROW(direct, "direct")                                                                          \
    ROW(balanced, "balanced")                                                                      \
    ROW(yangwang, "yangwang")                                                                      \
    ROW(saadschultz, "saadschultz")                                                                \
    ROW(disjoint, "disjoint")

#define ALGORITHM_DECLARE(identifier, name) extern const struct algorithm algorithm_##identifier;
ALGORITHMS(ALGORITHM_DECLARE)
#undef ALGORITHM_DECLARE

#endif
