#include "daemon/torusd/group/late/compare.h"

#include "daemon/torusd/group/calls/call_match.h"

#define COMPARE_AGAIN (500 * MILLISECONDS)

void compare_send(struct call *c, uint64_t now)
{
    const struct part *p = c->part;
    struct session *s = p->session;
    struct router *router = s->base.set.router;
    const struct peer_message message = {.kind = PEER_GROUP_COMPARE,
                                         .group_compare = {.exchange = s->base.set.handle,
                                                           .part = p->mask,
                                                           .number = (uint32_t)c->number,
                                                           .signature = c->signature}};

    c->watch.compare_at = now + COMPARE_AGAIN;
    for (unsigned port = 0; port < torus_ports(router_torus(router)); port++)
        if (p->port[port] >= 0 && !engine_has_lost(&s->base, port) &&
            !(s->damaged && (s->damage.dead[router_rank(router)] & 1u << port) != 0) &&
            torus_neighbour(router_torus(router), router_rank(router), port) != TORUS_NO_NODE)
            router_send(router, port, &message);
}

int compare_heard(struct session *s, unsigned port, const struct peer_group_compare *message,
                  struct error *e)
{
    const struct part *p = part_find(s, message->part);
    struct error why;

    if (p == NULL) /* the part is not open here yet */
        return 0;
    if (p->port[port] < 0)
        return error_set(e, ERROR_PROTOCOL,
                         "group \"%s\": comparison through a port that is not in the part",
                         s->name);
    uint32_t ago = (uint32_t)p->next_number - message->number, ours;
    if (s->left && ago == 0)
        ours = GROUP_LEAVE; /* in the whole, leaving is a call; a part ends in no other way */
    else if (ago == 0 || ago > SIGNATURES)
        return 0; /* not called here yet, or too long ago */
    else
        ours = p->signature[message->number % SIGNATURES];
    if (signatures_differ(p, ours, message->signature, (unsigned)p->port[port], &why))
        session_fail(s, &why);
    return 0;
}
