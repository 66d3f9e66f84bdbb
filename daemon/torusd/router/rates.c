#include "daemon/torusd/router/rates.h"

#include "daemon/lib/base/log.h"
#include "daemon/torusd/router/filler.h"
#include "daemon/torusd/router/internal.h"
#include "proto/elapsed.h"
#include "proto/frame.h"

/* Returns a rate in kbit/s, at least 1 if it is known. */
static uint32_t to_kbit(double mbit)
{
    if (mbit <= 0)
        return 0;
    if (mbit >= UINT32_MAX / 1000.0)
        return UINT32_MAX;
    return mbit > 0.001 ? (uint32_t)(mbit * 1000 + 0.5) : 1;
}

/* Returns the smaller rate of those that are known. */
static uint32_t least_known(uint32_t a, uint32_t b)
{
    return b == 0 || (a > 0 && a < b) ? a : b;
}

/* Returns what the link should carry away from this node. */
static uint32_t should_send(const struct port *port)
{
    return least_known(to_kbit(port->rate.nominal.send), port->rate.negotiated);
}

static uint32_t sends(const struct port *port)
{
    return least_known(should_send(port), port->rate.observed.slow);
}

static uint32_t receives(const struct port *port)
{
    return least_known(to_kbit(port->rate.nominal.receive), port->rate.negotiated);
}

/* States what the links can carry now. */
static void state_rates(struct router *r)
{
    uint32_t rates[2 * TORUS_MAX_PORTS] = {0};
    bool known = false;

    for (unsigned i = 0; i < torus_ports(r->torus); i++) {
        if (r->port[i].neighbour == TORUS_NO_NODE)
            continue;
        rates[2 * i] = sends(&r->port[i]);
        rates[2 * i + 1] = receives(&r->port[i]);
        known = known || rates[2 * i] > 0 || rates[2 * i + 1] > 0;
    }
    flood_set_rates(r, known ? rates : NULL);
}

/* What was observed while the link should have carried another rate does not count. */
static void forget_if_changed(struct port_rate *rate, bool changed)
{
    if (changed)
        rate->observed = (struct observed){.count = 0};
}

void router_set_nominal(struct router *r, unsigned i, struct nominal_rate mbit)
{
    struct port *port = &r->port[i];
    const uint32_t before = should_send(port);

    port->rate.nominal = mbit;
    forget_if_changed(&port->rate, should_send(port) != before);
    state_rates(r);
}

void router_set_negotiated(struct router *r, unsigned i, uint32_t kbit)
{
    struct port *port = &r->port[i];
    const uint32_t before = should_send(port);

    port->rate.negotiated = kbit;
    forget_if_changed(&port->rate, should_send(port) != before);
    state_rates(r);
}

/* --- what is observed --- */

/* TCP delivers payload; rates of links count the headers of a full packet of Ethernet, too. */
#define PACKET_BYTES UINT64_C(1514)
#define PAYLOAD_BYTES UINT64_C(1448)

static uint32_t with_headers(uint64_t payload_bps)
{
    const uint64_t kbit = payload_bps / 1000 * PACKET_BYTES / PAYLOAD_BYTES;

    return kbit < UINT32_MAX ? (uint32_t)kbit : UINT32_MAX;
}

static void tell_observed(const struct router *r, unsigned i)
{
    const struct port *port = &r->port[i];
    char name[TORUS_PORT_NAME_SIZE];

    (void)torus_port_name(r->torus, r->rank, i, name);
    if (port->rate.observed.slow > 0)
        log_warning("port %s: the link to node %u carries %g of %g Mbit/s", name, port->neighbour,
                    port->rate.observed.slow / 1e3, should_send(port) / 1e3);
    else
        log_info("port %s: the link to node %u carries its nominal rate again", name,
                 port->neighbour);
}

void rates_link_up(struct router *r, unsigned i)
{
    struct port_rate *rate = &r->port[i].rate;
    const bool was_slow = rate->observed.slow > 0;

    rate->observed = (struct observed){.count = 0};
    rate->measured = 0;
    rate->acked = 0;
    rate->acks_wait = false;
    rate->probing = false;
    if (was_slow)
        state_rates(r);
}

/* Whether a measurement counts although acknowledgements waited, so that the link may carry more than that. */
static bool counts_all_the_same(const struct link *link, uint32_t kbit)
{
    const struct port *port = &link->router->port[link->port];
    const uint64_t slow = port->rate.observed.slow;

    /* While a link is slow, its low measurements count like its high ones. */
    return observed_is_well(kbit, should_send(port)) || 4 * (uint64_t)kbit <= 5 * slow;
}

/* Notes a new measurement, unless acknowledgements waited. */
static void note_measured(struct link *link, const struct connection_stat *stat, uint64_t now)
{
    struct port_rate *rate = &link->router->port[link->port].rate;
    const uint32_t kbit = with_headers(stat->rate_bps);

    rate->acks_wait = stat->unacked > 0 &&
                      (rate->acks_wait || link_clock_acks_wait(&link->clock, link->interval, now));
    if (stat->measured == rate->measured)
        return;
    rate->measured = stat->measured;
    if (!rate->acks_wait || counts_all_the_same(link, kbit))
        observed_note(&rate->observed, kbit, now);
    rate->acks_wait = false;
}

void rates_beat(struct link *link, const struct connection_stat *stat)
{
    struct router *r = link->router;
    struct port *port = &r->port[link->port];
    const uint64_t now = router_now(r);

    note_measured(link, stat, now);
    if (observed_decide(&port->rate.observed, should_send(port), now)) {
        tell_observed(r, link->port);
        state_rates(r);
    }
    filler_check(link, stat, now);
}

bool router_knows_rates(const struct router *r)
{
    return router_least_minor(r) >= RATES_MINOR;
}

uint32_t router_channel_rate(const struct router *r, uint32_t rank, unsigned port)
{
    return router_knows_rates(r) ? topology_channel_rate(&r->topology, rank, port) : 0;
}

void router_port_rates(const struct router *r, unsigned i, struct port_rates *rates)
{
    const struct port *port = &r->port[i];
    const uint32_t nominal = to_kbit(port->rate.nominal.send);

    *rates = (struct port_rates){.nominal = port->rate.nominal,
                                 .negotiated = port->rate.negotiated,
                                 .observed = observed_rate(&port->rate.observed),
                                 .planned = router_channel_rate(r, r->rank, i)};
    if (rates->planned == 0)
        rates->source = RATE_UNKNOWN;
    else if (rates->planned < sends(port) || sends(port) == 0)
        rates->source = RATE_NEIGHBOUR;
    else
        rates->source = port->rate.observed.slow == rates->planned ? RATE_OBSERVED
                        : nominal == rates->planned                ? RATE_NOMINAL
                                                                   : RATE_NEGOTIATED;
}

const char *rate_source_name(enum rate_source source)
{
    switch (source) {
    case RATE_UNKNOWN:
        break;
    case RATE_NOMINAL:
        return "nominal";
    case RATE_NEGOTIATED:
        return "negotiated";
    case RATE_OBSERVED:
        return "observed";
    case RATE_NEIGHBOUR:
        return "neighbour";
    }
    return "";
}
