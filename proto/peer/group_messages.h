/* Messages of groups, as plain structs. peer.proto says what each field means; the names are the
 * same. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct peer_group_compare {
    uint32_t exchange;
    uint32_t part;
    uint32_t number;
    uint32_t signature;
};

struct peer_group_census {
    uint32_t exchange;
    uint32_t initiator;
    uint32_t part;
    uint32_t number;
    uint32_t id;
};

struct peer_group_answer {
    uint32_t exchange;
    size_t n_missing;
    const uint32_t *missing;
    uint32_t others;
    uint32_t id;
};

struct peer_group_report {
    uint32_t exchange;
    uint32_t initiator;
    uint32_t part;
    uint32_t number;
    size_t n_missing;
    const uint32_t *missing;
    uint32_t others;
    bool incomplete;
};

struct peer_group_choice {
    uint32_t octave;
    const char *algorithm;
    const char *mode;
};

/* The contents of a call, not a frame of its own. */
struct peer_group_table {
    size_t n_exchange, n_gather, n_broadcast;
    const struct peer_group_choice *exchange;
    const struct peer_group_choice *gather;
    const struct peer_group_choice *broadcast;
    uint64_t long_reduction;
    uint64_t allgather_reduction;
};

/* Writes the table to at most `size` bytes. Returns how many bytes it takes, also if that is
 * more than `size` and nothing was written; 0 if there is no memory. */
size_t peer_group_table_write(const struct peer_group_table *table, uint8_t *bytes, size_t size);

/* Calls heard() with the table, which is valid during that call only. Returns what heard()
 * returns, or -1 with *malformed set if the bytes are not a table or there is no memory. */
int peer_group_table_read(const uint8_t *bytes, size_t length,
                          int (*heard)(void *context, const struct peer_group_table *table),
                          void *context, bool *malformed);
