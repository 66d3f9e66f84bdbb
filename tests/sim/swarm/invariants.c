/* The invariants of a node and of the world. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/checks.h"
#include "tests/sim/swarm/copies.h"
#include "tests/sim/trace_checks.h"

#define LISTED 128u
/* Bytes of a node, and of its part of the simulator, besides its budget. */
#define OVERHEAD (24u << 20)
#define REST_TIME (120 * SECONDS)

static const char *name_of(const struct swarm_play *play, const struct swarm_request *r)
{
    static char name[100];

    (void)snprintf(name, sizeof name, "request %d (%s)", (int)(r - play->world->request),
                   r->asked != NULL ? r->asked->id : "never asked");
    return name;
}

static bool has_folders(const struct swarm_request *r)
{
    return r->to[0] != '\0';
}

/* --- the links --- */

/* Whether a link is up according to the nodes at both ends. */
static bool link_up(const struct swarm_play *play, uint32_t rank, unsigned port)
{
    const struct torus *t = &play->world->torus;
    uint32_t peer = torus_neighbour(t, rank, port);

    if (peer == TORUS_NO_NODE)
        return false;
    return (router_topology(sim_router(play->sim, rank))->entry[rank].up & 1u << port) != 0 &&
           (router_topology(sim_router(play->sim, peer))->entry[peer].up &
            1u << torus_port_opposite(t, port)) != 0;
}

static bool runs(const struct swarm_play *play, uint32_t rank)
{
    return sim_alive(play->sim, rank) && !sim_frozen(play->sim, rank);
}

/* Whether all nodes run and reach each other, except at most so many that do not run. */
static bool holds_together(const struct swarm_play *play, uint32_t away)
{
    const struct torus *t = &play->world->torus;
    uint32_t order[64], known = 0, running = 0;
    uint64_t reached = 0;

    for (uint32_t rank = 0; rank < t->nodes; rank++) {
        if (!runs(play, rank))
            continue;
        if (running++ == 0) {
            order[known++] = rank;
            reached = UINT64_C(1) << rank;
        }
    }
    if (running + away < t->nodes)
        return false;
    for (uint32_t i = 0; i < known; i++)
        for (unsigned port = 0; port < torus_ports(t); port++) {
            uint32_t there = torus_neighbour(t, order[i], port);
            if (there == TORUS_NO_NODE || !runs(play, there) || !link_up(play, order[i], port) ||
                (reached & UINT64_C(1) << there) != 0)
                continue;
            reached |= UINT64_C(1) << there;
            order[known++] = there;
        }
    return known == running;
}

/* What a node says about its links; for a node that does not run, a value that differs from all others. */
static uint64_t links_of(const struct swarm_play *play, uint32_t rank)
{
    if (!runs(play, rank))
        return UINT64_MAX;
    return router_topology(sim_router(play->sim, rank))->entry[rank].up;
}

static void watch_links(struct swarm_play *play)
{
    bool changed = false;

    for (uint64_t left = sim_touched(play->sim); left != 0; left &= left - 1) {
        uint32_t rank = (uint32_t)__builtin_ctzll(left);
        uint64_t links = links_of(play, rank);
        changed |= links != play->links[rank];
        play->links[rank] = links;
    }
    if (changed) {
        play->apart = !holds_together(play, 0);
        play->torn = play->apart && !holds_together(play, 1);
    }
    if (play->apart)
        play->apart_at = sim_now(play->sim);
    if (play->torn)
        play->torn_at = sim_now(play->sim);
}

/* If nothing is slow, all nodes have heard of a link by then. */
#define HEARD_TIME (10 * SECONDS)
#define HEARD_LATE_TIME (60 * SECONDS)

static uint64_t heard_time(const struct swarm_play *play)
{
    return sim_slowed(play->sim) ? HEARD_LATE_TIME : HEARD_TIME;
}

