#include "tests/sim/checks.h"

#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/detour/detour.h"
#include "daemon/lib/schedule/plan.h"
#include "tests/sim/internal.h"
#include "tests/sim/memory.h"
#include "tests/support/cmocka.h"

#define SETTLE_TIME (200 * SECONDS)

/* A schedule from a file has the routes of the algorithm in its name: "at2@1a2b3c4d" has those of at2. */
static const struct algorithm *algorithm_of(const struct spec *spec)
{
    char name[40];

    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(spec->algorithm, "@"), spec->algorithm);
    return algorithm_find(name);
}

static bool has_found_name(const struct spec *spec)
{
    return strcmp(spec->algorithm, FOUND_NAME) == 0 ||
           strcmp(spec->algorithm, FOUND_GATHER_NAME) == 0 ||
           strcmp(spec->algorithm, FOUND_DISJOINT_NAME) == 0;
}

/* Whether the routes have been found for a network that is not a torus. */
static bool are_found(const struct sim_request *r, const struct spec *spec)
{
    return !torus_is_plain(sim_torus(r->sim)) && has_found_name(spec);
}

/* The routes that avoid the links and leave out the nodes that the result names, or have been found for the network;
 * NULL if the result names none and the exchange had an algorithm. The caller frees them. */
static struct detour *detour_of(const struct sim_request *r, const struct spec *spec)
{
    char text[sizeof r->result.without], *to = text;
    struct detour *detour = NULL;
    struct damage damage;

    for (const char *from = r->result.without; *from != '\0'; from++)
        if (strchr("0123456789:+,", *from) != NULL) /* "link 3:+0, link 4:+1" */
            *to++ = *from;
    *to = '\0';
    uint64_t missing = sim_missing(r);
    if (!are_found(r, spec) &&
        ((text[0] == '\0' && missing == 0) || r->operation != OPERATION_EXCHANGE))
        return NULL;
    if ((text[0] != '\0' ? damage_parse(&damage, sim_torus(r->sim), text, NULL)
                         : damage_init(&damage, sim_torus(r->sim), NULL)) != 0)
        sim_fail(r->sim, "links %s", text);
    for (uint32_t rank = 0; rank < damage.torus.nodes; rank++)
        if ((missing & UINT64_C(1) << rank) != 0)
            damage_add_node(&damage, rank);
    if (detour_new(&detour, &damage, NULL) != 0)
        sim_fail(r->sim, "no routes without %s", text);
    damage_free(&damage);
    return detour;
}

/* What a node puts on a channel in one round: all blocks, with those that it only relays (they leave by the port opposite
 * to the one by which they came), and the messages that start there. */
static void count_port(const struct plan *p, const struct torus *t, unsigned port, uint64_t *blocks,
                       uint64_t *messages)
{
    *blocks = *messages = 0;
    for (const struct plan_message *m = p->send; m < p->send + p->sends; m++)
        if (m->port == port) {
            *blocks += m->blocks;
            ++*messages;
        }
    for (const struct plan_message *m = p->arrival; m < p->arrival + p->arrivals; m++)
        if (m->left > 0 && torus_port_opposite(t, m->port) == port)
            *blocks += m->blocks;
}

/* A node's counts of messages and blocks by port are those of its plan. */
static void check_plan_counts(struct sim_request *r, const struct spec *spec,
                              const struct algorithm *algorithm, uint32_t rank)
{
    const struct torus *t = sim_torus(r->sim);
    const struct exchange_node_report *node = &r->result.node[rank];
    bool one = spec->operation == OPERATION_BROADCAST;
    struct plan plan;

    if (plan_build_source(&plan, t, algorithm, rank, one ? spec->sender : TORUS_NO_NODE, NULL) != 0)
        sim_fail(r->sim, "no plan");
    for (unsigned port = 0; port < torus_ports(t); port++) {
        uint64_t blocks, messages;
        count_port(&plan, t, port, &blocks, &messages);
        assert_int_equal(node->port[port].tx_blocks, blocks * r->result.rounds);
        assert_int_equal(node->port[port].combined_messages, messages * r->result.rounds);
        /* If blocks are cut differently, segments may differ by a byte. */
        if (spec->to[0] == '\0' && spec->block_bytes % algorithm->segments == 0 &&
            r->result.rounds == 1) {
            uint64_t bytes = blocks * spec->block_bytes / algorithm->segments;
            if (r->result.kept_bytes == 0)
                assert_int_equal(node->port[port].tx_bytes, bytes);
            else /* kept bytes are not sent again */
                assert_true(node->port[port].tx_bytes <= bytes);
        }
    }
    plan_free(&plan);
}

