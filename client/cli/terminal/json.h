/* Builds the JSON values that commands print. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/lib/schedule/torus.h"

/* Returns a count. A count that is too large for an integer in JSON becomes the largest integer. */
json_t *json_count(uint64_t count);

/* Returns an integer if the number is whole, otherwise a real, or null if it is not finite. */
json_t *json_number(double number);

/* Returns a count, or null for 0, which means unknown. */
json_t *json_known(uint64_t count);

/* Returns json_number(), or null for a number that is not above 0, which means unknown. */
json_t *json_positive(double number);

/* Returns a text, or null for "". */
json_t *json_text(const char *text);

/* Returns `folder` followed by `name`, as valid text, because a path may have any bytes. NULL if memory is short. */
json_t *json_path(const char *folder, const char *name);

/* Returns the value; or frees it and returns NULL, if `result` says that memory was short for a part of it. */
json_t *json_checked(json_t *value, int result);

/* Adds "dims": [4, 8] and, if a dimension does not wrap, "wrap": [true, false]. Returns 0, or another value if memory
 * is short. */
int json_set_torus(json_t *object, const struct torus *t);
