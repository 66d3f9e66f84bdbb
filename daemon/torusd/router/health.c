#include "daemon/torusd/router/health.h"

#include <stdio.h>
#include <stdlib.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/router/internal.h"
#include "proto/text.h"

/* --- the probe ---
 *
 * A link is up when a frame that fills a packet has passed in both directions. Without this probe, a cable
 * or switch that drops large packets would pass the handshake and all heartbeats, and lose every exchange.
 *
 *     node A                                          node B
 *     PROBING                                         PROBING (the handshake is DONE)
 *       |  ---- probe (fills a packet) -------------->  |
 *       |  <--------------- answer to A's probe ------  |
 *       |  <-------------- probe (fills a packet) ----  |
 *       |  ---- answer to B's probe ----------------->  |
 *       v                                               v
 *     UP                                              UP
 *
 * Each side is UP when its own probe has been answered and it has received the other's probe. A side that is
 * UP has sent its answer before any later frame, so the other side is UP when later frames arrive. */

#define SEGMENTS 2u         /* at least one of them is full, wherever the first one begins */
#define SEGMENT_LEAST 1460u /* used if the connection does not know its segment size */
#define PROBE_MOST (128u * 1024u)

static int send_probe_message(struct link *link, const struct peer_message *message,
                              struct error *e)
{
    struct router *r = link->router;
    struct outgoing *frame = outgoing_make(&r->outgoing, message);

