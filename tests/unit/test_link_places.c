/* Bodies whose bytes are put straight into the memory of a program. */
#include <stdlib.h>
#include <string.h>

#include "daemon/torusd/router/link.h"
#include "router_fixture.h"
#include "tests/support/cmocka.h"

enum { BODY = 50000, HEAD_ROOM = 4096 };

/* A node whose user takes bodies in two parts of `memory`. */
struct user {
    struct router_fixture f;
    uint8_t memory[2 * BODY], sent[BODY], got[BODY];
    bool ended; /* the call: nothing has a place any more */
    uint8_t *second;
    unsigned frames, in_place;
};

static int take_frame(void *context, unsigned port, const struct peer_message *message,
                      const struct extents *body, uint32_t body_length, struct error *e)
{
    struct user *u = context;
    uint32_t at = 0;

    (void)port, (void)message, (void)e;
    assert_true(body_length <= BODY);
    for (uint32_t i = 0; i < body->count; at += body->item[i++].length) {
        u->in_place += body->item[i].slab->where == SLAB_IN_PLACE ? body->item[i].length : 0;
        memcpy(u->got + at, body->item[i].data, body->item[i].length);
    }
    u->frames++;
    return 0;
}

static struct outgoing *no_frame(void *context, unsigned port)
{
    (void)context, (void)port;
    return NULL;
}

static void nothing(void *context)
{
    (void)context;
}

/* The second half of a body goes elsewhere. */
static void find_places(void *context, unsigned port, const struct peer_message *message,
                        uint32_t body_length, uint32_t offset, struct places *places)
{
    struct user *u = context;
    const uint32_t half = body_length / 2;

    (void)port, (void)message;
    places->count = 0;
    if (u->ended)
        return;
    if (offset < half)
        (void)places_add(places, u->memory + offset, half - offset);
    offset = offset > half ? offset - half : 0;
    (void)places_add(places, u->second + offset, body_length - half - offset);
}

static void open_user(struct user *u)
{
    const struct router_handler handler = {u,           take_frame, no_frame, NULL,
                                           find_places, nothing,    NULL};

    memset(u, 0, sizeof *u);
    fixture_open(&u->f, "4x4", 5, &handler);
    fixture_link_up(&u->f, 0);
    u->second = u->memory + BODY;
    for (uint32_t i = 0; i < BODY; i++)
        u->sent[i] = (uint8_t)(i * 7 + i / 256);
}

static void close_user(struct user *u)
{
    fixture_close(&u->f);
}

/* Writes a frame. Returns the length of its head. */
static size_t write_frame(const struct user *u, uint8_t *bytes)
{
    const uint32_t piece = 0;
    const struct peer_message message = {
        .kind = PEER_STREAMED_DATA,
        .streamed_data = {.exchange = 5, .n_pieces = 1, .pieces = (uint32_t *)(uintptr_t)&piece}};
    const size_t head = message_write(&message, bytes + FRAME_PREFIX_SIZE, 1000);
    const size_t length = head_check_write(bytes, (uint32_t)head, BODY);

    memcpy(bytes + length, u->sent, BODY);
    return length;
}

/* Reads as a connection does. */
static void read_bytes(struct user *u, const uint8_t *bytes, size_t length)
{
    struct link *link = u->f.up[0]->link;
    struct places places;
    size_t read = 0;

    if (!link_places(link, &places)) {
        fixture_feed(u->f.up[0], bytes, length);
        return;
    }
    for (unsigned i = 0; i < places.count && read < length; i++) {
        const size_t n =
            length - read < places.run[i].length ? length - read : places.run[i].length;
        memcpy(places.run[i].data, bytes + read, n);
        read += n;
    }
    link_placed(link, &places, read);
    if (read < length && u->f.up[0]->link != NULL)
        fixture_feed(u->f.up[0], bytes + read, length - read);
}

/* The head and the first bytes of the body are read into a slab. Returns the length of the head. */
static size_t begin_frame(struct user *u, uint8_t *bytes, size_t first)
{
    const size_t head = write_frame(u, bytes);

    fixture_feed(u->f.up[0], bytes, head + first);
    return head;
}

