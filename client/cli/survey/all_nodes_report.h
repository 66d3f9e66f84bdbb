/* What `torusctl status --all` and `torusctl links --all` show. */
#pragma once

#include <jansson.h>
#include <torus/torus.h>

#include "client/cli/terminal/cli.h"
#include "client/cli/terminal/json.h"

struct all_nodes;

/* Print the state of all nodes with what runs on them, or the links of all nodes. The client must be connected. Return
 * the exit code. */
int status_all(struct cli *cli);
int links_all(struct cli *cli);

/* Return the same as JSON, or NULL if memory is short. */
json_t *status_all_value(const struct all_nodes *c);
json_t *links_all_value(const struct all_nodes *c);

/* Returns a link as `torusctl links` shows it, or NULL if memory is short. */
json_t *link_value(const struct torus_link *l);

/* The fields of a copy under way (struct torus_copy_activity). */
extern const struct json_member copy_activity_members[];

/* Returns how a link that is up is protected, in the words of every view: "open" (no cluster key), "proved" or
 * "encrypted". Static; NULL for a link that is not up. */
const char *link_security(const struct torus_link *l);
