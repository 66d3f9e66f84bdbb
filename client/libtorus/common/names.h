/* The public enums as the names that the daemon uses for them. */
#ifndef TORUSD_CLIENT_NAMES_H
#define TORUSD_CLIENT_NAMES_H

#include <torus/torus.h>

/* The value with this name; if there is none, the 0 of its enum ("unknown", any mode). */
enum torus_state state_named(const char *name);
enum torus_link_state link_state_named(const char *name);
enum torus_mode mode_named(const char *name);

/* Returns 0 with *operation set, or -1 if no operation has this name. */
int operation_named(const char *name, enum torus_operation *operation);

#endif
