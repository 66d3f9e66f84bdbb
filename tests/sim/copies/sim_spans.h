/* Sets of bytes, as rising ranges that do not touch each other. */
#pragma once

#include "daemon/torusd/copy/tree_store.h"

struct sim_spans {
    struct interval *span;
    size_t count;
};

void sim_spans_add(struct sim_spans *spans, uint64_t begin, uint64_t end);
/* Adds the bytes from `begin` to `end` that `spans` lacks to `lacks`, shifted by `shift`. */
void sim_spans_lack(const struct sim_spans *spans, uint64_t begin, uint64_t end, uint64_t shift,
                    struct sim_spans *lacks);
uint64_t sim_spans_bytes(const struct sim_spans *spans);
/* Closes the smallest gaps until there are at most `most` ranges. */
void sim_spans_join(struct sim_spans *spans, size_t most);
void sim_spans_free(struct sim_spans *spans);
