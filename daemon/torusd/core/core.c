#include "daemon/torusd/core/core.h"

#include <stdlib.h>

#include "proto/frame.h"

struct core {
    struct shares *shares;
    struct router *router;
    struct exchanges *exchanges;
    struct groups *groups;
    struct workers workers;
    struct copies *copies;
    struct survey *survey;
    void (*links_changed)(void *context); /* may be NULL */
    void *links_context;
};

static int on_frame(void *context, unsigned port, const struct peer_message *message,
                    const struct extents *body, uint32_t body_length, struct error *e)
{
    struct core *core = context;

    if (message->kind == PEER_SURVEY_QUERY)
        return survey_query_heard(core->survey, port, &message->survey_query, e);
    if (message->kind == PEER_SURVEY_ANSWER)
        return survey_answer_heard(core->survey, &message->survey_answer, e);
    if (message->kind == PEER_COPY_CALL)
        return copies_call_heard(core->copies, port, &message->copy_call, e);
    if (message->kind == PEER_COPY_REFUSAL)
        return copies_refusal_heard(core->copies, &message->copy_refusal, e);
    return exchanges_frame(core->exchanges, port, message, body, body_length, e);
}

static struct outgoing *on_next(void *context, unsigned port)
{
    return exchanges_next(((struct core *)context)->exchanges, port);
}

static int on_passes(void *context, unsigned port, const struct peer_message *message)
{
    return exchanges_passes(((struct core *)context)->exchanges, port, message);
}

static void on_places(void *context, unsigned port, const struct peer_message *message,
                      uint32_t body_length, uint32_t offset, struct places *places)
{
    exchanges_places(((struct core *)context)->exchanges, port, message, body_length, offset,
                     places);
}

static void on_topology(void *context)
{
    struct core *core = context;

    exchanges_topology(core->exchanges);
    survey_topology(core->survey);
    if (core->links_changed != NULL)
        core->links_changed(core->links_context);
}

static void on_confirmed(void *context)
{
    const struct core *core = context;

    exchanges_rates_heard(core->exchanges);
    if (core->links_changed != NULL)
        core->links_changed(core->links_context);
}

/* Frees the parts that are there, and the core. */
static void free_parts(struct core *core)
{
    copies_free(core->copies);
    survey_free(core->survey);
    if (core->exchanges != NULL)
        exchanges_free(core->exchanges);
    groups_free(core->groups);
    if (core->router != NULL)
        router_free(core->router);
    shares_free(core->shares);
    free(core);
}

void core_set_rates(struct core *core, const struct nominal_rate *rate, double link_mbit)
{
    for (unsigned port = 0; port < torus_ports(router_torus(core->router)); port++)
        router_set_nominal(core->router, port, rate[port]);
    exchanges_rates_changed(core->exchanges, link_mbit);
}

static void set_rates_of_all(struct core *core, double link_mbit)
{
    struct nominal_rate rate[TORUS_MAX_PORTS];

    for (unsigned port = 0; port < TORUS_MAX_PORTS; port++)
        rate[port] = (struct nominal_rate){link_mbit, link_mbit};
    core_set_rates(core, rate, link_mbit);
}

struct core *core_new(const struct core_setup *setup, struct error *e)
{
    struct core *core = calloc(1, sizeof *core);
    const struct router_handler handler = {core,      on_frame,    on_next,     on_passes,
                                           on_places, on_topology, on_confirmed};

    (void)error_set(e, ERROR_MEMORY, "out of memory for the node");
    if (core == NULL || (core->shares = shares_new()) == NULL) {
        free(core);
        return NULL;
    }
    core->links_changed = setup->links_changed;
    core->links_context = setup->links_context;
    core->router =
        router_new(setup->torus, setup->rank, &setup->io, &handler, setup->pool, setup->secrets);
    core->groups = core->router != NULL ? groups_new(core->router, &setup->workers) : NULL;
    core->survey = core->groups != NULL ? survey_new(core->router) : NULL;
    core->workers = setup->workers;
    if (core->survey != NULL)
        core->copies = copies_new(&(struct copies_setup){core->router, core->groups, &core->workers,
                                                         setup->trees, core->shares});
    if (core->copies == NULL) {
        free_parts(core);
        return NULL;
    }
    const struct exchanges_setup exchanges = {
        .router = core->router,
        .shares = core->shares,
        .storage = setup->storage,
        .workers = setup->workers,
        .memory_budget = setup->memory_budget,
        .link_mbit = setup->link_mbit,
        .link_burst = setup->link_burst,
        .daemons_per_processor =
            setup->daemons_per_processor > 1 ? setup->daemons_per_processor : 1,
        .sessions = groups_sessions(core->groups),
        .processor = setup->processor,
        .processor_context = setup->processor_context,
        .planned = setup->planned,
        .planned_context = setup->planned_context,
    };
    core->exchanges = exchanges_new(&exchanges, e);
    if (core->exchanges == NULL) {
        free_parts(core);
        return NULL;
    }
    set_rates_of_all(core, setup->link_mbit);
    groups_attach(core->groups, core->exchanges);
    router_set_minor(core->router, PROTOCOL_MINOR - setup->minors_back);
    if (setup->heartbeat > 0)
        router_set_heartbeats(core->router, setup->heartbeat, setup->silence);
    return core;
}

void core_start(struct core *core)
{
    router_start(core->router);
}

void core_free(struct core *core)
{
    if (core != NULL)
        free_parts(core);
}

uint64_t core_deadline(const struct core *core)
{
    uint64_t router = router_deadline(core->router);
    uint64_t exchanges = exchanges_deadline(core->exchanges);
    uint64_t groups = groups_deadline(core->groups), first = router;

    uint64_t survey = survey_deadline(core->survey), copies = copies_deadline(core->copies);

    first = copies < first ? copies : first;
    first = exchanges < first ? exchanges : first;
    first = survey < first ? survey : first;
    return groups < first ? groups : first;
}

void core_tick(struct core *core)
{
    uint64_t now = router_now(core->router);

    if (now >= router_deadline(core->router))
        router_tick(core->router);
    if (now >= exchanges_deadline(core->exchanges))
        exchanges_tick(core->exchanges);
    if (now >= groups_deadline(core->groups))
        groups_tick(core->groups);
    if (now >= copies_deadline(core->copies)) /* after groups, which wake it */
        copies_tick(core->copies);
    if (now >= survey_deadline(core->survey))
        survey_tick(core->survey);
}

int core_check(const struct core *core, struct error *e)
{
    if (exchanges_check(core->exchanges, e) != 0)
        return -1;
    if (copies_check(core->copies, e) != 0)
        return -1;
    return groups_check(core->groups, e);
}

struct router *core_router(struct core *core)
{
    return core->router;
}

struct exchanges *core_exchanges(struct core *core)
{
    return core->exchanges;
}

struct groups *core_groups(struct core *core)
{
    return core->groups;
}

struct copies *core_copies(struct core *core)
{
    return core->copies;
}

struct shares *core_shares(struct core *core)
{
    return core->shares;
}

struct survey *core_survey(struct core *core)
{
    return core->survey;
}
