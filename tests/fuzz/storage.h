/* The storage of a node that is fuzzed: folders whose blocks have a few bytes or none, and decisions that are recorded
 * or not, by the numbers of the node's fixture. */
#ifndef TORUSD_TESTS_FUZZ_STORAGE_H
#define TORUSD_TESTS_FUZZ_STORAGE_H

#include "daemon/engine/output_store.h"
#include "daemon/exchange/interface/exchange_types.h"
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

/* Without folders and calls. Borrows the node, whose torus, pool and numbers it uses. */
void fuzz_storage_open(struct fuzz_storage *all, struct router_fixture *node);
/* Does all that was called for, the last call first; a third of the calls fail. */
void fuzz_storage_run(struct fuzz_storage *all);

#endif
