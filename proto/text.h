/* Texts that somebody else supplied. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Replaces each control character, and each byte that is not part of valid UTF-8, by '?', in
 * place. Writes to memory only where it replaces something. */
void text_clean(char *text);

/* Copies at most size - 1 bytes, and replaces as text_clean() does. Returns `out`. */
char *text_printable(char *out, size_t size, const char *text);

/* Returns bytes as valid UTF-8 without control characters, such that different bytes stay different: each control
 * character, each backslash, and each byte that is not part of valid UTF-8 becomes \xHH with two hexadecimal digits.
 * The caller frees the text; NULL if there is no memory. */
char *text_escaped(const uint8_t *bytes, size_t length);

/* Returns `one` for a count of 1, else `many`: ("%u %s", nodes, text_plural(nodes, "node",
 * "nodes")). */
static inline const char *text_plural(uint64_t count, const char *one, const char *many)
{
    return count == 1 ? one : many;
}

/* Parses "64KiB", "10M", "1GB", "512" (suffixes of 1024: K, KiB, M, MiB, G, GiB; of 1000: KB,
 * MB, GB; B). Returns 0, or -1 if the text is not such a number or the number does not fit. */
int text_parse_bytes(const char *text, uint64_t *bytes);
