#include "dock_fixture.h"

#include "tests/support/cmocka.h"

void dock_open(struct dock *d, bool copies)
{
    *d = (struct dock){.node = node_open("3", 1, PIECE)};
    d->engine.set = d->node->setup;
    frame_buffer_init(&d->buffer, &d->engine, copies ? PIECE : FRAME_BUFFER_COPIED_MOST + 1);
    assert_int_equal(frame_buffer_room(&d->buffer, HOLDS, &d->room), 0);
    assert_int_equal(d->room != NULL, copies);
    for (size_t i = 0; i < HOLDS; i++)
        d->hold[i] = frame_buffer_hold(&d->buffer, d->room, i);
}

void dock_close(struct dock *d)
{
    frame_buffer_close(&d->buffer);
    free(d->room);
    slab_writer_close(&d->in);
    node_close(d->node); /* and nothing has leaked */
}

struct outgoing *dock_frame(struct dock *d)
{
    struct outgoing *frame = frame_buffer_new_frame(&d->buffer);
    assert_non_null(frame);
    return frame;
}

void dock_free_frame(struct dock *d, struct outgoing *frame)
{
    outgoing_free(router_outgoing(d->node->f.router), frame);
}
