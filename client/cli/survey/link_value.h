/* A link in JSON. */
#pragma once

#include <jansson.h>
#include <torus/torus.h>

/* Returns how a link that is up is protected, in the words of every view: "open" (no cluster key), "proved" or
 * "encrypted". Static; NULL for a link that is not up. */
const char *link_security(const struct torus_link *l);
/* Returns a link as `torusctl links` shows it, or NULL if memory is short. */
json_t *link_value(const struct torus_link *l);