    if (frame == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory to probe a link");
    outgoing_push(&link->handshake_frames, frame);
    r->io.wake(r->io.context, link->connection);
    return 0;
}

int probe_begin(struct link *link, struct error *e)
{
    struct router *r = link->router;
    struct connection_stat stat = {0};
    struct peer_message probe = {.kind = PEER_PROBE};
    uint8_t *filler;
    uint32_t segment;
    int result;

    r->io.stat(r->io.context, link->connection, &stat);
    segment = stat.segment > SEGMENT_LEAST ? stat.segment : SEGMENT_LEAST;
    link->probe.length = segment < PROBE_MOST / SEGMENTS ? SEGMENTS * segment : PROBE_MOST;
    link->probe.acked = stat.acked;
    link->probe.received = link->rx_bytes;
    link->probe.since = r->now;
    filler = calloc(1, link->probe.length);
    if (filler == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory to probe a link");
    probe.probe.filler = (struct peer_bytes){filler, link->probe.length};
    result = send_probe_message(link, &probe, e);
    free(filler);
    return result;
}

int probe_heard(struct link *link, const struct peer_message *message, struct error *e)
{
    if (message->kind == PEER_PROBE && !link->probe.heard) {
        const struct peer_message answer = {
            .kind = PEER_PROBE_ANSWERED, .probe_answered = {(uint32_t)message->probe.filler.len}};
        link->probe.heard = true;
        if (send_probe_message(link, &answer, e) != 0)
            return -1;
    } else if (message->kind == PEER_PROBE_ANSWERED && !link->probe.answered &&
               message->probe_answered.bytes == link->probe.length) {
        link->probe.answered = true;
    } else {
        return error_set(e, ERROR_PROTOCOL, "%s sent neither a probe nor the answer to one",
                         link->address);
    }
    return link->probe.heard && link->probe.answered;
}

/* Fills *why with the fault that `bytes` bytes are not acknowledged although small frames pass. `mtu` is the
 * MTU of this side; 0: not known. */
static void probe_ask_mtu(uint64_t bytes, uint32_t mtu, struct error *why)
{
    char here[32] = "";

    if (mtu > 0)
        (void)snprintf(here, sizeof here, " (%u here)", mtu);
    (void)error_set(why, ERROR_LINK,
                    "sent %llu %s, none acknowledged: do both ends have the same MTU%s?",
                    (unsigned long long)bytes, text_plural(bytes, "byte", "bytes"), here);
}

static void explain_failure(struct link *link, const struct connection_stat *stat,
                            struct error *why)
{
    const uint32_t neighbour = link->router->port[link->port].neighbour;
    char here[32] = "";

    faults_of_mtu(link->router, link->port, stat);
    if (stat->unacked > 0) {
        probe_ask_mtu(stat->unacked, stat->mtu, why);
        return;
    }
    if (stat->mtu > 0)
        (void)snprintf(here, sizeof here, " (%u here)", stat->mtu);
    (void)error_set(why, ERROR_LINK,
                    "node %u has acknowledged the probe of %u bytes, but its own probe has not "
                    "arrived: do both ends have the same MTU%s, or is torusd there stopped?",
                    neighbour, link->probe.length, here);
}

uint64_t probe_deadline(const struct link *link)
{
    return link->probe.since + (link->probe.told ? ROUTER_PROBE_TIME : ROUTER_PROBE_TELL);
}

int probe_check(struct link *link, uint64_t now, struct error *why)
{
    struct router *r = link->router;
    struct connection_stat stat = {0};

    if (now < probe_deadline(link))
        return 0;
    r->io.stat(r->io.context, link->connection, &stat);
    if (stat.acked != link->probe.acked || link->rx_bytes != link->probe.received) {
        link->probe.acked = stat.acked; /* the link is slow, but works */
        link->probe.received = link->rx_bytes;
        link->probe.since = now;
        return 0;
    }
    explain_failure(link, &stat, why);
    if (now >= link->probe.since + ROUTER_PROBE_TIME)
        return -1;
    link->probe.told = true;
    port_note(r, link->port, why->text);
    return 0;
}

/* --- silence --- */

static uint32_t beats_in(const struct router *r, uint64_t time)
{
    return (uint32_t)((time + r->heartbeat - 1) / r->heartbeat);
}

static double to_seconds(uint64_t time)
{
    return (double)time / (double)SECONDS;
}

int silence_beat(struct link *link, struct error *why)
{
    struct router *r = link->router;
    struct connection_stat stat = {0};
    bool heard = link->heard || link->held_by != 0; /* held: this node itself has stopped reading */
    uint64_t stall = r->silence > ROUTER_STALL ? r->silence : ROUTER_STALL;
    uint64_t unacked = r->silence > ROUTER_UNACKED ? r->silence : ROUTER_UNACKED;

    if (stall < ROUTER_STALL_BEATS * link->interval)
        stall = ROUTER_STALL_BEATS * link->interval;
    r->io.stat(r->io.context, link->connection, &stat);
    bool taken = !stat.in_flight || stat.acked != link->acked;
    bool answered = heard || taken;
    link->acked = stat.acked;
    link->retransmits = stat.retransmits;
    port_hour_note(r, link->port);
    rates_beat(link, &stat);
    link->blocked = taken ? 0 : link->blocked + 1;
    link->heard = false;
    link->unheard = heard ? 0 : link->unheard + 1;
    link->unanswered = answered ? 0 : link->unanswered + 1;
    if (link->unanswered >= beats_in(r, r->silence)) {
        flapping_lost(r, link->port, r->silence);
        return error_set(why, ERROR_LINK, "silent for %.3g s", to_seconds(r->silence));
    }
    if (link->blocked >= beats_in(r, unacked)) {
        flapping_lost(r, link->port, unacked);
        faults_of_mtu(r, link->port, &stat);
        probe_ask_mtu(stat.unacked, stat.mtu, why);
        return -1;
    }
    if (link->unheard >= beats_in(r, stall))
        return error_set(why, ERROR_LINK,
                         "silent for %.3g s: torusd there is stopped or overloaded",
                         to_seconds(stall));
    return 0;
}

/* --- quiet links --- */

static bool looks(const struct router *r)
{
    return r->forwards == TOPOLOGY_FORWARDS && router_beats(r);
}

bool quiet_is_due(struct router *r, uint64_t now)
{
    if (now < r->quick_at || !looks(r))
        return false;
    r->quick_at += QUIET_BEAT;
    if (r->quick_at <= now)
        r->quick_at = now + QUIET_BEAT;
    return true;
}

uint64_t quiet_deadline(const struct router *r)
{
    return looks(r) ? r->quick_at : ROUTER_NEVER;
}

/* The acknowledgements are only asked for if nothing else has arrived, because that takes three calls to the kernel. They are
 * asked for now: if this node was not running, they have arrived meanwhile. In the first such interval it is not known
 * how much was acknowledged before, so everything must have been acknowledged. */
static bool is_answered(struct link *link, uint64_t *round_trip)
{
    struct quiet *q = &link->quiet;
    struct connection_stat stat = {0};
    bool answered = q->heard || link->held_by != 0;

    *round_trip = 0;
    if (!answered) {
        link->router->io.stat(link->router->io.context, link->connection, &stat);
        *round_trip = stat.rtt_us * (MILLISECONDS / 1000);
        answered = !stat.in_flight || (q->counted && stat.acked != q->acked);
        q->acked = stat.acked;
    }
    q->counted = !q->heard && link->held_by == 0;
    q->heard = false;
    return answered;
}

void quiet_beat(struct link *link)
{
    const struct router *r = link->router;
    struct quiet *q = &link->quiet;
    char name[TORUS_PORT_NAME_SIZE];
    uint64_t round_trip;
    const bool answered = is_answered(link, &round_trip);

    q->missing = answered ? 0 : q->missing + 1;
    q->answered = answered ? q->answered + 1 : 0;
    if (!q->is_quiet && q->missing >= QUIET_BEATS + 2 * round_trip / QUIET_BEAT) {
        q->is_quiet = true;
        log_info("port %s: nothing comes from node %u: IP routes avoid the link",
                 torus_port_name(r->torus, r->rank, link->port, name),
                 r->port[link->port].neighbour);
    } else if (q->is_quiet && q->answered >= QUIET_CALM) {
        q->is_quiet = false;
        log_info("port %s: node %u is heard again: IP routes use the link",
                 torus_port_name(r->torus, r->rank, link->port, name),
                 r->port[link->port].neighbour);
    }
}

void quiet_state(struct router *r)
{
    uint32_t quiet = 0;

    for (unsigned i = 0; i < torus_ports(r->torus) && looks(r); i++)
        if (r->port[i].link != NULL && r->port[i].link->quiet.is_quiet)
            quiet |= 1u << i;
    flood_set_quiet(r, quiet);
}
