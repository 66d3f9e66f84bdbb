/* Messages of surveys, as plain structs. peer.proto says what each field means; the names are the
 * same. */
#pragma once

#include "proto/peer/link_messages.h"

struct peer_survey_query {
    uint32_t initiator;
    uint64_t id;
    uint32_t kind;
    uint32_t left;
};

struct peer_survey_answer {
    uint32_t initiator;
    uint64_t id;
    uint32_t node;
    uint32_t part;
    uint32_t parts;
    struct peer_bytes bytes;
    uint32_t left;
};
