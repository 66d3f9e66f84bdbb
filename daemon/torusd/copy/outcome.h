/* How a copy ended, for its client. */
#pragma once

#include "daemon/torusd/copy/agent_record.h"

struct copy_outcomes {
    struct copy_result result; /* points to the rest */
    struct copy_outcome *list;
    uint32_t *absent;
    char first_left_out[256], first_changed[256], first_link_out[256], id[20];
};

/* Makes the result of an attempt that is over. Returns it, or NULL without memory; copy_outcomes_free() frees it. */
struct copy_outcomes *copy_outcomes_new(const struct agent *a, uint64_t began, uint64_t now);
void copy_outcomes_free(struct copy_outcomes *o);
