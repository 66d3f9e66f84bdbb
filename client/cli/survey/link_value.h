/* A link in JSON. */
#ifndef TORUSD_CLI_LINK_VALUE_H
#define TORUSD_CLI_LINK_VALUE_H

#include <jansson.h>
#include <torus/torus.h>

/* Returns a link as `torusctl links` shows it, or NULL if memory is short. */
json_t *link_value(const struct torus_link *l);

#endif
