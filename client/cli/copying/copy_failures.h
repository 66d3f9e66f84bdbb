/* Names of nodes in the report of a copy, and the nodes that have failed. */
#pragma once

#include <stdio.h>

#include "client/cli/copying/copy_report.h"

/* Prints a line for each error, with the nodes that have it. Nothing if memory is short. */
void copy_failures_print(FILE *out, const struct copy_order *o, const struct torus_copy_result *r,
                         const struct all_nodes *names);

/* Writes the name of a node: "node 3 (alpha)", or "node 3" if its host is not known. */
void copy_text_node(char *out, size_t size, const struct all_nodes *names, uint32_t rank);

/* Writes the node that an outcome is about, and where its files come from if several nodes have sent some. */
void copy_text_outcome(char *out, size_t size, const struct copy_order *o,
                       const struct all_nodes *names, const struct torus_copy_node *n);
