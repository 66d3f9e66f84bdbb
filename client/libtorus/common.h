/* What all of libtorus uses: errors, names of values, structs of callers, sockets. */
#pragma once

#include <stdint.h>
#include <torus/group.h>
#include <torus/torus.h>

/* Fills *e, unless `e` is NULL, without an exchange id. Returns -1. */
int fail(struct torus_error *e, enum torus_error_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* fail() with TORUS_ERROR_MEMORY. Returns -1. */
int fail_memory(struct torus_error *e);
/* Sets the exchange id of *e. */
void fail_exchange(struct torus_error *e, const char *id);
/* Copies a text to `out` without control characters, cut to `size` bytes with the terminating 0. */
void copy_text(char *out, size_t size, const char *text);

/* Returns milliseconds of the monotonic clock. */
int64_t clock_ms(void);

/* --- names that the daemon uses, and the values of public enums --- */

/* Return the value with this name, or the 0 of the enum ("unknown", any mode) if no value has it. */
enum torus_state state_named(const char *name);

enum torus_link_state link_state_named(const char *name);

enum torus_mode mode_named(const char *name);

/* Returns the phase with this number on the wire; the last one for an unknown number. */
enum torus_copy_phase copy_phase_of(uint32_t number);
/* Returns 0 with *operation set, or -1 if no operation has this name. */
int operation_named(const char *name, enum torus_operation *operation);

/* --- structs that callers fill, whatever version of the header they were built with --- */

/* Copy the caller's struct into a struct of this version. Fields that are newer than the caller become 0. Return 0,
 * or -1 with *e (_USAGE) if struct_size is not set, or if the caller uses fields that this version does not know. */
int request_read(const struct torus_request *in, struct torus_request *out, struct torus_error *e);
int copy_read(const struct torus_copy *in, struct torus_copy *out, struct torus_error *e);
int costs_read(const struct torus_costs *in, struct torus_costs *out, struct torus_error *e);
int group_options_read(const struct torus_group_options *in, struct torus_group_options *out,
                       struct torus_error *e);
/* Checks that a program has given a mode that exists. Returns 0, or -1 with *e. */
int mode_check(enum torus_mode mode, struct torus_error *e);
/* Returns the name of a mode in a request. Static; not const, because protobuf-c has no const. */
char *wire_mode(enum torus_mode mode);

/* --- sockets of daemons --- */

/* Returns `path` with each "%h" replaced by the host's name, followed by `suffix`. The caller frees the text. NULL:
 * out of memory. */
char *socket_path(const char *path, const char *suffix);
/* Connects a new socket of this type (SOCK_STREAM...) to `path`. Returns the socket, which the caller closes, or -1
 * with *e. */
int socket_connect(const char *path, int type, struct torus_error *e);