/* Counts a route's pieces. All legs of a route of an allgather, except the last one, belong to other routes, too. */
static void count_route(uint32_t *count, const struct torus *t, const struct algorithm *a,
                        uint32_t source, const struct leg *leg, uint32_t legs)
{
    uint32_t here = source;

    for (uint32_t i = 0; i < legs; i++) {
        unsigned port = torus_port(t, leg[i].dim, leg[i].direction);
        for (uint16_t hop = 0; hop < leg[i].hops; hop++) {
            count[here * torus_ports(t) + port] +=
                a->operation != OPERATION_ALLGATHER || i + 1 == legs;
            here = torus_neighbour(t, here, port);
        }
    }
}

/* The pieces that leave by each port of each node, by rank * ports + port. The caller frees the array. */
static uint32_t *count_departures(struct sim_request *r, const struct spec *spec,
                                  const struct algorithm *a)
{
    const struct torus *t = sim_torus(r->sim);
    bool one = spec->operation == OPERATION_BROADCAST;
    uint32_t *count = sim_alloc((size_t)t->nodes * torus_ports(t) * sizeof *count);
    struct leg *leg = sim_alloc(((size_t)algorithm_max_legs(a, t) + 1) * sizeof *leg);

    for (uint32_t source = 0; source < t->nodes; source++)
        for (uint32_t to = 0; to < t->nodes && (!one || source == spec->sender); to++)
            for (uint32_t i = 0; i < a->segments && to != source; i++)
                count_route(count, t, a, source, leg, algorithm_route(a, t, source, to, i, leg));
    free(leg);
    return count;
}

/* When streaming, the number of messages depends on timing; the blocks that they carry do not. `departures` is by
 * port. */
static void check_departures(struct sim_request *r, const struct spec *spec,
                             const struct algorithm *algorithm, uint32_t rank,
                             const uint32_t *departures)
{
    const struct torus *t = sim_torus(r->sim);
    const struct exchange_node_report *node = &r->result.node[rank];
    uint64_t bytes = 0, hops = 0;

    for (unsigned port = 0; port < torus_ports(t); port++) {
        assert_true(node->port[port].tx_blocks <= departures[port] * r->result.rounds);
        if (spec->to[0] != '\0')
            assert_int_equal(node->port[port].tx_blocks, departures[port] * r->result.rounds);
        else if (r->result.kept_bytes > 0) /* the rest of some blocks */
            assert_true(node->port[port].tx_bytes <= departures[port] * spec->block_bytes);
        else if (algorithm->segments == 1)
            assert_int_equal(node->port[port].tx_bytes, departures[port] * spec->block_bytes);
    }
    if (rank > 0 || spec->to[0] != '\0' || !algorithm->streaming ||
        spec->operation != OPERATION_EXCHANGE || algorithm->detour != NULL ||
        r->result.kept_bytes > 0)
        return;
    for (uint32_t node_rank = 0; node_rank < t->nodes; node_rank++) {
        for (unsigned port = 0; port < torus_ports(t); port++)
            bytes += r->result.node[node_rank].port[port].tx_bytes;
        for (uint32_t other = 0; other < t->nodes; other++)
            hops += torus_distance(t, node_rank, other);
    }
    assert_int_equal(bytes, hops * spec->block_bytes); /* all of its routes are shortest routes */
}

/* Nodes beyond the 64 that a bit set has are never missing. */
static bool is_missing(struct sim_request *r, uint32_t rank)
{
    return rank < 64 && (sim_missing(r) & UINT64_C(1) << rank) != 0;
}

