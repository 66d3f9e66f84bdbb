/* The storage of a fuzzed node: folders whose blocks have few or no bytes, and decisions that are recorded or not,
 * as the node's random numbers say. */
#pragma once

#include "daemon/torusd/engine/output_store.h"
#include "daemon/torusd/exchange/exchange_types.h"
#include "tests/unit/router_fixture.h"

#define FUZZ_STORAGE_CALLS 1000u

struct fuzz_storage_call {
    char id[EXCHANGE_ID_SIZE];
    storage_done_fn *done;
    void *argument;
};

struct fuzz_storage {
    struct storage storage;
    struct router_fixture *node;
    struct fuzz_storage_call call[FUZZ_STORAGE_CALLS]; /* not done */
    unsigned calls;
    unsigned open_folders; /* sources and sinks */
};

/* Starts without folders and calls. Borrows the node, and uses its torus, pool and random numbers. */
void fuzz_storage_open(struct fuzz_storage *all, struct router_fixture *node);
/* Does all pending calls, the last one first; a third of them fail. */
void fuzz_storage_run(struct fuzz_storage *all);
