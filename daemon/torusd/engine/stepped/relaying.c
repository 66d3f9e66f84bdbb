#include "daemon/torusd/engine/stepped/relaying.h"

void stepped_relay(struct stepped *s, unsigned in, const struct peer_stepped_data *data,
                   const struct extents *body, uint32_t body_length)
{
    unsigned out = torus_port_opposite(engine_torus(&s->base.set), in);
    struct outgoing *frame =
        engine_has_lost(&s->base, out) ? NULL : frame_buffer_new_frame(&s->buffer);
    struct peer_message onward = {.kind = PEER_STEPPED_DATA, .stepped_data = *data};

    if (frame == NULL)
        return;
    onward.stepped_data.left--;
    frame->body_length = body_length;
    frame->immediate = onward.stepped_data.left > 0;
    for (uint32_t i = 0; i < body->count; i++)
        frame_buffer_pass_on(&s->buffer, frame, &body->item[i]);
    frame = frame_buffer_ship(&s->buffer, out, frame, &onward, true);
    if (frame != NULL)
        router_relay(s->base.set.router, engine_port(&s->base, out), frame);
}
