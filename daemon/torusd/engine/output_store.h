/* Storage that outlives an exchange: folders, and the journal of decisions. Under libuv this is daemon/torusd/files;
 * the simulator has its own.
 *
 * No function waits for a disk: each one starts the work, and done(), unless it is NULL, reports the end. */
#pragma once

#include "daemon/lib/schedule/algorithm.h"
#include "daemon/torusd/engine/blocks.h"

struct calibration;

struct folder_request {
    const char *id; /* id of the exchange */
    enum schedule_operation operation;
    uint32_t sender; /* broadcast: the node that has the block */
    /* with %r for the rank. Exchange: a folder. Other operations: the file with this node's block, or a folder
     * with that file, named by the rank. */
    const char *from;
    const char *to;
    bool missing_ok; /* a missing source file is an empty block */
    bool replace; /* an old result at `to` is replaced; without it `to` must be absent or empty */
    uint32_t rank, nodes;
    const bool *gone; /* by rank: the node takes no part; NULL: all nodes take part */

    /* The next two are for a retry that continues with kept output; else NULL. */
    /* by destination: source_ops.mark() in the last attempt. A block whose mark differs has changed. */
    const uint64_t *marks;
    struct sink *kept_sink; /* the kept sink of the last attempt (sink_ops.keep_output()) */
};

/* Whether a node takes no part. */
static inline bool folder_is_gone(const struct folder_request *r, uint32_t rank)
{
    return r->gone != NULL && r->gone[rank];
}

/* Whether a node has blocks to send. */
static inline bool folder_sends(const struct folder_request *r, uint32_t rank)
{
    return r->operation != OPERATION_BROADCAST || rank == r->sender;
}

/* Tells the end of an operation; `e` is NULL if it succeeded. Never called from inside the call that
 * started the operation. */
typedef void storage_done_fn(void *argument, const char *id, const struct error *e);

struct storage {
    void *context;

    /* Starts to open both folders, and to check them: that both are below the data roots, that there is a
     * regular file for each destination, and that the target is absent or empty, and writable. Returns 0 with
     * *source and *sink owned by the caller, or -1 with *e if there is no memory. Problems that are found
     * later come through events->failed; ERROR_BUSY if another exchange is writing to the target. `request`
     * is copied with `gone` and `marks`, but without its texts. A kept sink becomes *sink: it belongs to this
     * exchange from now on, with the bytes that were written; on failure it stays as it was. */
    int (*open_folders)(void *context, const struct folder_request *request,
                        const struct block_events *events, struct source **source,
                        struct sink **sink, struct error *e);

    /* Root only: records the decision to commit, so that it survives a crash. If that fails, the decision is
     * not on record after a restart either. */
    void (*record_commit)(void *context, const char *id, storage_done_fn *done, void *argument);
    /* Forgets a decision: every node has confirmed, so no node will ask for the outcome. */
    void (*forget_commit)(void *context, const char *id);

    /* At the start: each_committed() calls each() for every decision on record; each_in_doubt() for every
     * exchange whose finished output waits, or may wait, for its outcome. Return 0, or -1 with *e: the record
     * cannot be read, and no question about outcomes may be answered from it. */
    int (*each_committed)(void *context, void (*each)(void *argument, const char *id),
                          void *argument, struct error *e);
    int (*each_in_doubt)(void *context, void (*each)(void *argument, const char *id),
                         void *argument, struct error *e);

    /* Applies the outcome of an exchange in doubt: puts the output under its final name, or removes it. */
    void (*resolve)(void *context, const char *id, bool committed, storage_done_fn *done,
                    void *argument);

    /* Load and store the last calibration that this node has heard of; both may be NULL: none is kept.
     * load_calibration() is called at the start, and returns 1 with *c, 0 if there is none, or -1 with *e.
     * A calibration need not survive a power failure: neighbours tell it again. */
    int (*load_calibration)(void *context, struct calibration *c, struct error *e);
    void (*store_calibration)(void *context, const struct calibration *c);

    /* Closes the storage; no done() is called afterwards. */
    void (*close)(void *context);
};
