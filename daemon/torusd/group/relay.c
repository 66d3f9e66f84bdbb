#include "daemon/torusd/group/relay.h"

#include <stdlib.h>
#include <string.h>

int relay_open(struct session *s, struct error *e)
{
    const struct torus *whole = router_torus(s->base.set.router);
    struct damage none = {0};
    int result;

    relay_close(s);
    s->relay = calloc(1, sizeof *s->relay);
    if (s->relay == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a group");
    if (!s->damaged && damage_init(&none, whole, e) != 0)
        return -1;
    result = overlay_find(&s->relay->overlay, s->damaged ? &s->damage : &none, s->is_member, e);
    damage_free(&none);
    if (result != 0)
        return -1;
    s->relay->hop = calloc(overlay_channels(&s->relay->overlay), sizeof *s->relay->hop);
    if (s->relay->hop == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a group");
    overlay_hops(&s->relay->overlay, whole, router_rank(s->base.set.router), s->relay->hop);
    return 0;
}

void relay_close(struct session *s)
{
    struct relay *r = s->relay;

    if (r == NULL)
        return;
    for (unsigned port = 0; port < TORUS_MAX_PORTS; port++)
        outgoing_clear(router_outgoing(s->base.set.router), &r->queue[port]);
    slab_writer_close(&r->kept);
    overlay_free(&r->overlay);
    free(r->hop);
    free(r);
    s->relay = NULL;
}

/* Finds how a frame of this channel crosses this node. Returns 0, or -1 with *e. */
static int find_hop(const struct session *s, unsigned port, uint32_t channel,
                    struct overlay_hop *hop, struct error *e)
{
    const struct relay *r = s->relay;

    if (channel > 0 && channel <= overlay_channels(&r->overlay) &&
        r->hop[channel - 1].in == (int)port) {
        *hop = r->hop[channel - 1];
        return 0;
    }
    return error_set(e, ERROR_PROTOCOL,
                     "group \"%s\": data of channel %u, which does not come through this port",
                     s->name, channel);
}

/* Copies a frame, so that it can leave later. On failure returns NULL: memory is short. */
static struct outgoing *copy_frame(struct session *s, const struct peer_message *message,
                                   const struct extents *body)
{
    struct router *router = s->base.set.router;
    struct outgoing *frame = outgoing_new(router_outgoing(router));
    bool good = frame != NULL;

    for (uint32_t i = 0; good && i < body->count; i++) {
        struct extent kept;
        good = extent_keep(&s->relay->kept, router_pool(router), &body->item[i], &kept) == 0;
        if (!good)
            break;
        good = extents_add(&frame->body, kept.slab, kept.data, kept.length) == 0;
        frame->body_length += kept.length;
        slab_unref(kept.slab);
    }
    if (good && outgoing_set_message(frame, message) == 0)
        return frame;
    if (frame != NULL)
        outgoing_free(router_outgoing(router), frame);
    return NULL;
}

/* Keeps a frame until it can leave by this port. */
static void keep_frame(struct session *s, unsigned port, struct outgoing *frame)
{
    struct relay *r = s->relay;
    struct error e;

    r->bytes -= r->queue[port].bytes;
    outgoing_push(&r->queue[port], frame);
    r->bytes += r->queue[port].bytes;
    if (r->bytes > group_passing_memory()) {
        (void)error_set(&e, ERROR_MEMORY,
                        "group \"%s\": more than %llu bytes wait at node %u, which passes them on",
                        s->name, (unsigned long long)group_passing_memory(),
                        router_rank(s->base.set.router));
        session_fail(s, &e);
    }
    router_wake(s->base.set.router, port);
}

int relay_pass_frame(struct session *s, unsigned port, uint32_t channel,
                     const struct peer_message *message, const struct extents *body,
                     bool *passed_on, struct error *e)
{
    struct overlay_hop hop;
    struct error why;

    *passed_on = false;
    if (s->relay == NULL)
        return 0;
    if (find_hop(s, port, channel, &hop, e) != 0)
        return -1;
    *passed_on = hop.out >= 0;
    if (!*passed_on || engine_has_lost(&s->base, (unsigned)hop.out))
        return 0; /* after a link has been lost, the group is restarted */
    struct outgoing *frame = copy_frame(s, message, body);
    if (frame != NULL) {
        keep_frame(s, (unsigned)hop.out, frame);
    } else {
        (void)error_set(&why, ERROR_MEMORY, "out of memory for data of group \"%s\"", s->name);
        session_fail(s, &why);
    }
    return 0;
}

int relay_pass_compare(struct session *s, unsigned port, const struct peer_group_compare *message,
                       bool *passed_on, struct error *e)
{
    const struct peer_message onward = {.kind = PEER_GROUP_COMPARE, .group_compare = *message};
    struct overlay_hop hop;

    *passed_on = false;
    if (s->relay == NULL)
        return 0;
    if (find_hop(s, port, message->channel, &hop, e) != 0)
        return -1;
    *passed_on = hop.out >= 0;
    if (*passed_on && !engine_has_lost(&s->base, (unsigned)hop.out))
        router_send(s->base.set.router, (unsigned)hop.out, &onward);
    return 0;
}

struct outgoing *relay_next(struct session *s, unsigned port)
{
    struct relay *r = s->relay;

    if (r == NULL || r->queue[port].first == NULL)
        return NULL;
    r->bytes -= r->queue[port].bytes;
    struct outgoing *frame = outgoing_pop(&r->queue[port]);
    r->bytes += r->queue[port].bytes;
    return frame;
}
