/* A link is up when a frame that fills a packet has passed in both directions. Without this probe, a cable
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
#include "daemon/torusd/router/links/probe.h"

#include <stdio.h>
#include <stdlib.h>

#include "daemon/torusd/router/flooding/faults.h"
#include "daemon/torusd/router/ports/port.h"
#include "daemon/torusd/router/record/router_record.h"
#include "proto/text.h"

#define SEGMENTS 2u         /* at least one of them is full, wherever the first one begins */
#define SEGMENT_LEAST 1460u /* used if the connection does not know its segment size */
#define PROBE_MOST (128u * 1024u)

static int send_probe_message(struct link *link, const struct peer_message *message,
                              struct error *e)
{
    struct router *r = link->router;
    struct outgoing *frame = outgoing_new(&r->outgoing);

    if (frame == NULL || outgoing_set_message(frame, message) != 0) {
        if (frame != NULL)
            outgoing_free(&r->outgoing, frame);
        return error_set(e, ERROR_MEMORY, "out of memory to probe a link");
    }
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

void probe_ask_mtu(uint64_t bytes, uint32_t mtu, struct error *why)
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
