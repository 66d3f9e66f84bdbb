/* What every algorithm promises, checked by enumeration: every block of every pair of nodes arrives
 * once over links that are there, the declared symmetries are true, and the verifier's report is
 * what a plain count over all nodes gives. Anything else fails the running test. */
#ifndef TORUSD_TESTS_CONTRACT_H
#define TORUSD_TESTS_CONTRACT_H

#include "daemon/schedule/routes/verify.h"

enum { LARGEST = 16 }; /* rows, and columns, of contract_every_rectangle() */

/* "4x8" as torus_parse() reads it. */
struct torus contract_torus(const char *text);

/* Two dimensions that wrap. */
struct torus contract_rectangle(uint32_t rows, uint32_t columns);

/* What the verifier says of the algorithm with this name. */
struct schedule_report contract_verify(const struct torus *t, const char *algorithm);

/* Everything above, of one algorithm on one torus. */
void contract_check(const struct torus *t, const struct algorithm *a);

/* The period alone, for one in `every` destinations of each source. */
void contract_check_period(const struct torus *t, const struct algorithm *a, uint32_t every);

/* contract_check() for every rectangle that the algorithm takes. How many those are is known: a
 * refusal is not a way through. */
void contract_every_rectangle(const char *name, unsigned expected);

/* No step of the schedule is empty. */
void contract_check_no_gaps(const struct torus *t, const char *name);

/* The algorithm refuses the torus, and says both what it takes and what it was given. */
void contract_refused(const char *name, const char *torus);

#endif
