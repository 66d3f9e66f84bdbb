/* The lines of `torusctl top --json`. */
#pragma once

#include <jansson.h>

#include "client/cli/top/model.h"

/* Return a line, or NULL if memory is short. */
json_t *top_model_value(const struct top_model *m);
json_t *top_error_value(const struct torus_error *e);
