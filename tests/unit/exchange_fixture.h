/* A core without a network and without disks: one node whose neighbours, workers and storage do what the test
 * says. After every event core_check() must hold. */
#pragma once

#include "daemon/torusd/core/core.h"
#include "router_fixture.h"

#define EXCHANGE_FIXTURE_BUDGET (1u << 20)
#define EXCHANGE_FIXTURE_WORK 64u
#define EXCHANGE_FIXTURE_CALLS 16u

/* Open folders; all blocks are empty. */
struct folders;

/* A request to the storage that is not done yet. */
struct storage_call {
    char id[EXCHANGE_ID_SIZE];
    bool resolves; /* otherwise it records a decision */
    bool committed;
    storage_done_fn *done;
    void *argument;
};

struct exchange_client_seen {
    unsigned told;
    struct error e; /* ERROR_NONE: a result */
};

struct exchange_fixture {
    struct router_fixture f;
    struct core *core;
    struct storage storage;
    struct work *work[EXCHANGE_FIXTURE_WORK]; /* run, not done() */
    unsigned works;
    struct folders *folders;
    struct storage_call call[EXCHANGE_FIXTURE_CALLS];
    unsigned calls;
    bool counts_memory; /* allocations outside of frames may fail, too (failing_memory.h) */

    /* How storage behaves from now on. */
    bool opened, written, closes_at_once;
    int commit; /* what sink.commit returns; -1: "target exists" */
    const char *const *on_record, *const *in_doubt; /* ids at start, up to a NULL; or NULL */

    /* The effects so far. */
    unsigned commits, kept, removed;
    unsigned forgotten; /* decisions */
};

/* Sets how storage behaves by default: everything succeeds at once, except that record and resolve wait for
 * xf_storage_done(). */
void xf_init(struct exchange_fixture *n);
/* Replaces the link at a port by a new one, over which all other nodes report that their links are up. */
void xf_link_up(struct exchange_fixture *n, unsigned port);
/* Brings up all links in that way. */
void xf_open(struct exchange_fixture *n, const char *dims, uint32_t rank);
/* Fails the test if folders or buffers are left open. */
void xf_close(struct exchange_fixture *n);

/* Runs all due work and ticks, then checks the core. */
void xf_settle(struct exchange_fixture *n);
/* Lets time pass, with heartbeats on the links that are up. */
void xf_pass(struct exchange_fixture *n, uint64_t nanoseconds);
/* The neighbour at the port sends a message. Returns whether the link is still up. */
bool xf_say(struct exchange_fixture *n, unsigned port, const struct peer_message *head);
/* The next message to the neighbour, without messages about links, or NULL. The caller frees it with
 * message_forget(). */
struct peer_message *xf_next(struct exchange_fixture *n, unsigned port);
/* The kind of the next message; KIND__NOT_SET if there is none. */
enum peer_kind xf_hear(struct exchange_fixture *n, unsigned port);
/* Discards all messages to all neighbours. Returns their number. */
unsigned xf_drain(struct exchange_fixture *n);

/* Pending work of the folders is done; or the folders fail. */
void xf_wake(struct exchange_fixture *n);
void xf_folders_fail(struct exchange_fixture *n, enum error_code code, const char *text);
/* All folders that are closing are closed. */
void xf_closed(struct exchange_fixture *n);
/* The oldest request to the storage ends, with error `e`, or NULL for success. */
void xf_storage_done(struct exchange_fixture *n, const struct error *e);

/* A client that counts in *seen what it is told. Call xf_settle() to go on. */
struct job *xf_start(struct exchange_fixture *n, const struct spec *spec,
                     struct exchange_client_seen *seen, struct error *e);

/* The state of the first exchange of exchanges_list(). */
enum exchange_state xf_state(struct exchange_fixture *n);
struct exchange_info xf_info(struct exchange_fixture *n);
/* The state of the exchange with this id; EXCHANGE_STATES if it is not known. */
enum exchange_state xf_state_of(struct exchange_fixture *n, const char *id);

/* --- messages of the exchange with this handle --- */

#define XF_REPORTS 16u
#define XF_HANDLE 8u
#define XF_ID "0-0000004d-8" /* of node 0, whose boot is 77 in router_fixture */