/* Whether nothing prevented the exchange from avoiding links that were down. */
static bool must_go_around(const struct swarm_play *play, const struct swarm_request *r)
{
    const struct swarm_world *w = play->world;
    uint64_t apart_at = r->spec.shrink ? play->torn_at : play->apart_at;

    if (strcmp(r->spec.algorithm, SPEC_AUTO) != 0 || r->imported || r->asked->id[0] == '\0' ||
        (apart_at > 0 && r->asked_at < apart_at + heard_time(play)))
        return false;
    if (r->spec.operation != OPERATION_BARRIER)
        return r->spec.operation == OPERATION_EXCHANGE;
    for (unsigned i = 0; i < w->requests; i++) /* otherwise it may have been decided */
        if (strcmp(w->request[i].barrier, r->barrier) == 0 && w->request[i].asked == NULL)
            return true;
    return false;
}

/* --- after every event --- */

void swarm_check_event(struct swarm_play *play)
{
    struct swarm_world *w = play->world;
    uint64_t now = sim_now(play->sim);

    watch_links(play);
    for (uint64_t left = play->asked; left != 0; left &= left - 1) {
        struct swarm_request *r = &w->request[__builtin_ctzll(left)];
        if (r->seen_ended) {
            play->asked &= ~(left & -left);
        } else if (r->asked->ended) {
            r->seen_ended = true;
            swarm_check_ended(play, r);
            swarm_ask_again(play, r);
        } else if (r->asked->exchange == NULL) { /* its node has died */
            r->seen_ended = r->left = r->orphaned = true;
            swarm_ask_again(play, r);
        } else if (now > r->due + play->delays) {
            sim_violated(play->sim, "deadline",
                         "the client of %s has heard nothing %.1f s after its timeout",
                         name_of(play, r), (double)(now - r->asked_at - r->spec.timeout_ns) / 1e9);
        }
    }
    if (heap_used() > w->torus.nodes * (w->setup.memory + OVERHEAD))
        sim_violated(play->sim, "bounds", "%" PRIu64 " bytes are allocated", heap_used());
}

/* --- when the client has heard of the end --- */

/* Whether every client stays until the barrier is complete; otherwise the barrier fails for all. */
static bool is_complete(const struct swarm_play *play, const struct swarm_request *r)
{
    const struct swarm_world *w = play->world;

    for (unsigned i = 0; i < w->requests; i++)
        if (strcmp(w->request[i].barrier, r->barrier) == 0 &&
            (w->request[i].left || w->request[i].hurries))
            return false;
    return true;
}

/* Whether another request with the same target has put its output there, or may do so. */
static bool has_company(const struct swarm_play *play, const struct swarm_request *r)
{
    const struct swarm_world *w = play->world;

    for (unsigned i = 0; i < w->requests; i++) {
        const struct swarm_request *other = &w->request[i];
        if (other != r && strcmp(other->to, r->to) == 0 && other->asked != NULL &&
            (!other->seen_ended || other->left || other->asked->error.code == ERROR_NONE ||
             other->asked->error.code == ERROR_IN_DOUBT))
            return true;
    }
    return false;
}

/* Whether a fault explains the failure. */
static bool may_fail(const struct swarm_play *play, const struct swarm_request *r)
{
    enum error_code code = r->asked->error.code;

    return r->left || r->hurries || sim_now(play->sim) >= sim_harmed_at(play->sim) ||
           (code == ERROR_TIMEOUT && sim_slowed(play->sim)) ||
           (code == ERROR_REFUSED && has_folders(r) && has_company(play, r)) ||
           (r->spec.operation == OPERATION_BARRIER && !is_complete(play, r));
}

/* The exchange ran until its timeout although nothing was slow: it did not notice a fault. */
static bool has_slept(const struct swarm_play *play, const struct swarm_request *r)
{
    return r->asked->error.code == ERROR_TIMEOUT && !r->hurries && !r->left &&
           r->spec.operation != OPERATION_BARRIER && !sim_slowed(play->sim) &&
           strstr(r->asked->error.text, "not finished") != NULL;
}

/* An exchange that waits for nodes that are down does not fail because of them, nor wait for nodes that have been back
 * for long. */
