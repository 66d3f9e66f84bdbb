#include "daemon/core/core.h"

#include <stdlib.h>

struct core {
    struct router *router;
    struct exchanges *exchanges;
};

static int on_frame(void *context, unsigned port, const Peer__Head *head,
                    const struct extents *body, uint32_t body_length, struct error *e)
{
    return exchanges_frame(((struct core *)context)->exchanges, port, head, body, body_length, e);
}

static struct outgoing *on_next(void *context, unsigned port)
{
    return exchanges_next(((struct core *)context)->exchanges, port);
}

static void on_topology(void *context)
{
    exchanges_topology(((struct core *)context)->exchanges);
}

struct core *core_new(const struct core_setup *setup)
{
    struct core *core = calloc(1, sizeof *core);
    const struct router_handler handler = {core, on_frame, on_next, on_topology};

    if (core == NULL)
        return NULL;
    core->router = router_new(setup->torus, setup->rank, &setup->io, &handler, setup->pool);
    if (core->router == NULL) {
        free(core);
        return NULL;
    }
    const struct exchanges_setup exchanges = {
        .router = core->router,
        .storage = setup->storage,
        .workers = setup->workers,
        .memory_budget = setup->memory_budget,
        .link_mbit = setup->link_mbit,
        .daemons_per_processor =
            setup->daemons_per_processor > 1 ? setup->daemons_per_processor : 1,
        .planned = setup->planned,
        .planned_context = setup->planned_context,
    };
    core->exchanges = exchanges_new(&exchanges);
    if (core->exchanges == NULL) {
        router_free(core->router);
        free(core);
        return NULL;
    }
    return core;
}

void core_start(struct core *core)
{
    router_start(core->router);
}

void core_free(struct core *core)
{
    if (core == NULL)
        return;
    exchanges_free(core->exchanges);
    router_free(core->router);
    free(core);
}

uint64_t core_deadline(const struct core *core)
{
    uint64_t router = router_deadline(core->router);
    uint64_t exchanges = exchanges_deadline(core->exchanges);

    return router < exchanges ? router : exchanges;
}

void core_tick(struct core *core)
{
    uint64_t now = router_now(core->router);

    if (now >= router_deadline(core->router))
        router_tick(core->router);
    if (now >= exchanges_deadline(core->exchanges))
        exchanges_tick(core->exchanges);
}

int core_check(const struct core *core, struct error *e)
{
    return exchanges_check(core->exchanges, e);
}

struct router *core_router(struct core *core)
{
    return core->router;
}

struct exchanges *core_exchanges(struct core *core)
{
    return core->exchanges;
}
