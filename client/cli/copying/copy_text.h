/* The result of a copy as sentences for people. */
#pragma once

#include <stdio.h>

#include "client/cli/copying/copy_report.h"

/* Print what was done, what a copy would do (--dry-run), or what differs (--verify), without the nodes that have
 * failed. */
void copy_text_done(FILE *out, const struct copy_order *o, const struct torus_copy_result *r);
void copy_text_dry_run(FILE *out, const struct copy_order *o, const struct torus_copy_result *r);
/* Prints which entries --delete would remove at each node; nothing if it would remove none. */
void copy_text_going(FILE *out, const struct copy_order *o, const struct torus_copy_result *r,
                     const struct all_nodes *names);
void copy_text_verified(FILE *out, const struct copy_order *o, const struct torus_copy_result *r,
                        const struct all_nodes *names);

/* Prints what was left out, or could not be preserved, and which nodes took no part; nothing if all is well. */
void copy_text_remarks(FILE *out, const struct torus_copy_result *r, const struct all_nodes *names);
