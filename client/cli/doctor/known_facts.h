/* Reads facts (daemon/lib/host/facts.h). Another machine has sent them: values may be anything. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FACT_SIZE 256u

/* Copies the value of the first fact with this name, cut to FACT_SIZE. Returns false, and an empty text, if there is
 * none. */
bool fact_text(const char *facts, const char *name, char value[FACT_SIZE]);
/* Whether a fact has this value. */
bool fact_is(const char *facts, const char *name, const char *value);
/* Reads a whole number from 0 on. Returns false, and 0, if there is none. */
bool fact_number(const char *facts, const char *name, uint64_t *number);

/* A name for the functions above: fact_name("interface.%s.mtu", ...). Valid until the fourth call from now on. */
const char *fact_name(const char *format, ...) __attribute__((format(printf, 1, 2)));
