/* The rows of the registry, for registry.c and for the algorithms themselves. To add an algorithm,
 * write a file that defines `algorithm_<identifier>`, and add an entry to this list: the
 * identifier, and the name, which may have a dash where the identifier has none. A MEMBER is a
 * member of a family (family.h) that is listed, and that `auto` tries: the identifier of the
 * family's base, the member's name, and its degree.
 *
 * The order matters to `auto`: for an allgather it takes the first algorithm that can carry it out
 * on the torus; of exchanges that are predicted to be equally fast, the last one. */
#pragma once

#include "daemon/lib/schedule/algorithm.h"

#define ALGORITHMS(ROW, MEMBER)                                                                    \
    ROW(ar, "ar")                                                                                  \
    ROW(ar1, "ar1")                                                                                \
    ROW(at2_printed, "at2-printed")                                                                \
    ROW(at2, "at2")                                                                                \
    ROW(at2_1port, "at2-1port")                                                                    \
    ROW(squares, "squares")                                                                        \
    ROW(pt, "pt")                                                                                  \
    ROW(mt, "mt")                                                                                  \
    ROW(a1, "a1")                                                                                  \
    ROW(a2, "a2")                                                                                  \
    ROW(a3, "a3")                                                                                  \
    ROW(cccube, "cccube")                                                                          \
    MEMBER(cccube, "cccube-q2", 2)                                                                 \
    MEMBER(cccube, "cccube-q4", 4)                                                                 \
    MEMBER(cccube, "cccube-q8", 8)                                                                 \
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
    ROW(tseng_gupta, "tseng-gupta")                                                                \
    ROW(balanced, "balanced")                                                                      \
    ROW(yangwang, "yangwang")                                                                      \
    ROW(saadschultz, "saadschultz")                                                                \
    ROW(disjoint, "disjoint")                                                                      \
    ROW(trees, "trees")

#define ALGORITHM_DECLARE(identifier, name) extern const struct algorithm algorithm_##identifier;
#define ALGORITHM_NOTHING(base, name, degree)
ALGORITHMS(ALGORITHM_DECLARE, ALGORITHM_NOTHING)
#undef ALGORITHM_DECLARE
#undef ALGORITHM_NOTHING