/* A prepare of node 0 for the torus of the fixture: an exchange of folders by "direct", whose blocks have sizes. */
struct xf_prepare {
    Torus__Spec spec;
    struct peer_message message;
    char dims[TORUS_TEXT_SIZE];
};
void xf_prepare_init(struct xf_prepare *p, const struct exchange_fixture *n);
/* Turns it into a prepare for generated blocks of 0 bytes. */
void xf_prepare_generated(struct xf_prepare *p);

/* Says a message of this kind with these fields: XF_SAY(n, port, PEER_GO, go, .exchange = handle, .rounds = 1). Returns
 * whether the link is still up; the functions below do so too. */
#define XF_SAY(n, port, named, member, ...)                                                        \
    xf_say(n, port, &(struct peer_message){.kind = (named), .member = {__VA_ARGS__}})
#define xf_say_handle(n, port, named, handle) /* ready, commit */                                  \
    XF_SAY(n, port, named, ready, handle)
#define xf_say_sizes(n, port, handle, largest)                                                     \
    XF_SAY(n, port, PEER_SIZES, sizes, .exchange = (handle), .largest_block = (largest))
#define xf_say_layout(n, port, handle)                                                             \
    XF_SAY(n, port, PEER_LAYOUT, layout, .exchange = (handle), .round_bytes = 1000, .window = 1,   \
           .timeout_ms = 60000)
#define xf_say_go(n, port, handle, count, turn)                                                    \
    XF_SAY(n, port, PEER_GO, go, .exchange = (handle), .rounds = (count), .repetition = (turn))
#define xf_say_round_done(n, port, handle, number)                                                 \
    XF_SAY(n, port, PEER_ROUND_DONE, round_done, .exchange = (handle), .round = (number))
#define xf_say_round_go(n, port, handle, number)                                                   \
    XF_SAY(n, port, PEER_ROUND_GO, round_go, .exchange = (handle), .round = (number))
#define xf_say_repeated(n, port, handle, turn, time)                                               \
    XF_SAY(n, port, PEER_REPEATED, repeated, .exchange = (handle), .repetition = (turn),           \
           .nanoseconds = (time))
#define xf_say_clear(n, port, handle)                                                              \
    XF_SAY(n, port, PEER_CLEAR, clear, .exchange = (handle), .hops = 3, .left = 1)
#define xf_say_abort(n, port, handle, name, error, why, hops)                                      \
    XF_SAY(n, port, PEER_ABORT, abort, .exchange = (handle), .id = (name),                         \
           .code = (enum error_code)(error), .reason = (why), .left = (hops))
#define xf_say_confirm(n, port, name, node, why)                                                   \
    XF_SAY(n, port, PEER_CONFIRM, confirm, .id = (name), .n_rank = 1, .rank = &(uint32_t){node},   \
           .obstacle = (why))
#define xf_say_query(n, port, name, node)                                                          \
    XF_SAY(n, port, PEER_OUTCOME_QUERY, outcome_query, .id = (name), .initiator = (node))
#define xf_say_outcome(n, port, name, good, node)                                                  \
    XF_SAY(n, port, PEER_OUTCOME, outcome, .id = (name), .committed = (good), .initiator = (node))

/* With the reports of `nodes` nodes, at most XF_REPORTS, from rank `first` on. */
bool xf_say_done(struct exchange_fixture *n, unsigned port, uint32_t handle, uint32_t first,
                 uint32_t nodes);
/* The `index`-th message of "direct" that arrives at the port, with empty blocks. `sizes`: the blocks have sizes. */
bool xf_say_data(struct exchange_fixture *n, unsigned port, uint32_t handle, uint32_t round,
                 unsigned index, bool sizes);
/* All messages that arrive at all ports in a round. */
void xf_say_all_data(struct exchange_fixture *n, uint32_t handle, uint32_t round, bool sizes);

/* A nack about no node; */
bool xf_say_nack(struct exchange_fixture *n, unsigned port, uint32_t handle, const char *id,
                 uint32_t root, uint32_t code, const char *reason);
/* and one about this culprit. */
bool xf_say_nack_about(struct exchange_fixture *n, unsigned port, uint32_t handle, const char *id,
                       uint32_t root, const struct error *why);