static void check_waited(const struct swarm_play *play, const struct swarm_request *r)
{
    const struct error *e = &r->asked->error;
    bool routed = strcmp(r->spec.algorithm, SPEC_AUTO) == 0 && !r->imported &&
                  r->spec.operation == OPERATION_EXCHANGE;

    if (e->code == ERROR_LINK && r->spec.operation != OPERATION_BARRIER)
        sim_violated(play->sim, "nodes are waited for", "%s: %s", name_of(play, r), e->text);
    if (routed && e->code == ERROR_TIMEOUT && strstr(e->text, "while waiting for") != NULL &&
        sim_now(play->sim) > play->apart_at + heard_time(play))
        sim_violated(play->sim, "what is back is not waited for", "%s: %s", name_of(play, r),
                     e->text);
}

void swarm_check_ended(struct swarm_play *play, struct swarm_request *r)
{
    const struct sim_request *asked = r->asked;
    struct spec spec = r->spec;

    swarm_tell(play, "%s has ended: %s", name_of(play, r),
               asked->error.code == ERROR_NONE ? "done" : asked->error.text);
    if (asked->error.code == ERROR_NONE) {
        play->outcome->succeeded++;
        play->outcome->rerouted += asked->result.reroutes > 0;
        play->outcome->resumed += asked->result.kept_bytes > 0;
        spec.algorithm = (char *)(uintptr_t)asked->result.algorithm;
        if (spec.operation != OPERATION_BARRIER)
            check_success(r->asked, &spec);
        if (sim_missing(r->asked) != 0 && (!r->spec.shrink || play->apart_at == 0 ||
                                           r->asked_at > play->apart_at + heard_time(play)))
            sim_violated(play->sim, "missing nodes",
                         "%s leaves out %" PRIx64 ", and all nodes could be reached",
                         name_of(play, r), sim_missing(r->asked));
        play->outcome->shrunk += sim_missing(r->asked) != 0;
        return;
    }
    if (asked->error.code == ERROR_IN_DOUBT)
        play->outcome->in_doubt++;
    else
        play->outcome->failed++;
    if (play->world->find != NULL && strstr(asked->error.text, play->world->find) != NULL)
        sim_violated(play->sim, "found", "%s: %s", name_of(play, r), asked->error.text);
    if (play->harms == 0 && has_folders(r) && asked->error.code != ERROR_IN_DOUBT &&
        sim_output(play->sim, r->root, asked->id) == SIM_OUTPUT_TEMPORARY)
        sim_violated(play->sim, "leftovers", "the client of %s is told \"%s\" too early: %s",
                     name_of(play, r), asked->error.text, sim_leftover(play->sim, r->root));
    if (has_slept(play, r))
        sim_violated(play->sim, "faults are noticed", "%s: %s", name_of(play, r),
                     asked->error.text);
    if (asked->error.code == ERROR_LINK && !r->left && must_go_around(play, r))
        sim_violated(play->sim, "links are avoided", "%s: %s", name_of(play, r), asked->error.text);
    if (r->spec.wait && !r->left)
        check_waited(play, r);
    if (!may_fail(play, r))
        sim_violated(play->sim, "no failure without a fault", "%s: %s", name_of(play, r),
                     asked->error.text);
}

/* --- at intervals --- */

static struct swarm_request *find(struct swarm_play *play, const char *id)
{
    for (unsigned i = 0; i < play->world->requests; i++) {
        struct swarm_request *r = &play->world->request[i];
        if (r->asked != NULL && strcmp(r->asked->id, id) == 0)
            return r;
    }
    return NULL;
}

/* Whether the exchange is committed, and only nodes that are down have not confirmed. */
static bool waits_in_vain(const struct swarm_play *play, const struct swarm_request *r)
{
    struct exchange_unconfirmed record[LISTED];
    struct exchange_info info;
    const char *id = r->asked->id;

    if (!runs(play, r->root) || !sim_info(play->sim, r->root, id, &info) ||
        info.state != EXCHANGE_COMMITTING)
        return false;
    size_t n = exchanges_unconfirmed(sim_exchanges(play->sim, r->root), record, LISTED), i = 0;
    while (i < n && strcmp(record[i].id, id) != 0)
        i++;
    for (uint32_t j = 0; i < n && j < record[i].count; j++)
        if (sim_alive(play->sim, record[i].node[j]))
            return false;
    return i < n;
}

/* Nodes that are stopped may be the only ones that could report that others are down. */
static bool somebody_is_stopped(const struct swarm_play *play)
{
    for (uint32_t rank = 0; rank < play->world->torus.nodes; rank++)
        if (sim_frozen(play->sim, rank))
            return true;
    return false;
}

