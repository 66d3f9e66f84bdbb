/* Small helpers to build the values that commands print. */
#ifndef TORUSD_CLI_JSON_H
#define TORUSD_CLI_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/schedule/torus.h"

/* A count; what JSON's integers cannot hold becomes the largest that they can. */
json_t *json_count(uint64_t count);

/* An integer where the number is whole, else a real; null where it is no number. */
json_t *json_number(double number);

/* The count, or null where 0 stands for unknown. */
json_t *json_known(uint64_t count);

/* Sets "dims": [4, 8], and where a dimension does not wrap also "wrap": [true, false]. Returns 0,
 * or -1 if there is no memory. */
int json_set_torus(json_t *object, const struct torus *t);

#endif
