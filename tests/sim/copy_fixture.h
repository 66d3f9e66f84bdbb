/* Tests of copies. */
#pragma once

#include "tests/sim/checks.h"
#include "tests/sim/internal.h"

/* A torus or network of a list, with all links up; the caller gives it to copy_end(). */
struct sim *copy_begin(uint64_t seed);
/* A simulator with all links up, with random delays. */
struct sim *copy_begin_on(const char *dims, uint64_t seed);
/* Checks all copies, that nothing is left of them, and that another copy succeeds; frees the simulator. */
void copy_end(struct sim *sim);

/* Puts a random tree on a node's disk, with one file of `large` bytes in it (0: none), "/large". */
void copy_tree(struct sim *sim, uint32_t rank, const char *path, uint64_t large);

/* Runs until the copy is in this phase at the asked node, and has moved that many bytes there; false: it has ended
 * before. */
bool copy_reaches(struct sim_copy *copy, enum copy_phase phase, uint64_t bytes);

/* A random node except this one. */
uint32_t copy_other(struct sim *sim, uint32_t rank);
/* A random link. */
void copy_any_link(struct sim *sim, uint32_t *rank, unsigned *port);

/* The copy that most tests make: /from of `node` becomes /to of all others. */
struct copy_request copy_default(uint32_t node);