static uint64_t placed_bytes(struct user *u)
{
    struct port_info info;

    router_port_info(u->f.router, 0, &info);
    return info.totals.placed_bytes;
}

#define PLACES_TEST(name) FIXTURE_TEST(struct user, u, open_user, close_user, name)

PLACES_TEST(bytes_go_straight_to_their_places)
{
    static uint8_t bytes[2 * (BODY + 1000)];
    struct places places;
    const size_t head = begin_frame(u, bytes, 100), whole = head + BODY;

    (void)write_frame(u, bytes + whole);
    assert_true(link_places(u->f.up[0]->link, &places));
    assert_int_equal(places.count, 3);
    assert_ptr_equal(places.run[0].data, u->memory + 100);
    assert_int_equal(places.run[1].length, BODY / 2);
    assert_int_equal(places.run[2].length, HEAD_ROOM); /* for the next head */
    read_bytes(u, bytes + head + 100, 5000);           /* not all is there */
    assert_int_equal(u->frames, 0);
    read_bytes(u, bytes + head + 5100, BODY - 5100 + head);
    assert_int_equal(u->frames, 1);
    assert_memory_equal(u->got, u->sent, BODY);
    assert_memory_equal(u->memory + 100, u->sent + 100, BODY / 2 - 100);
    assert_memory_equal(u->second, u->sent + BODY / 2, BODY / 2);
    assert_int_equal(u->in_place, BODY - 100);
    assert_int_equal(placed_bytes(u), BODY - 100);
    /* the next body is placed whole, since its head came alone */
    read_bytes(u, bytes + whole + head, BODY);
    assert_int_equal(u->frames, 2);
    assert_int_equal(u->in_place, 2 * BODY - 100);
}

PLACES_TEST(only_the_head_is_read_behind_a_placed_body)
{
    static uint8_t bytes[BODY + 1000];
    size_t room;
    const size_t head = begin_frame(u, bytes, 0);

    read_bytes(u, bytes + head, BODY);
    assert_non_null(link_room(u->f.up[0]->link, &room));
    assert_int_equal(room, HEAD_ROOM);
    u->ended = true;
    fixture_feed(u->f.up[0], bytes, head + BODY);
    assert_non_null(link_room(u->f.up[0]->link, &room));
    assert_true(room > HEAD_ROOM);
}

/* The call ends in the middle: what follows stays out of its memory, and nobody gets the frame. */
PLACES_TEST(a_call_that_ends_gets_nothing_more)
{
    static uint8_t bytes[BODY + 1000];
    struct places places;
    const size_t head = begin_frame(u, bytes, 0);

    read_bytes(u, bytes + head, 5000);
    u->ended = true;
    memset(u->memory, 0xee, sizeof u->memory);
    assert_false(link_places(u->f.up[0]->link, &places));
    read_bytes(u, bytes + head + 5000, BODY - 5000);
    for (size_t i = 0; i < sizeof u->memory; i++)
        assert_int_equal(u->memory[i], 0xee);
    assert_int_equal(u->frames, 0);
    assert_int_equal(fixture_state_of(&u->f, 0), PORT_UP);
    u->ended = false;
    fixture_feed(u->f.up[0], bytes, head + BODY); /* the next frame is taken */
    assert_int_equal(u->frames, 1);
}

/* Another call has the frame's place in between. */
PLACES_TEST(bytes_that_belong_elsewhere_by_now_are_dropped)
{
    static uint8_t bytes[BODY + 1000];
    const size_t head = begin_frame(u, bytes, 0);

    read_bytes(u, bytes + head, BODY / 2 + 5000);
    u->second += 16;
    read_bytes(u, bytes + head + BODY / 2 + 5000, BODY - BODY / 2 - 5000);
    assert_int_equal(u->frames, 0);
    assert_int_equal(fixture_state_of(&u->f, 0), PORT_UP);
}

PLACES_TEST(short_rests_are_copied)
{
    static uint8_t bytes[BODY + 1000];
    struct places places;

    (void)begin_frame(u, bytes, BODY - 5000);
    assert_false(link_places(u->f.up[0]->link, &places));
}
