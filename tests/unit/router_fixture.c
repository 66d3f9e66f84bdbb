#include "router_fixture.h"

#include "daemon/lib/base/log.h"
#include "daemon/torusd/router/outgoing.h"
#include "tests/support/cmocka.h"

static uint64_t io_now(void *context)
{
    return ((struct router_fixture *)context)->now;
}

static void io_random(void *context, void *buffer, size_t size)
{
    struct router_fixture *f = context;
    uint8_t *out = buffer;

    while (size-- > 0)
        *out++ = (uint8_t)((f->random = f->random * 6364136223846793005u + 1) >> 56);
}

static void io_dial(void *context, unsigned port)
{
    ((struct router_fixture *)context)->dials[port]++;
}

static void io_wake(void *context, void *connection)
{
    ((struct fixture_connection *)connection)->wakes++;
}

static void io_close(void *context, void *connection, struct outgoing *last)
{
    struct router_fixture *f = context;
    struct fixture_connection *c = connection;

    assert_non_null(c->link);
    c->link = NULL;
    if (last == NULL)
        return;
    struct peer_message message;
    if (peer_message_unpack(last->head + FRAME_PREFIX_SIZE, last->head_length - FRAME_PREFIX_SIZE,
                            &message, NULL) == 0) { /* memory may be made to fail here */
        assert_int_equal(message.kind, PEER_REFUSAL);
        (void)snprintf(c->last, sizeof c->last, "%s", message.refusal.reason);
        peer_message_free(&message);
    }
    outgoing_free(router_outgoing(f->router), last);
}

static void io_stat(void *context, void *connection, struct connection_stat *stat)
{
    ((struct fixture_connection *)connection)->stats++;
    *stat = ((struct fixture_connection *)connection)->stat;
    if (stat->rtt_us == 0)
        stat->rtt_us = 7;
}

static int io_encrypt(void *context, void *connection, const struct link_keys *keys)
{
    ((struct fixture_connection *)connection)->keys = *keys;
    return 0;
}

static int no_frame(void *context, unsigned port, const struct peer_message *head,
                    const struct extents *body, uint32_t body_length, struct error *e)
{
    return error_set(e, ERROR_PROTOCOL, "nobody wants this");
}

static struct outgoing *no_next(void *context, unsigned port)
{
    return NULL;
}

static void on_topology(void *context)
{
    ((struct router_fixture *)context)->topology_changes++;
}

static void on_confirmed(void *context)
{
    ((struct router_fixture *)context)->confirmations++;
}

struct router_io fixture_begin(struct router_fixture *f, const char *dims, uint32_t rank)
{
    const struct router_io io = {f,        io_now,  io_random,  io_dial, io_wake,
                                 io_close, io_stat, io_encrypt, NULL};

    *f = (struct router_fixture){
        .rank = rank, .now = 100 * SECONDS, .random = rank, .minor = PROTOCOL_MINOR};
    log_set_level(LOG_LEVEL_ERROR);
    assert_int_equal(torus_parse(&f->torus, dims, NULL), 0);
    slab_pool_init(&f->pool, 4 * SLAB_SIZE);
    return io;
}

void fixture_open(struct router_fixture *f, const char *dims, uint32_t rank,
                  const struct router_handler *handler)
{
    fixture_open_keyed(f, dims, rank, handler, NULL);
}

void fixture_open_usual(struct router_fixture *f)
{
    fixture_open(f, "4x4", 5, NULL);
}

void fixture_open_keyed(struct router_fixture *f, const char *dims, uint32_t rank,
                        const struct router_handler *handler, const struct secrets *secrets)
{
    const struct router_handler nobody = {f,    no_frame,    no_next,     NULL,
                                          NULL, on_topology, on_confirmed};
    const struct router_io io = fixture_begin(f, dims, rank);

    f->router =
        router_new(&f->torus, rank, &io, handler != NULL ? handler : &nobody, &f->pool, secrets);
    assert_non_null(f->router);
}

void fixture_close(struct router_fixture *f)
{
    router_free(f->router);
    fixture_end(f);
}

