#include "proto/peer/codec.h"
#include "proto/unpack.h"

#define HANDLE_FIRST(name)                                                                         \
    _Static_assert(offsetof(struct peer_##name, exchange) == 0, "peer_message_exchange()")
HANDLE_FIRST(stepped_data);
HANDLE_FIRST(streamed_data);
HANDLE_FIRST(clear);
HANDLE_FIRST(sizes);
HANDLE_FIRST(arrived);
HANDLE_FIRST(repair_query);
HANDLE_FIRST(repair_part);
HANDLE_FIRST(layout);
HANDLE_FIRST(ready);
HANDLE_FIRST(go);
HANDLE_FIRST(repeated);
HANDLE_FIRST(round_done);
HANDLE_FIRST(round_go);
HANDLE_FIRST(done);
HANDLE_FIRST(commit);
HANDLE_FIRST(group_census);
HANDLE_FIRST(group_answer);
HANDLE_FIRST(group_report);
HANDLE_FIRST(group_compare);
HANDLE_FIRST(group_message);

#define PEER_UNION(NAME, name, Name, number) Peer__##Name name;
union packed {
    PEER_MESSAGES(PEER_UNION)
};

static size_t room_of_call(bool has_call, const struct peer_group_call *call)
{
    const bool has_data = (call->data_type | call->data_shape | call->data_member) != 0;

    return has_call ? 2 + 6 + 5 + 6 + (has_data ? 6u + 5 + 6 : 0) + (call->channel != 0 ? 6u : 0)
                    : 0;
}

/* The most room that a head of data takes, whatever its numbers are, so that its length need not
 * be computed first; 0: its length must be computed. A number takes a tag of one byte and at
 * most five more bytes; the head around the numbers takes four. */
static size_t room_of_data(const struct peer_message *m)
{
    size_t most = 4;

    if (m->kind == PEER_STEPPED_DATA && m->stepped_data.n_sizes == 0 &&
        m->stepped_data.n_digests == 0)
        most += 5 * 6 + room_of_call(m->stepped_data.has_call, &m->stepped_data.call);
    else if (m->kind == PEER_STREAMED_DATA && m->streamed_data.n_sizes == 0 &&
             m->streamed_data.n_digests == 0 && m->streamed_data.n_pieces < PEER_SHORT)
        most += 2 * 6 + 2 + 5 * m->streamed_data.n_pieces +
                room_of_call(m->streamed_data.has_call, &m->streamed_data.call);
    else
        return 0;
    return most <= PEER_SHORT ? most : 0;
}

static int to_wire(const struct peer_message *m, Peer__Head *head, union packed *packed,
                   struct peer_scratch *scratch)
{
    switch (m->kind) {
#define PEER_CASE(NAME, name, Name, number)                                                        \
    case PEER_##NAME:                                                                              \
        head->kind_case = PEER__HEAD__KIND_##NAME;                                                 \
        head->name = &packed->name;                                                                \
        return peer_##name##_to_wire(&m->name, &packed->name, scratch);
        PEER_MESSAGES(PEER_CASE)
#undef PEER_CASE
    case PEER_NOTHING:
    case PEER_KINDS:
        break;
    }
    return 0;
}

size_t peer_message_write(const struct peer_message *m,
                          uint8_t *(*room)(void *context, size_t size), void *context)
{
    Peer__Head head = PEER__HEAD__INIT;
    struct peer_scratch scratch;
    union packed packed;
    uint8_t *bytes;
    size_t length = room_of_data(m);

    scratch.owned = NULL;
    if (to_wire(m, &head, &packed, &scratch) != 0) {
        peer_room_free(scratch.owned);
        return 0;
    }
    if (length == 0)
        length = peer__head__get_packed_size(&head);
    bytes = room(context, length);
    length = bytes != NULL ? peer__head__pack(&head, bytes) : 0;
    peer_room_free(scratch.owned);
    return length;
}

int peer_message_read(const struct Peer__Head *from, struct peer_message *m, struct error *e)
{
    int result = 0;

    m->owned = NULL;
    m->unpacked = NULL;
    m->kind = PEER_NOTHING;
    switch (from->kind_case) {
#define PEER_CASE(NAME, name, Name, number)                                                        \
    case PEER__HEAD__KIND_##NAME:                                                                  \
        m->kind = PEER_##NAME;                                                                     \
        result = peer_##name##_from_wire(from->name, &m->name, &m->owned, e);                      \
        break;
        PEER_MESSAGES(PEER_CASE)
#undef PEER_CASE
    case PEER__HEAD__KIND__NOT_SET:
    case _PEER__HEAD__KIND__CASE_IS_INT_SIZE:
        return error_set(e, ERROR_PROTOCOL, "frame of an unknown kind");
    }
    if (result != 0)
        peer_message_free(m);
    return result;
}

void peer_message_free(struct peer_message *m)
{
    peer_room_free(m->owned);
    m->owned = NULL;
    if (m->unpacked != NULL)
        unpack_free(m->unpacked);
    m->unpacked = NULL;
}

int peer_message_unpack(const uint8_t *bytes, size_t length, struct peer_message *m,
                        struct error *e)
{
    Peer__Head *head = unpack_bounded(&peer__head__descriptor, bytes, length, UNPACK_MOST);

    if (head == NULL)
        return error_set(e, ERROR_PROTOCOL, "frame whose head is not a message");
    if (peer_message_read(head, m, e) != 0) {
        unpack_free(head);
        return -1;
    }
    m->unpacked = head;
    return 0;
}