/* The time until its node has heard of them and given up on them, if nothing is slow. */
static uint64_t vain_time(const struct swarm_play *play)
{
    return sim_slowed(play->sim) ? HEARD_LATE_TIME : 3 * SECONDS;
}

static void check_waits(struct swarm_play *play)
{
    bool stopped = somebody_is_stopped(play);

    for (unsigned i = 0; i < play->world->requests; i++) {
        struct swarm_request *r = &play->world->request[i];
        if (stopped || r->spec.wait || r->asked == NULL || r->asked->exchange == NULL ||
            !has_folders(r) || !waits_in_vain(play, r))
            r->vain_since = 0;
        else if (r->vain_since == 0)
            r->vain_since = sim_now(play->sim);
        else if (sim_now(play->sim) > r->vain_since + vain_time(play))
            sim_violated(play->sim, "waits for nodes that are down",
                         "%s has been committed, and nodes that are down have not confirmed",
                         name_of(play, r));
    }
}

/* No machine takes its own earlier start for another machine of its rank. */
static void check_ranks(struct swarm_play *play, uint32_t rank)
{
    struct fault_report report;

    for (unsigned i = 0; router_fault(sim_router(play->sim, rank), i, &report); i++)
        if (report.fault.code == LINK_FAULT_DUPLICATE_RANK)
            sim_violated(play->sim, "one machine a rank",
                         "node %u says that two machines have rank %u", rank,
                         report.fault.found_rank);
}

/* No exchange is active long after its deadline, no partial output has its final name, and no rank has two machines. */
void swarm_check_dear(struct swarm_play *play)
{
    struct swarm_world *w = play->world;
    struct exchange_info info[LISTED];

    for (uint32_t rank = 0; rank < w->torus.nodes; rank++) {
        if (!sim_alive(play->sim, rank) || sim_frozen(play->sim, rank))
            continue;
        check_ranks(play, rank);
        size_t n = exchanges_list(sim_exchanges(play->sim, rank), info, LISTED);
        for (size_t i = 0; i < n && !exchange_has_ended(info[i].state); i++) {
            struct swarm_request *r = find(play, info[i].id);
            if (r != NULL && sim_now(play->sim) > r->due + play->delays)
                sim_violated(play->sim, "deadline", "%s is still %s on node %u", name_of(play, r),
                             exchange_state_name(info[i].state), rank);
        }
    }
    check_waits(play);
    swarm_check_rates(play);
    for (unsigned i = 0; i < w->requests; i++)
        for (uint32_t rank = 0; rank < w->torus.nodes; rank++)
            if (w->request[i].asked != NULL && has_folders(&w->request[i]))
                (void)sim_output(play->sim, rank, w->request[i].asked->id);
}

/* --- at the end --- */

static bool has_settled(struct sim *sim, void *context)
{
    struct swarm_play *play = context;
    const struct swarm_world *w = play->world;

    if (!sim_is_quiet(sim, NULL))
        return false;
    for (uint32_t rank = 0; rank < w->torus.nodes; rank++)
        if (sim_leftover(sim, rank) != NULL)
            return false;
    return true;
}

/* Names what prevents the world from coming to rest. */
static void name_unsettled(struct swarm_play *play)
{
    struct swarm_world *w = play->world;

    for (uint32_t rank = 0; rank < w->torus.nodes; rank++) {
        struct exchange_info first;
        if (exchanges_list(sim_exchanges(play->sim, rank), &first, 1) > 0 &&
            !exchange_has_ended(first.state))
            sim_violated(play->sim, "rest", "exchange %s stays %s on node %u", first.id,
                         exchange_state_name(first.state), rank);
        if (exchanges_reserved(sim_exchanges(play->sim, rank)) > 0)
            sim_violated(play->sim, "reserved", "node %u keeps %" PRIu64 " bytes reserved", rank,
                         exchanges_reserved(sim_exchanges(play->sim, rank)));
        if (sim_leftover(play->sim, rank) != NULL)
            sim_violated(play->sim, "leftovers", "node %u keeps %s", rank,
                         sim_leftover(play->sim, rank));
    }
}