void fixture_end(struct router_fixture *f)
{
    for (unsigned i = 0; i < f->connections; i++)
        assert_null(f->connection[i].link);
    assert_int_equal(slab_pool_close(&f->pool), 0);
}

struct fixture_connection *fixture_connect(struct router_fixture *f, unsigned port, bool dialled)
{
    assert_true(f->connections < FIXTURE_CONNECTIONS);
    struct fixture_connection *c = &f->connection[f->connections++];

    c->fixture = f;
    c->link = router_connected(f->router, port, dialled, c, "peer:1");
    return c;
}

void fixture_feed(struct fixture_connection *c, const uint8_t *bytes, size_t length)
{
    while (length > 0 && c->link != NULL) {
        size_t room;
        uint8_t *at = link_room(c->link, &room);
        assert_non_null(at);
        room = room < length ? room : length;
        memcpy(at, bytes, room);
        bytes += room;
        length -= room;
        link_received(c->link, room);
    }
}

struct saying {
    uint8_t *frame;
    uint32_t body_length;
};

static uint8_t *room_to_say(void *context, size_t size)
{
    struct saying *s = context;

    s->frame = malloc(FRAME_PREFIX_SIZE + size + HEAD_CHECK_SIZE + (size_t)s->body_length);
    assert_non_null(s->frame);
    return s->frame + FRAME_PREFIX_SIZE;
}

void fixture_say(struct fixture_connection *c, const struct peer_message *message, const void *body,
                 uint32_t body_length)
{
    struct saying s = {.body_length = body_length};
    uint32_t size = (uint32_t)peer_message_write(message, room_to_say, &s);

    size = head_check_write(s.frame, size, body_length);
    if (body_length > 0)
        memcpy(s.frame + size, body, body_length);
    fixture_feed(c, s.frame, size + (size_t)body_length);
    free(s.frame);
}

void fixture_hello(const struct router_fixture *f, unsigned port, struct peer_hello *hello,
                   char *dims)
{
    *hello = (struct peer_hello){.version = PROTOCOL_VERSION,
                                 .dims = torus_format(&f->torus, dims),
                                 .rank = torus_neighbour(&f->torus, f->rank, port),
                                 .port = torus_port_opposite(&f->torus, port),
                                 .boot = 77,
                                 .minor = f->minor};
}

void fixture_say_hello(struct fixture_connection *c, const struct peer_hello *hello)
{
    const struct peer_message message = {.kind = PEER_HELLO, .hello = *hello};

    fixture_say(c, &message, NULL, 0);
}

struct fixture_connection *fixture_shake(struct router_fixture *f, unsigned port, uint32_t segment)
{
    char dims[TORUS_TEXT_SIZE];
    struct peer_hello hello;
    struct fixture_connection *c =
        fixture_connect(f, port, torus_port_direction(&f->torus, port) > 0);

    assert_non_null(c->link);
    c->stat.segment = segment;
    fixture_hello(f, port, &hello, dims);
    fixture_say_hello(c, &hello);
    return c;
}

void fixture_link_up(struct router_fixture *f, unsigned port)
{
    struct peer_message *first;
    struct fixture_connection *c = fixture_shake(f, port, 0);

    assert_non_null(c->link);
    fixture_pass_probe(c);
    f->up[port] = c;
    while ((first = fixture_next(c, NULL, 0, NULL)) != NULL)
        message_forget(first);
}

void fixture_say_probe(struct fixture_connection *c)
{
    uint8_t filler[2 * 1460] = {0};
    const struct peer_message probe = {.kind = PEER_PROBE, .probe = {{filler, sizeof filler}}};

    fixture_say(c, &probe, NULL, 0);
}

void fixture_answer_probe(struct fixture_connection *c)
{
    const struct peer_message answered = {
        .kind = PEER_PROBE_ANSWERED,
        .probe_answered = {2 * (c->stat.segment > 1460 ? c->stat.segment : 1460)}};

    fixture_say(c, &answered, NULL, 0);
}

