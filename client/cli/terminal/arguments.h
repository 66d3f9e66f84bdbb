/* Values of options: what people write for sizes, times, numbers and names. */
#ifndef TORUSD_CLI_ARGUMENTS_H
#define TORUSD_CLI_ARGUMENTS_H

#include <stddef.h>
#include <stdint.h>

#include <torus/torus.h>

#include "proto/error.h"

/* All return 0, or -1 with *e (ERROR_USAGE), which quotes the text and says what is possible. */

/* Bytes: "65536", "64KiB", "64K", "1MB"; K, M and G are powers of 1024, KB, MB and GB of 1000;
 * upper or lower case. */
int parse_size(const char *text, uint64_t *bytes, struct error *e);

/* The next of several items separated by commas: moves *text past it, to NULL after the last. */
int parse_item(const char **text, char *item, size_t size, struct error *e);

/* Sizes separated by commas, at most `most` of them; "1-1MiB" stands for 1, 4, 16 and so on up to
 * 1MiB. */
int parse_sizes(const char *text, uint64_t *sizes, size_t most, size_t *count, struct error *e);

/* Seconds above 0, with up to three decimals: "30", "0.5". */
int parse_seconds(const char *text, uint64_t *milliseconds, struct error *e);

/* Microseconds, 0 or more, with as many decimals as there are: "75", "0.011", "1e-3". */
int parse_micros(const char *text, double *micros, struct error *e);

/* A whole number up to `most`. */
int parse_number(const char *text, uint32_t most, uint32_t *number, struct error *e);

/* A number of repetitions, from 1 to TORUS_REPEAT_MAX. */
int parse_repeat(const char *text, uint32_t *repeat, struct error *e);

/* One of the names, of which the first may be NULL; NULL ends the list behind it. */
int parse_named(const char *text, const char *const *names, size_t *index, struct error *e);

/* Numbers of dimensions, below `most`, separated by commas; bit d stands for d. */
int parse_dimensions(const char *text, unsigned most, uint32_t *dimensions, struct error *e);

/* "stepped" or "streaming". */
int parse_mode(const char *text, enum torus_mode *mode, struct error *e);

/* The folder as seen from this working directory, absolute. Returns 0 with *path to be freed by
 * the caller. */
int parse_folder(const char *text, char **path, struct error *e);

#endif
