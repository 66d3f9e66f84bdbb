/* Small helpers to build the values that commands print. */
#ifndef TORUSD_CLI_JSON_H
#define TORUSD_CLI_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/schedule/torus.h"

/* A count; one that does not fit into JSON's integers becomes the largest that does. */
json_t *json_count(uint64_t count);

/* An integer if the number is whole, else a real; null if it is not finite. */
json_t *json_number(double number);

/* The count, or null for 0, which stands for unknown. */
json_t *json_known(uint64_t count);

/* A path, `name` behind `folder`, as it can be shown: paths need not be text, JSON is. NULL: no memory. */
json_t *json_path(const char *folder, const char *name);

/* Sets "dims": [4, 8], and if a dimension does not wrap also "wrap": [true, false]. Returns 0, or
 * -1 if out of memory. */
int json_set_torus(json_t *object, const struct torus *t);

#endif
