/* Messages that control exchanges, as plain structs. peer.proto says what each field means; the
 * names are the same. A list is a pointer with a count: `n_rank` numbers at `rank`. Every
 * message of an exchange begins with the exchange's handle. */
#pragma once

#include "proto/error.h"
#include "proto/peer/link_messages.h"

struct Torus__Spec; /* daemon/torusd/planning/spec.h reads and writes it; clients use it, too */

struct peer_prepare {
    uint32_t exchange;
    const char *id;
    uint32_t root;
    const char *dims;
    const struct Torus__Spec *spec; /* never NULL in a message that was read */
    uint64_t round_bytes;
    uint32_t window;
    size_t n_without, n_missing;
    const uint32_t *without;
    const uint32_t *missing;
    bool avoids_links;
    const char *resumes;
    uint32_t user;
    size_t n_rates;
    const uint32_t *rates;
};

struct peer_schedule_query {
    const char *digest;
    uint32_t offset;
};

struct peer_schedule_part {
    const char *digest;
    uint32_t total;
    uint32_t offset;
    struct peer_bytes part;
};

struct peer_sizes {
    uint32_t exchange;
    uint64_t largest_block;
    uint64_t total_bytes;
};

struct peer_arrived {
    uint32_t exchange;
    uint32_t node;
    size_t n_spans, n_sizes;
    const uint64_t *spans;
    const uint64_t *sizes;
};

struct peer_repair_query {
    uint32_t exchange;
    uint32_t source;
    uint32_t destination;
    uint64_t offset;
    uint32_t length;
};

struct peer_repair_part {
    uint32_t exchange;
    uint32_t source;
    uint32_t destination;
    uint64_t offset;
    struct peer_bytes part;
};

struct peer_layout {
    uint32_t exchange;
    uint64_t round_bytes;
    uint32_t window;
    uint64_t timeout_ms;
    const char *algorithm;
    const char *mode;
};

struct peer_ready {
    uint32_t exchange;
    size_t n_arrivals;
    const uint64_t *arrivals;
};

struct peer_go {
    uint32_t exchange;
    uint64_t rounds;
    uint32_t repetition;
    size_t n_arrivals;
    const uint64_t *arrivals;
};

struct peer_repeated {
    uint32_t exchange;
    uint32_t repetition;
    uint64_t nanoseconds;
};

struct peer_round_done {
    uint32_t exchange;
    uint64_t round;
};

struct peer_round_go {
    uint32_t exchange;
    uint64_t round;
};

struct peer_port_report {
    uint64_t tx_bytes;
    uint64_t rx_bytes;
    uint64_t tx_blocks;
    uint64_t combined_messages;
    uint32_t min_rtt_us;
    uint64_t rate_bps;
};

struct peer_node_report {
    uint32_t rank;
    uint64_t nanoseconds;
    uint64_t blocks_delivered;
    uint64_t bytes_delivered;
    size_t n_port;
    const struct peer_port_report *port;
    uint32_t most_starts;
    uint32_t most_ends;
    uint32_t repaired;
    uint64_t missing_files;
    uint64_t unused_files;
};

struct peer_done {
    uint32_t exchange;
    size_t n_node, n_step_blocks, n_step_messages;
    const struct peer_node_report *node;
    const uint32_t *step_blocks;
    const uint32_t *step_messages;
    uint64_t sent_digest;
    uint64_t delivered_digest;
};

struct peer_commit {
    uint32_t exchange;
};

struct peer_confirm {
    const char *id;
    size_t n_rank;
    const uint32_t *rank;
    const char *obstacle;
};

struct peer_nack {
    uint32_t exchange;
    const char *id;
    uint32_t root;
    enum error_code code; /* ERROR_IO for a code that does not exist; never ERROR_NONE in a
                           * message that was read */
    const char *reason;
    bool retry_may_help;
    struct culprit culprit; /* CULPRIT_NONE for an unknown kind; its node and port may not exist */
};

struct peer_abort {
    uint32_t exchange;
    const char *id;
    enum error_code code; /* as in struct peer_nack */
    const char *reason;
    uint32_t left;
    bool before_go;
};

struct peer_outcome_query {
    const char *id;
    uint32_t initiator;
};

struct peer_outcome {
    const char *id;
    bool committed;
    uint32_t initiator;
};

struct peer_calibration {
    uint32_t version;
    uint64_t measured_at;
    double step_seconds;
    double message_seconds;
    double bytes_per_second;
    uint64_t id;
    size_t n_replaced;
    const uint64_t *replaced;
};