static void check_node_counts(struct sim_request *r, const struct spec *spec,
                              const struct algorithm *algorithm, uint32_t rank,
                              const uint32_t *departures)
{
    const struct torus *t = sim_torus(r->sim);
    const struct exchange_node_report *node = &r->result.node[rank];
    bool one = spec->operation == OPERATION_BROADCAST;
    uint64_t expected_bytes = 0, expected_blocks = 0;

    if (algorithm != NULL && departures != NULL)
        check_departures(r, spec, algorithm, rank, departures + rank * torus_ports(t));
    else if (algorithm != NULL)
        check_plan_counts(r, spec, algorithm, rank);
    for (uint32_t source = 0; source < t->nodes; source++) {
        uint32_t intended = spec->operation == OPERATION_EXCHANGE ? rank : source;
        if (source == rank || (one && source != spec->sender) || is_missing(r, source))
            continue;
        expected_blocks++;
        expected_bytes +=
            spec->to[0] == '\0' ? spec->block_bytes : sim_block_size(spec->from, source, intended);
    }
    assert_int_equal(node->rank, rank);
    assert_int_equal(node->blocks_delivered, expected_blocks);
    assert_int_equal(node->bytes_delivered, expected_bytes);
}

/* The algorithm of an exchange that has succeeded; NULL: its routes may have been found for rates that the result does
 * not name. */
static const struct algorithm *algorithm_used(const struct sim_request *r, const struct spec *spec,
                                              const struct detour *detour)
{
    if (r->sim->rated && (detour != NULL || has_found_name(spec) || algorithm_of(spec) == NULL))
        return NULL;
    return detour == NULL                                      ? algorithm_of(spec)
           : r->operation == OPERATION_EXCHANGE                ? detour_algorithm(detour)
           : strcmp(spec->algorithm, FOUND_DISJOINT_NAME) == 0 ? detour_disjoint(detour)
                                                               : detour_gather(detour);
}

void check_success(struct sim_request *r, const struct spec *spec)
{
    const struct torus *t = sim_torus(r->sim);

    if (!r->ended || r->error.code != ERROR_NONE)
        sim_fail(r->sim, "%s has not succeeded: %s", r->id, r->ended ? r->error.text : "not ended");
    struct detour *detour = detour_of(r, spec);
    const struct algorithm *algorithm = algorithm_used(r, spec, detour);
    uint32_t *departures = algorithm != NULL && r->result.mode == MODE_STREAMING
                               ? count_departures(r, spec, algorithm)
                               : NULL;
    for (uint32_t rank = 0; rank < t->nodes; rank++) {
        if (is_missing(r, rank))
            continue;
        check_node_counts(r, spec, algorithm, rank, departures);
        for (unsigned port = 0; port < torus_ports(t); port++) {
            uint32_t peer = torus_neighbour(t, rank, port);
            if (peer != TORUS_NO_NODE)
                assert_int_equal(r->result.node[rank].port[port].tx_bytes,
                                 r->result.node[peer].port[torus_port_opposite(t, port)].rx_bytes);
        }
        if (spec->to[0] != '\0' && sim_output(r->sim, rank, r->id) != SIM_OUTPUT_FINAL)
            sim_fail(r->sim, "node %u has no output", rank);
    }
    free(departures);
    detour_free(detour);
}

bool check_agreement(struct sim_request *r, const struct spec *spec)
{
    struct sim *sim = r->sim;
    bool folders = spec->to[0] != '\0', committed = false, failed = false;
    struct exchange_info info, first = {0};

    for (int i = 0; i < 2; i++) { /* messages in transit may still give a node work */
        sim_pass(sim, 100 * MILLISECONDS);
        if (!sim_run(sim, SETTLE_TIME, sim_is_quiet, NULL))
            sim_fail(sim, "%s does not end on every node", r->id);
    }
    if (!r->ended && r->exchange != NULL)
        sim_fail(sim, "%s has ended and its client is not told", r->id);
    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++) {
        if (!sim_alive(sim, rank) || !sim_info(sim, rank, r->id, &info))
            continue;
        switch (info.state) {
        case EXCHANGE_COMMITTED:
            committed = true;
            break;
        case EXCHANGE_FINISHED:
            if (folders)
                sim_fail(sim, "node %u has finished and keeps nothing", rank);
            break;
        case EXCHANGE_FAILED:
            if (strcmp(info.algorithm, "?") == 0)
                continue; /* it has only heard of a failure; it may have returned in doubt */
            if (failed && strcmp(info.reason, first.reason) != 0)
                sim_fail(sim, "%s failed twice: \"%s\", on node %u \"%s\"", r->id, first.reason,
                         rank, info.reason);
            first = info;
            failed = true;
            break;
        case EXCHANGE_IN_DOUBT:
            if (!folders)
                sim_fail(sim, "node %u is in doubt about nothing", rank);
            break;
        default:
            sim_fail(sim, "%s is %s on node %u", r->id, exchange_state_name(info.state), rank);
        }
        if (folders) {
            enum sim_output wanted = info.state == EXCHANGE_COMMITTED  ? SIM_OUTPUT_FINAL
                                     : info.state == EXCHANGE_IN_DOUBT ? SIM_OUTPUT_TEMPORARY
                                                                       : SIM_OUTPUT_NONE;
            if (sim_output(sim, rank, r->id) != wanted)
                sim_fail(sim, "%s is %s on node %u, and its disk says otherwise", r->id,
                         exchange_state_name(info.state), rank);
        }
    }
    if (folders && committed && failed)
        sim_fail(sim, "%s was committed here and failed there (%s)", r->id, first.reason);
    if (failed && r->ended && r->error.code == ERROR_NONE)
        sim_fail(sim, "the client of %s was told of a success, but it failed: %s", r->id,
                 first.reason);
    return committed && !failed;
}

