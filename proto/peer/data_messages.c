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
    return &scratch->call;
}

static bool read_call(const Peer__GroupCall *from, struct peer_group_call *m)
{
    if (from == NULL)
        return false;
    *m = (struct peer_group_call){from->number, from->signature, from->part};
    return true;
}

#define STEPPED_DATA(NUMBER, TEXT, BYTES, LIST)                                                    \
    NUMBER(exchange) NUMBER(round) NUMBER(step) NUMBER(hops) NUMBER(left) LIST(sizes) LIST(digests)

PEER_WRITE(stepped_data, SteppedData)
{
    peer__stepped_data__init(to);
    PEER_WRITE_FIELDS(STEPPED_DATA)
    to->call = write_call(m->has_call, &m->call, scratch);
    return 0;
}

PEER_READ(stepped_data, SteppedData)
{
    PEER_READ_FIELDS(STEPPED_DATA)
    m->has_call = read_call(from->call, &m->call);
    return 0;
}

#define STREAMED_DATA(NUMBER, TEXT, BYTES, LIST)                                                   \
    NUMBER(exchange) NUMBER(round) LIST(pieces) LIST(sizes) LIST(digests)

PEER_WRITE(streamed_data, StreamedData)
{
    peer__streamed_data__init(to);
    PEER_WRITE_FIELDS(STREAMED_DATA)
    to->call = write_call(m->has_call, &m->call, scratch);
    return 0;
}

PEER_READ(streamed_data, StreamedData)
{
    PEER_READ_FIELDS(STREAMED_DATA)
    m->has_call = read_call(from->call, &m->call);
    return 0;
}

#define CLEAR(NUMBER, TEXT, BYTES, LIST)                                                           \
    NUMBER(exchange) NUMBER(round) NUMBER(step) NUMBER(hops) NUMBER(left)
PEER_CODEC(clear, Clear, CLEAR)