void fixture_pass_probe(struct fixture_connection *c)
{
    fixture_say_probe(c);
    fixture_answer_probe(c);
}

struct peer_message *fixture_next(struct fixture_connection *c, uint8_t *body, size_t size,
                                  uint32_t *body_length)
{
    struct outgoing *frame = c->link != NULL ? link_next(c->link) : NULL;
    struct extent_cursor cursor = {0};
    struct extent piece;
    struct frame_prefix prefix;

    if (frame == NULL)
        return NULL;
    assert_int_equal(frame_prefix_read(frame->head, FRAME_MAX_HEAD, FRAME_MAX_BODY, &prefix, NULL),
                     0);
    assert_int_equal(prefix.head + FRAME_PREFIX_SIZE, frame->head_length);
    assert_int_equal(prefix.body, frame->body_length);
    struct peer_message *head = message_read(frame->head + FRAME_PREFIX_SIZE, prefix.head);
    assert_non_null(head);
    uint32_t total = 0;
    while (extents_take(&frame->body, &cursor, UINT32_MAX, &piece) > 0) {
        if (total + piece.length <= size)
            memcpy(body + total, piece.data, piece.length);
        total += piece.length;
    }
    assert_int_equal(total, frame->body_length);
    if (body_length != NULL)
        *body_length = total;
    outgoing_free(router_outgoing(c->fixture->router), frame);
    return head;
}

enum port_state fixture_state_of(struct router_fixture *f, unsigned port)
{
    struct port_info info;
    router_port_info(f->router, port, &info);
    return info.state;
}

void fixture_say_heartbeat(struct fixture_connection *c)
{
    struct peer_heartbeat beat = {0};

    const struct peer_message head = {.kind = PEER_HEARTBEAT, .heartbeat = beat};
    fixture_say(c, &head, NULL, 0);
}

void fixture_say_unknown(struct fixture_connection *c)
{
    static const uint8_t head[] = {0xc2, 0x3e, 0}; /* field 1000, of length 0 */
    uint8_t frame[FRAME_PREFIX_SIZE + sizeof head + HEAD_CHECK_SIZE + 4] = {0};

    memcpy(frame + FRAME_PREFIX_SIZE, head, sizeof head);
    (void)head_check_write(frame, sizeof head, 4);
    fixture_feed(c, frame, sizeof frame);
}

void fixture_lose(struct router_fixture *f, unsigned port)
{
    link_closed(f->up[port]->link, "reset");
    f->up[port]->link = NULL;
}

void fixture_say_entry(struct fixture_connection *c, const struct peer_link_state_entry *entry)
{
    fixture_say(c, &(struct peer_message){.kind = PEER_LINK_STATE, .link_state = {1, entry}}, NULL,
                0);
}

void fixture_pass(struct router_fixture *f, uint64_t time)
{
    for (uint64_t end = f->now + time; f->now < end;) {
        uint64_t at = router_deadline(f->router);
        f->now = at < end ? (at > f->now ? at : f->now + 1) : end;
        router_tick(f->router);
    }
}

void fixture_check_reason(struct router_fixture *f, unsigned port, const char *part)
{
    struct port_info info;

    router_port_info(f->router, port, &info);
    assert_contains(info.reason, part);
}

void fixture_stay_up(struct router_fixture *f, unsigned port, uint64_t time)
{
    for (uint64_t passed = 0; passed < time; passed += SECONDS) {
        fixture_pass(f, SECONDS);
        fixture_say_heartbeat(f->up[port]);
    }
}

unsigned fixture_entries_sent(struct fixture_connection *c, uint32_t rank, uint64_t *confirmed)
{
    unsigned found = 0;
    struct peer_message *head;

    while ((head = fixture_next(c, NULL, 0, NULL)) != NULL) {
        for (size_t i = 0; head->kind == PEER_LINK_STATE && i < head->link_state.n_entry; i++)
            if (head->link_state.entry[i].rank == rank) {
                found++;
                if (confirmed != NULL)
                    *confirmed = head->link_state.entry[i].confirmed;
            }
        message_forget(head);
    }
    return found;
}
