#include "daemon/torusd/planning/link_rates.h"

void link_rates_of(struct link_rates *out, const struct damage *d)
{
    *out = (struct link_rates){.full_bps = 0};
    if (d == NULL || damage_slowest(d) == DAMAGE_FULL_RATE)
        return;
    (void)damage_format_rates(d, out->rates, sizeof out->rates);
    out->full_bps = (uint64_t)d->full_kbit * 1000;
}

void link_rates_bound_exchange(struct link_rates *out, const struct detour *found)
{
    if (out->rates[0] == '\0' || found == NULL)
        return;
    out->bound = detour_bound(found);
    out->equal_bound = detour_equal_bound(found);
}

/* Shares its lists with *d. */
static struct damage without_rates(const struct damage *d)
{
    struct damage equal = *d;

    equal.rate = NULL;
    return equal;
}

void link_rates_bound_gather(struct link_rates *out, const struct damage *d)
{
    if (out->rates[0] == '\0')
        return;
    const struct damage equal = without_rates(d);
    out->bound = detour_gather_bound(d);
    out->equal_bound = detour_gather_bound(&equal);
}

static double inverse(double cut)
{
    return cut > 0 ? 1 / cut : 0;
}

void link_rates_bound_broadcast(struct link_rates *out, const struct damage *d, uint32_t root)
{
    if (out->rates[0] == '\0')
        return;
    const struct damage equal = without_rates(d);
    out->bound = inverse(detour_least_cut(d, root));
    out->equal_bound = inverse(detour_least_cut(&equal, root));
}
