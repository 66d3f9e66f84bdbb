/* Reads the values of options: sizes, times, numbers and names. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <torus/torus.h>

#include "proto/error.h"

/* All functions return 0, or -1 with *e (ERROR_USAGE), which quotes the text and says what is possible. */

/* Reads bytes: "65536", "64KiB", "64K", "1MB". K, M and G are powers of 1024, KB, MB and GB of 1000, in upper or lower
 * case. */
int parse_size(const char *text, uint64_t *bytes, struct error *e);

/* Copies the next of several items separated by commas, and moves *text after it, or to NULL after the last item. */
int parse_item(const char **text, char *item, size_t size, struct error *e);

/* Reads up to `most` sizes separated by commas. "1-1MiB" stands for 1, 4, 16 and so on up to 1MiB. */
int parse_sizes(const char *text, uint64_t *sizes, size_t most, size_t *count, struct error *e);

/* Reads seconds above 0, with up to three decimals: "30", "0.5". */
int parse_seconds(const char *text, uint64_t *milliseconds, struct error *e);

/* Reads microseconds, 0 or more, with any number of decimals: "75", "0.011", "1e-3". */
int parse_micros(const char *text, double *micros, struct error *e);

/* Reads a whole number up to `most`. */
int parse_number(const char *text, uint32_t most, uint32_t *number, struct error *e);

/* Reads a number of repetitions, from 1 to TORUS_REPEAT_MAX. */
int parse_repeat(const char *text, uint32_t *repeat, struct error *e);

/* Finds a text in names[], which is ended by NULL; names[0] may also be NULL. Sets *index. */
int parse_named(const char *text, const char *const *names, size_t *index, struct error *e);

/* Reads numbers of dimensions below `most`, separated by commas. Bit d of *dimensions stands for dimension d. */
int parse_dimensions(const char *text, unsigned most, uint32_t *dimensions, struct error *e);

/* Reads "stepped" or "streaming". */
int parse_mode(const char *text, enum torus_mode *mode, struct error *e);

/* Reads what to do if nodes are down: fail, shrink or wait. */
int parse_on_failure(const char *text, bool *shrink, bool *wait, struct error *e);

/* Makes the path of a folder absolute, from the working directory. Returns 0 with *path, which the caller frees. */
int parse_folder(const char *text, char **path, struct error *e);

/* Reads an option with one of these functions, if it was given. Returns 0, or -1 with *e, which names the option. */
#define READ_OPTION(e, name, text, parse, ...)                                                     \
    ((text) != NULL && parse(text, __VA_ARGS__, e) != 0 ? error_wrap(e, "%s", name) : 0)

/* Options that are not possible together, and why not: REFUSAL(whether they are given, text, words of the text). */
struct refusal {
    bool given;
    const char *text; /* has %s for each word; NULL ends a list */
    const char *word[2];
};
#define REFUSAL(given_, text_, ...)                                                                \
    {                                                                                              \
        .given = (given_), .text = (text_), .word = { __VA_ARGS__ }                                \
    }

/* Returns 0, or -1 with *e for the first refusal of the list whose options are given. */
int refuse(const struct refusal *list, struct error *e);
