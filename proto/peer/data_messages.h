/* Messages that carry blocks, as plain structs. peer.proto says what each field means; the names
 * are the same. A list is a pointer with a count: `n_sizes` numbers at `sizes`. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct peer_group_call {
    uint32_t number;
    uint32_t signature;
    uint32_t part;
    uint32_t data_type;
    uint32_t data_shape;
    uint32_t data_member;
};

struct peer_stepped_data {
    uint32_t exchange;
    uint32_t round;
    uint32_t step;
    uint32_t hops;
    uint32_t left;
    bool has_call; /* otherwise `call` has no meaning */
    struct peer_group_call call;
    size_t n_sizes, n_digests;
    const uint32_t *sizes;
    const uint64_t *digests;
};

struct peer_streamed_data {
    uint32_t exchange;
    uint32_t round;
    bool has_call; /* otherwise `call` has no meaning */
    struct peer_group_call call;
    size_t n_pieces, n_sizes, n_digests;
    const uint32_t *pieces;
    const uint32_t *sizes;
    const uint64_t *digests;
};

struct peer_clear {
    uint32_t exchange;
    uint32_t round;
    uint32_t step;
    uint32_t hops;
    uint32_t left;
};
