/* The lines of `torusctl top --json`. */
#ifndef TORUSD_CLI_TOP_MODEL_VALUE_H
#define TORUSD_CLI_TOP_MODEL_VALUE_H

#include <jansson.h>

#include "client/cli/top/model.h"

/* Return a line, or NULL if memory is short. */
json_t *top_model_value(const struct top_model *m);
json_t *top_error_value(const struct torus_error *e);

#endif
