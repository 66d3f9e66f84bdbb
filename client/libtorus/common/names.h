/* Converts the names that the daemon uses to the values of public enums. */
#pragma once

#include <torus/torus.h>

/* Return the value with this name, or the 0 of the enum ("unknown", any mode) if no value has it. */
enum torus_state state_named(const char *name);
enum torus_link_state link_state_named(const char *name);
enum torus_mode mode_named(const char *name);

/* Returns 0 with *operation set, or -1 if no operation has this name. */
int operation_named(const char *name, enum torus_operation *operation);
