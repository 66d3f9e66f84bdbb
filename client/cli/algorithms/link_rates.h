/* The rates of links that a plan was made with, and the lower bounds at these rates, as torusctl prints them. */
#pragma once

#include <torus/torus.h>

#include "client/cli/terminal/writer.h"

/* The fields for rates in a record; the record has none of them if all links were taken for equal. */
#define RATES_FIELDS                                                                               \
    FIELD("rates of links", "rates"), FIELD("fastest links", "full_bits_per_second", FORMAT_RATE)
#define EQUAL_BOUND_FIELD FIELD("if links were equal", "equal_bound_seconds", FORMAT_SECONDS)

/* Adds "rates" and "full_bits_per_second". If links are NULL, adds nothing. Returns 0, or another value if memory is short. */
int link_rates_set(json_t *o, const struct torus_link_rates *links);

/* Adds "bound_seconds" and "equal_bound_seconds" too, for blocks of this size; null if they are not known. */
int link_rates_set_bounds(json_t *o, const struct torus_link_rates *links, double block_bytes);

/* Shortens many rates for people: "0:+0=0.5,0:-0=0.5, and 126 more". */
int link_rates_shorten(json_t *o);