static bool no_temporary_output(struct sim *sim, void *context)
{
    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++)
        if (sim_output(sim, rank, context) == SIM_OUTPUT_TEMPORARY)
            return false;
    return true;
}

void check_doubts_end(struct sim *sim, const char *id)
{
    char copy[EXCHANGE_ID_SIZE];
    uint32_t root = 0, in_place = 0, nodes = sim_torus(sim)->nodes;

    (void)snprintf(copy, sizeof copy, "%s", id);
    sim_run_until_whole(sim);
    if (!sim_run(sim, 30 * SECONDS, no_temporary_output, copy))
        sim_fail(sim, "%s stays in doubt", id);
    (void)sscanf(id, "%u", &root);
    for (uint32_t rank = 0; rank < nodes; rank++)
        in_place += sim_output(sim, rank, id) == SIM_OUTPUT_FINAL;
    if (in_place != (sim_decided(sim, root, id) ? nodes : 0))
        sim_fail(sim, "%s has an output on %u of %u nodes", id, in_place, nodes);
}

void check_next_exchange(struct sim *sim, uint32_t root)
{
    const struct spec spec = GENERATED(.algorithm = "direct", .block_bytes = 100);

    sim_run_until_whole(sim);
    struct sim_request *next = sim_exchange(sim, root, &spec);
    (void)sim_run_until_ended(next, 60 * SECONDS);
    check_success(next, &spec);
    (void)check_agreement(next, &spec);
}

/* Each node that is down had a link to one that is up: otherwise no node could notice that it is down. */
static bool are_met(const struct damage *d)
{
    for (uint32_t rank = 0; rank < d->torus.nodes; rank++) {
        bool met = !d->gone[rank];
        for (unsigned port = 0; port < torus_ports(&d->torus); port++) {
            uint32_t there = torus_neighbour(&d->torus, rank, port);
            met = met || (there != TORUS_NO_NODE && !d->gone[there]);
        }
        if (!met)
            return false;
    }
    return true;
}

bool check_may_die(const struct damage *down, uint32_t rank)
{
    uint32_t living = 0, nodes = down->torus.nodes;
    struct damage d;

    if (down->gone[rank])
        return false;
    assert_int_equal(damage_copy(&d, down, NULL), 0);
    damage_add_node(&d, rank);
    for (uint32_t i = 0; i < nodes; i++)
        living += !d.gone[i];
    bool may =
        living > 1 && 2 * living > nodes && are_met(&d) && damage_is_connected(&d, NULL) == 0;
    damage_free(&d);
    return may;
}

void check_arrivals(const struct sim_request *request, const uint64_t *came, uint64_t slack)
{
    const struct exchange_result *result = &request->result;
    const uint32_t nodes = sim_torus(request->sim)->nodes;
    uint64_t first = UINT64_MAX, last = 0;

    assert_int_equal(request->error.code, ERROR_NONE);
    assert_int_equal(result->arrivals, nodes);
    for (uint32_t rank = 0; rank < nodes; rank++) {
        first = came[rank] < first ? came[rank] : first;
        last = came[rank] > last ? came[rank] : last;
    }
    for (uint32_t rank = 0; rank < nodes; rank++) {
        const uint64_t after = came[rank] - first;
        assert_int_equal(result->arrival[rank].rank, rank);
        assert_in_range(result->arrival[rank].after_ns, after > slack ? after - slack : 0,
                        after + slack);
    }
    assert_in_range(result->waited_ns, last - came[request->root],
                    last - came[request->root] + 2 * slack);
}
