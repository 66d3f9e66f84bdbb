#include "proto/peer/codec.h"

static Peer__GroupCall *write_call(bool has_call, const struct peer_group_call *m,
                                   struct peer_scratch *scratch)
{
    if (!has_call)
        return NULL;
    peer__group_call__init(&scratch->call);
    scratch->call.number = m->number;
    scratch->call.signature = m->signature;
    scratch->call.part = m->part;
    scratch->call.data_type = m->data_type;
    scratch->call.data_shape = m->data_shape;
    scratch->call.data_member = m->data_member;
    return &scratch->call;
}

static bool read_call(const Peer__GroupCall *from, struct peer_group_call *m)
{
    if (from == NULL)
        return false;
    *m = (struct peer_group_call){from->number,    from->signature,  from->part,
                                  from->data_type, from->data_shape, from->data_member};
    return true;
}

/* Data of an exchange, or of a call of a group, which the message then names. */
#define DATA_CODEC(name, Name, FIELDS)                                                             \
    PEER_WRITE(name, Name)                                                                         \
    {                                                                                              \
        peer__##name##__init(to);                                                                  \
        PEER_WRITE_FIELDS(FIELDS)                                                                  \
        to->call = write_call(m->has_call, &m->call, scratch);                                     \
        return 0;                                                                                  \
    }                                                                                              \
    PEER_READ(name, Name)                                                                          \
    {                                                                                              \
        PEER_READ_FIELDS(FIELDS)                                                                   \
        m->has_call = read_call(from->call, &m->call);                                             \
        return 0;                                                                                  \
    }

#define STEPPED_DATA(NUMBER, TEXT, BYTES, LIST)                                                    \
    NUMBER(exchange) NUMBER(round) NUMBER(step) NUMBER(hops) NUMBER(left) LIST(sizes) LIST(digests)

DATA_CODEC(stepped_data, SteppedData, STEPPED_DATA)

#define STREAMED_DATA(NUMBER, TEXT, BYTES, LIST)                                                   \
    NUMBER(exchange) NUMBER(round) LIST(pieces) LIST(sizes) LIST(digests)

DATA_CODEC(streamed_data, StreamedData, STREAMED_DATA)

#define CLEAR(NUMBER, TEXT, BYTES, LIST)                                                           \
    NUMBER(exchange) NUMBER(round) NUMBER(step) NUMBER(hops) NUMBER(left)
PEER_CODEC(clear, Clear, CLEAR)
