/* Messages of copies, as plain structs. peer.proto says what each field means; the names are the same. */
#pragma once

#include "proto/error.h"
#include "proto/peer/link_messages.h"

struct peer_copy_call {
    uint32_t initiator;
    uint64_t id;
    uint32_t attempt;
    uint32_t number;
    struct peer_bytes request;
    uint32_t left;
};

struct peer_copy_refusal {
    uint32_t initiator;
    uint64_t id;
    uint32_t attempt;
    uint32_t node;
    enum error_code code; /* ERROR_IO for a code that does not exist */
    const char *reason;
    uint32_t left;
};
