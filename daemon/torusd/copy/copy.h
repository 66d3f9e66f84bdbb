/* Copies of trees of files between nodes (torusctl copy, gather, scatter, exchange of folders).
 *
 * The node that a client asks calls all other nodes (initiator.c): a flooded message tells what to do, and each node
 * that hears it starts an agent (agent.h). The agents open a group (daemon/torusd/group), like programs, and make the
 * same calls in the same order:
 *
 *     1. the manifests       broadcast, or an uneven exchange if each pair has its own trees
 *     2. what is wanted      allgather of the answers of compare(); then the digests, if any are wanted
 *     3. what is missing     allgather of the ranges that each node lacks, and of errors
 *     4. the data            ranges of the stream that any node lacks, in calls of a few MiB, two under way while the
 *                            next is read and the last is written
 *     5. the end             each node puts its trees in place, or says why not; allgather of reports
 *
 * The group avoids links that go down, and repeats what they have lost. If a node goes down, the group fails: every
 * agent ends, and what has arrived stays on the disks (tree_store.h). The asked node then calls again, if the copy
 * waits for nodes or leaves them out; only what is still missing moves.
 *
 * A node whose disk fails, or is full, tells its error in 3 or 5, and continues to pass data on. So a copy is delivered
 * all or nothing at each node, not at all nodes together.
 *
 * No I/O here: groups move data, tree_store.h has the disks. */
#pragma once

#include "daemon/lib/base/shares.h"
#include "daemon/lib/base/work.h"
#include "daemon/torusd/copy/request.h"
#include "daemon/torusd/copy/tree_store.h"
#include "daemon/torusd/group/group.h"
#include "proto/peer/peer_message.h"

struct router;
struct copies; /* of one node */
struct copy;   /* one that was asked for at this node */

enum copy_phase {
    COPY_CALLING,
    COPY_READING,
    COPY_COMPARING,
    COPY_MOVING,
    COPY_PLACING,
    COPY_PHASES
};

/* How a copy ended at a node that writes. */
struct copy_outcome {
    uint32_t node, from; /* from: the node that the trees come from */
    struct error error;  /* ERROR_NONE: everything is in place */
    struct tree_report report;
    const uint8_t *going; /* dry_run: paths that would be removed, each with a 0 byte behind it */
    size_t going_length;
};

struct copy_result {
    const struct copy_outcome *outcome; /* by (node, from) */
    uint32_t outcomes;
    uint64_t bytes_sent, bytes_all, nanoseconds, compare_nanoseconds, left_out;
    const char *first_left_out; /* "": nothing was left out */
    uint64_t changed;           /* files that were left out because they changed meanwhile */
    const char *first_changed;
    uint64_t links_out; /* symbolic links that lead to places which the copy does not have */
    const char *first_link_out;
    const char *id;
    uint32_t attempts;
    const uint32_t *absent;
    uint32_t absents;
    struct group_carrier by; /* what has carried most of it; nothing if nothing was moved */
    struct link_rates
        links; /* that its routes were found for; the bounds are those of a copy to all nodes */
};

struct copy_progress {
    enum copy_phase phase;
    uint64_t files, bytes, bytes_of; /* bytes_of 0: not known yet */
    char waits_for[100];
};

/* Never called from inside a function of this header, except copies_tick(). */
struct copy_client {
    void *context;
    /* Once, as the last function: the copy is over; exactly one argument is NULL. It has failed as a whole (*e), or it
     * has ended, perhaps with errors of some nodes. */
    void (*ended)(void *context, const struct copy_result *result, const struct error *e);
};

/* Starts a copy; copies the request. Returns NULL with *e if it is refused: ranks that do not exist, too many copies,
 * nodes of an older release. */
struct copy *copy_start(struct copies *copies, const struct copy_request *request,
                        const struct copy_client *client, struct error *e);
/* Where it stands now. */
void copy_progress(const struct copy *copy, struct copy_progress *progress);
/* The client asks to stop. Returns true: nothing has changed at any node, unless *e says so; ended() is not called.
 * Returns false, from when nodes may put the copy in place: it continues, and ended() will be called. */
bool copy_stop(struct copy *copy, struct error *e);
/* The client has gone: all agents end. ended() is not called. */
void copy_cancel(struct copy *copy);

#define COPY_ID_SIZE 20u

/* One line of `status` about each copy that this node takes part in, or has been asked for, also while that waits for
 * its next attempt. Writes at most `most`; returns how many. */
struct copy_info {
    char id[COPY_ID_SIZE];
    uint32_t asker;
    struct copy_progress progress;
    char target[256]; /* printable */
};
size_t copies_list(const struct copies *copies, struct copy_info *list, size_t most);

/* Attempts of copies that this node takes part in; for monitoring. */
struct copies_counts {
    unsigned under_way;
    uint64_t ended,
        failed; /* since the daemon started: copies that ended after their last step, and before it */
    uint64_t bytes; /* of trees, in all rounds of copies that this node took part in */
};
/* Fills *counts. */
void copies_count(const struct copies *copies, struct copies_counts *counts);

/* --- for core/ --- */

struct copies_setup {
    struct router *router;
    struct groups *groups;
    const struct workers *workers;
    const struct tree_store *trees; /* NULL: this node has none, so it only passes data on */
    struct shares *shares;
};
struct copies *copies_new(const struct copies_setup *setup); /* NULL: no memory */
/* Ends all agents, without telling other nodes; must be called before groups_free(). Jobs under way end later, without
 * their owner. */
void copies_free(struct copies *copies);
/* A call of another node has arrived at `port`. Returns 0, or -1 with *e: an honest node does not send that. */
int copies_call_heard(struct copies *copies, unsigned port, const struct peer_copy_call *call,
                      struct error *e);
/* The refusal of another node to take part has arrived. Returns as copies_call_heard(). */
int copies_refusal_heard(struct copies *copies, const struct peer_copy_refusal *refusal,
                         struct error *e);
uint64_t copies_deadline(const struct copies *copies); /* as router_now(), or ROUTER_NEVER */
void copies_tick(struct copies *copies);
/* Checks what must hold between two events. Returns 0, or -1 with *e: a bug. */
int copies_check(const struct copies *copies, struct error *e);
