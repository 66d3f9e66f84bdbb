#include "proto/peer/codec.h"

#define COPY_CALL(NUMBER, TEXT, BYTES, LIST)                                                       \
    NUMBER(asker) NUMBER(id) NUMBER(attempt) NUMBER(number) BYTES(request) NUMBER(left)
PEER_CODEC(copy_call, CopyCall, COPY_CALL)
