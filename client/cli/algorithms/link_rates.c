#include "client/cli/algorithms/link_rates.h"

#include <stdlib.h>
#include <string.h>

#include "client/cli/terminal/json.h"

#define SHOWN 4u /* rates in a line */

int link_rates_set(json_t *o, const struct torus_link_rates *links)
{
    if (links == NULL)
        return 0;
    return json_object_set_new(o, "rates", json_string(links->rates)) |
           json_object_set_new(o, "full_bits_per_second", json_known(links->full_bps));
}

/* The time of so many blocks on a channel of the full rate, or null. */
static json_t *time_of(double blocks, double block_bytes, const struct torus_link_rates *links)
{
    return blocks > 0 && links->full_bps > 0
               ? json_real(blocks * block_bytes * 8 / (double)links->full_bps)
               : json_null();
}

int link_rates_set_bounds(json_t *o, const struct torus_link_rates *links, double block_bytes)
{
    if (links == NULL)
        return 0;
    return link_rates_set(o, links) |
           json_object_set_new(o, "bound_seconds", time_of(links->bound, block_bytes, links)) |
           json_object_set_new(o, "equal_bound_seconds",
                               time_of(links->equal_bound, block_bytes, links));
}

int link_rates_shorten(json_t *o)
{
    const char *rates = json_string_value(json_object_get(o, "rates")), *end = rates;
    const bool cut = rates != NULL && strstr(rates, "...") != NULL;
    unsigned count = 0, shown;

    for (const char *at = rates; at != NULL; at = strchr(at, ','), at += at != NULL) {
        if (count++ < SHOWN)
            end = at + strcspn(at, ",");
    }
    shown = count < SHOWN ? count : SHOWN;
    if (count == shown)
        return 0;
    return json_object_set_new(o, "rates",
                               json_sprintf("%.*s, and %s%u more", (int)(end - rates), rates,
                                            cut ? "at least " : "", count - shown - cut));
}
