/* What outlives an exchange or lies outside the daemon: folders and the journal of decisions. Under
 * libuv this is daemon/files; the simulator brings its own. */
#ifndef TORUSD_EXCHANGE_STORAGE_H
#define TORUSD_EXCHANGE_STORAGE_H

#include "daemon/exchange/blocks.h"
#include "daemon/exchange/calibration.h"
#include "daemon/schedule/algorithm.h"

struct folder_request {
    const char *id; /* of the exchange */
    enum operation operation;
    uint32_t sender;  /* broadcast: whose block */
    const char *from; /* with %r for the rank. Exchange: a folder. Else the file with the block of
                       * this node, its block for itself; or a folder with that file, named by the
                       * rank. */
    const char *to;
    bool missing_ok; /* a missing source file is an empty block */
    uint32_t rank, nodes;
    /* In each round, `round_bytes` of a block are split into `segments` segments (0 means 1) of
     * folder_run_bytes() each, the last may be shorter; each segment is read and written front to
     * back, round after round. */
    uint64_t round_bytes;
    uint32_t segments;
};

/* Whether a node has blocks to send. */
static inline bool folder_sends(const struct folder_request *r, uint32_t rank)
{
    return r->operation != OPERATION_BROADCAST || rank == r->sender;
}

static inline uint64_t folder_run_bytes(const struct folder_request *request)
{
    if (request->segments <= 1)
        return UINT64_MAX;
    return request->round_bytes / request->segments +
           (request->round_bytes % request->segments != 0);
}

struct storage {
    void *context;

    /* Opens both folders after checking all that can be checked: below the data roots, a regular
     * file for each destination, target absent or empty and writable. Returns 0 with *source and
     * *sink owned by the caller, or -1 with *e and nothing left behind. */
    int (*open_folders)(void *context, const struct folder_request *request,
                        const struct block_events *events, struct source **source,
                        struct sink **sink, struct error *e);

    /* Root only: makes the decision to commit survive a crash. Returns 0, or -1 with *e. */
    int (*record_commit)(void *context, const char *id, struct error *e);
    bool (*was_committed)(void *context, const char *id);
    /* Every node has confirmed: nobody will ask any more. */
    void (*forget_commit)(void *context, const char *id);

    /* Calls each() for every exchange whose finished output waits for its outcome (in doubt). */
    void (*each_in_doubt)(void *context, void (*each)(void *argument, const char *id),
                          void *argument);

    /* May be NULL: nothing is kept. The last calibration that this node has heard of: 1 with *c, 0
     * if there is none, or -1 with *e. It need not survive a failure of power: neighbours tell it
     * again. */
    int (*load_calibration)(void *context, struct calibration *c, struct error *e);
    int (*store_calibration)(void *context, const struct calibration *c, struct error *e);

    /* Ends such a doubt: puts the output under its final name, or removes it. */
    int (*resolve)(void *context, const char *id, bool committed, struct error *e);
};

#endif
