#include "daemon/torusd/group/session/waits.h"

#include "daemon/torusd/group/record/call.h"

/* Takes what a call waits for where it is sooner over than what is known so far: ENGINE_READY is the least. */
static void take_call(const struct call *c, enum engine_wait members, enum engine_wait *port)
{
    const struct engine *data = c->attempt.engine[STAGE_DATA],
                        *wave = c->attempt.engine[STAGE_WAVE];
    const struct engine *engine = data != NULL ? data : wave;
    enum engine_wait wait[TORUS_MAX_PORTS];

    if (engine == NULL)
        return;
    engine_waits(engine, wait);
    for (unsigned p = 0; p < torus_ports(router_torus(c->part->session->base.set.router)); p++) {
        int own = c->part->port[p];
        enum engine_wait why = own >= 0 ? wait[own] : ENGINE_DONE;
        /* Before any data moves, the first wave waits until all members have called. */
        if (own >= 0 && (data == NULL || c->attempt.waved == 0) && c->waves && why != ENGINE_READY)
            why = members;
        if (why < port[p])
            port[p] = why;
    }
}

/* Why this node has no call under way: its program, or what torusd itself does here. */
static enum engine_wait client_waits(const struct session *s)
{
    const struct group_client *client = s->group != NULL ? &s->group->client : NULL;

    if (client == NULL || client->waits == NULL)
        return ENGINE_MEMBERS;
    switch (client->waits(client->context)) {
    case GROUP_CLIENT_READS:
        return ENGINE_SOURCE;
    case GROUP_CLIENT_WRITES:
        return ENGINE_SINK;
    case GROUP_CLIENT_OTHERS:
        break;
    }
    return ENGINE_OTHERS;
}

void session_waits(const struct engine *engine, enum engine_wait *port)
{
    const struct session *s = (const struct session *)engine;
    bool called = false;

    for (unsigned i = 0; i < torus_ports(router_torus(engine->set.router)); i++)
        port[i] = ENGINE_DONE;
    for (const struct part *p = s->part; p != NULL; p = p->next)
        for (const struct call *c = p->calls; c != NULL; c = c->next) {
            called = called || call_is_under_way(c);
            if (call_is_under_way(c))
                take_call(c, client_waits(s) != ENGINE_MEMBERS ? ENGINE_OTHERS : ENGINE_MEMBERS,
                          port);
        }
    for (unsigned i = 0; !called && i < torus_ports(router_torus(engine->set.router)); i++)
        port[i] = client_waits(s);
}
