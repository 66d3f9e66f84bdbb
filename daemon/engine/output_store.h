/* What outlives an exchange or lies outside the daemon: folders and the journal of decisions. Under
 * libuv this is daemon/files; the simulator brings its own.
 *
 * Nothing waits for a disk: what is begun here ends with a call of done(), or nobody is told. */
#ifndef TORUSD_ENGINE_OUTPUT_STORE_H
#define TORUSD_ENGINE_OUTPUT_STORE_H

#include "daemon/engine/blocks.h"
#include "daemon/schedule/algorithm.h"

struct calibration;

struct folder_request {
    const char *id; /* of the exchange */
    enum operation operation;
    uint32_t sender;  /* broadcast: whose block */
    const char *from; /* with %r for the rank. Exchange: a folder. Else the file with the block of
                       * this node, its block for itself; or a folder with that file, named by the
                       * rank. */
    const char *to;
    bool missing_ok; /* a missing source file is an empty block */
    bool replace;    /* an old result at `to` is replaced; else `to` must be absent or empty */
    uint32_t rank, nodes;
    const bool *gone; /* by rank: takes no part, nothing comes from or goes to it; NULL: no node */

    /* Of an exchange that begins anew and goes on where it was; else NULL: */
    const uint64_t
        *marks; /* by destination: source_ops.mark() before; what differs was changed since then */
    struct sink *parked; /* the sink of an attempt before (sink_ops.park()) */
};

static inline bool folder_is_gone(const struct folder_request *r, uint32_t rank)
{
    return r->gone != NULL && r->gone[rank];
}

/* Whether a node has blocks to send. */
static inline bool folder_sends(const struct folder_request *r, uint32_t rank)
{
    return r->operation != OPERATION_BROADCAST || rank == r->sender;
}

/* `e` is NULL if it has been done. Never called from inside the call that began it. */
typedef void storage_done_fn(void *argument, const char *id, const struct error *e);

struct storage {
    void *context;

    /* Begins to open both folders and to check all that can be checked: below the data roots, a
     * regular file for each destination, target absent or empty and writable. Returns 0 with *source
     * and *sink owned by the caller, or -1 with *e if there is no memory. What is found to be wrong
     * later comes through events->failed; ERROR_BUSY if another exchange is writing to the target.
     * `request` is copied with `gone` and `marks`, but without its texts. A parked sink becomes *sink: it is
     * this exchange's from now on, with what has been written; on failure it stays parked. */
    int (*open_folders)(void *context, const struct folder_request *request,
                        const struct block_events *events, struct source **source,
                        struct sink **sink, struct error *e);

    /* Root only: makes the decision to commit survive a crash. If that fails it will not be found
     * on record after a restart either. */
    void (*record_commit)(void *context, const char *id, storage_done_fn *done, void *argument);
    /* Every node has confirmed: nobody will ask any more. */
    void (*forget_commit)(void *context, const char *id);

    /* At start: calls each() for every decision on record, and for every exchange whose finished
     * output waits for its outcome (in doubt), or may. Return 0, or -1 with *e: what is on record cannot
     * be read, and nothing must be answered from it. */
    int (*each_committed)(void *context, void (*each)(void *argument, const char *id),
                          void *argument, struct error *e);
    int (*each_in_doubt)(void *context, void (*each)(void *argument, const char *id),
                         void *argument, struct error *e);

    /* Ends such a doubt: puts the output under its final name, or removes it. */
    void (*resolve)(void *context, const char *id, bool committed, storage_done_fn *done,
                    void *argument);

    /* Both may be NULL: nothing is kept. The last calibration that this node has heard of, at start:
     * 1 with *c, 0 if there is none, or -1 with *e. It need not survive a failure of power:
     * neighbours tell it again. */
    int (*load_calibration)(void *context, struct calibration *c, struct error *e);
    void (*store_calibration)(void *context, const struct calibration *c);

    /* No done() is called after this. */
    void (*close)(void *context);
};

#endif
