/* What every algorithm promises, checked by enumeration: every block of every pair of nodes arrives
 * once over links that exist, the declared symmetries hold, and the verifier's report agrees with a
 * plain count over all nodes. Each function fails the running test otherwise. */
#pragma once

#include "daemon/lib/schedule/verify.h"

enum { LARGEST = 16 }; /* rows, and columns, of contract_every_rectangle() */

/* "4x8" as torus_parse() reads it. */
struct torus contract_torus(const char *text);

/* A torus of two dimensions that wrap. */
struct torus contract_rectangle(uint32_t rows, uint32_t columns);

/* The verifier's report on the algorithm with this name. */
struct schedule_report contract_verify(const struct torus *t, const char *algorithm);

/* Checks all of this for one algorithm on one torus. */
void contract_check(const struct torus *t, const struct algorithm *a);

/* Checks the period only, for one in `every` destinations of each source. */
void contract_check_period(const struct torus *t, const struct algorithm *a, uint32_t every);

/* contract_check() for every rectangle of up to LARGEST rows and columns that the algorithm
 * accepts. `expected` is how many it has to accept: an algorithm cannot pass by refusing. */
void contract_every_rectangle(const char *name, unsigned expected);

/* Checks that no step of the schedule is empty. */
void contract_check_no_gaps(const struct torus *t, const char *name);

/* Checks that the algorithm refuses the torus, and that the error names the tori that it accepts
 * and this one. */
void contract_refused(const char *name, const char *torus);
