#include "daemon/engine/stepped/relaying.h"

void stepped_relay(struct stepped *s, unsigned in, const Peer__SteppedData *data,
                   const struct extents *body, uint32_t body_length)
{
    unsigned out = torus_port_opposite(in);
    struct outgoing *frame =
        engine_has_lost(&s->base, out) ? NULL : frame_buffer_new_frame(&s->buffer);
    Peer__SteppedData onward = *data;
    Peer__Head head = PEER__HEAD__INIT;

    if (frame == NULL)
        return;
    onward.left--;
    head.kind_case = PEER__HEAD__KIND_STEPPED_DATA;
    head.stepped_data = &onward;
    frame->body_length = body_length;
    frame->in_passing = onward.left > 0;
    for (uint32_t i = 0; i < body->count; i++)
        frame_buffer_pass_on(&s->buffer, frame, &body->item[i]);
    frame = frame_buffer_ship(&s->buffer, out, frame, &head, true);
    if (frame != NULL)
        router_relay(s->base.set.router, engine_port(&s->base, out), frame);
}
