#include "proto/peer/codec.h"

#define COPY_CALL(NUMBER, TEXT, BYTES, LIST)                                                       \
    NUMBER(initiator) NUMBER(id) NUMBER(attempt) NUMBER(number) BYTES(request) NUMBER(left)
PEER_CODEC(copy_call, CopyCall, COPY_CALL)

#define COPY_REFUSAL(NUMBER, TEXT, BYTES, LIST)                                                    \
    NUMBER(initiator) NUMBER(id) NUMBER(attempt) NUMBER(node) TEXT(reason) NUMBER(left)

PEER_WRITE(copy_refusal, CopyRefusal)
{
    peer__copy_refusal__init(to);
    PEER_WRITE_FIELDS(COPY_REFUSAL)
    to->code = (uint32_t)m->code;
    return 0;
}

PEER_READ(copy_refusal, CopyRefusal)
{
    PEER_READ_FIELDS(COPY_REFUSAL)
    m->code = from->code > ERROR_NONE && from->code <= ERROR_BUSY ? (enum error_code)from->code
                                                                  : ERROR_IO;
    return 0;
}