/* Outputs are in place on all nodes or on none, in agreement with the client's result. */
static void check_outputs(struct swarm_play *play, const struct swarm_request *r)
{
    const struct swarm_world *w = play->world;
    uint32_t in_place = 0, without = w->torus.nodes;
    uint32_t part = w->torus.nodes - (uint32_t)__builtin_popcountll(sim_missing(r->asked));

    for (uint32_t rank = 0; rank < w->torus.nodes; rank++) {
        if (sim_output(play->sim, rank, r->asked->id) == SIM_OUTPUT_FINAL)
            in_place++;
        else
            without = rank;
    }
    if (in_place != 0 && in_place != part)
        sim_violated(play->sim, "all or nothing",
                     "%s has an output on %u of %u nodes, but not on node %u", name_of(play, r),
                     in_place, part, without);
    if (r->left || r->asked->error.code == ERROR_IN_DOUBT)
        return;
    if ((r->asked->error.code == ERROR_NONE) != (in_place > 0))
        sim_violated(play->sim, "truth", "the client of %s was told \"%s\", and %s",
                     name_of(play, r),
                     r->asked->error.code == ERROR_NONE ? "done" : r->asked->error.text,
                     in_place > 0 ? "it was committed" : "there is nothing");
}

static bool somebody_hurries(const struct swarm_play *play, const struct swarm_request *r)
{
    const struct swarm_world *w = play->world;

    for (unsigned i = 0; i < w->requests; i++)
        if (strcmp(w->request[i].barrier, r->barrier) == 0 && w->request[i].hurries)
            return true;
    return false;
}

/* Whether all nodes must give the same reason. If a root fails an exchange for another reason than a fault, it sends
 * that along the tree only, and a fault may lose the message; several faults at once may lose any message for some
 * nodes. */
static bool must_agree(const struct swarm_play *play, const struct swarm_request *r)
{
    if (play->harms == 0)
        return true;
    if (play->harms > 1 || !swarm_stays_connected(&play->world->torus) ||
        (r->spec.operation == OPERATION_BARRIER && somebody_hurries(play, r)))
        return false;
    return r->orphaned || r->asked->error.code == ERROR_LINK;
}

/* For nodes that were not restarted. */
static void check_reasons(struct swarm_play *play, const struct swarm_request *r)
{
    struct exchange_info info, first = {0};
    bool committed = false, failed = false;

    for (uint32_t rank = 0; rank < play->world->torus.nodes; rank++) {
        if (!sim_info(play->sim, rank, r->asked->id, &info) || strcmp(info.algorithm, "?") == 0)
            continue;
        committed |= info.state == EXCHANGE_COMMITTED;
        if (info.state != EXCHANGE_FAILED)
            continue;
        if (failed && strcmp(info.reason, first.reason) != 0 && must_agree(play, r))
            sim_violated(play->sim, "same error", "%s failed twice: \"%s\", on node %u \"%s\"",
                         name_of(play, r), first.reason, rank, info.reason);
        first = info;
        failed = true;
    }
    if (has_folders(r) && committed && failed)
        sim_violated(play->sim, "all or nothing", "%s was committed here and failed there: %s",
                     name_of(play, r), first.reason);
}

void swarm_check_end(struct swarm_play *play)
{
    struct swarm_world *w = play->world;

    swarm_tell(play, "everything heals");
    play->healing = true;
    sim_heal(play->sim);
    sim_run_until_whole(play->sim);
    swarm_end_groups(play);
    swarm_end_copies(play);
    if (!sim_run(play->sim, REST_TIME, has_settled, play))
        name_unsettled(play);
    sim_pass(play->sim, 1 * SECONDS);
    swarm_end_rates(play);
    swarm_check_dear(play);
    for (unsigned i = 0; i < w->requests; i++) {
        struct swarm_request *r = &w->request[i];
        if (r->asked == NULL || r->asked->id[0] == '\0')
            continue;
        check_reasons(play, r);
        if (has_folders(r))
            check_outputs(play, r);
    }
    check_traces(play->sim);
    check_next_exchange(play->sim, (uint32_t)(w->seed % w->torus.nodes));
    swarm_end_deaths(play);
    swarm_tell(play, "all is well");
}
