/* Reads structs that callers fill, whatever version of the header they were built with. */
#pragma once

#include <torus/group.h>
#include <torus/torus.h>

/* Copy the caller's struct into a struct of this version. Fields that are newer than the caller become 0. Return 0,
 * or -1 with *e (_USAGE) if struct_size is not set, or if the caller uses fields that this version does not know. */
int request_read(const struct torus_request *in, struct torus_request *out, struct torus_error *e);
int copy_read(const struct torus_copy *in, struct torus_copy *out, struct torus_error *e);
int costs_read(const struct torus_costs *in, struct torus_costs *out, struct torus_error *e);
int group_options_read(const struct torus_group_options *in, struct torus_group_options *out,
                       struct torus_error *e);

/* Returns the name of a mode in a request. Static; not const, because protobuf-c has no const. */
char *wire_mode(enum torus_mode mode);
