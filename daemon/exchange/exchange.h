/* The exchanges of one node, from what a client asks for to what every node has delivered.
 *
 * What a client asks for, or enters (a barrier or group), is a job (record/job.h). It has one attempt after the other
 * until one of them is not withdrawn:
 *
 *     WAITING <--> ENTERED      at its root; at any other node, or not the root yet
 *         ^           ^
 *         v           v         begun by the root; prepared by the root
 *         UNDER_WAY ------> ENDED
 *
 * An attempt is one try to carry it out on all nodes. A node where nobody has asked for it has no job.
 *
 *             STARTING                                  at the root: no other node knows of it
 *                |
 *        prepare v
 *    (sizes   OPENING            sized: sizes go up
 *     differ)    |
 *                v
 *             OPENED             layout comes down
 *                |
 *                v
 *            PREPARING           own and children's parts: ready goes up
 *                |
 *                v
 *              READY             go comes down
 *                |
 *                v  repeated up
 *             RUNNING <--------------> PAUSED      rounds: round_done up, round_go down
 *                |     go down
 *      done up   +---------------> FINISHED        nothing to keep
 *                |        \------> COMMITTED       the same at the root
 *                v
 *      DONE / DECIDING (root)
 *                |   commit comes down
 *                v
 *           COMMITTING ----------> COMMITTED       confirm goes to the root
 *
 * From every state but DECIDING and COMMITTING an attempt can fail: a node tells the root (objection) and is
 * FAILING, the root decides for all (verdict): FAILED. A node that is DONE and hears nothing any more is IN_DOUBT and
 * asks. Until the decision (of a barrier: before `go`; of a group at any time) the root can also withdraw an attempt
 * (abort/retry.c), and its job waits for the next one. If there is none, what was WITHDRAWN has FAILED. The same as
 * tables, with what may follow what, is record/states.c; which message may come in which state is dispatch.c.
 *
 * Waves run over the spanning tree of the exchange's root (schedule/tree.h); in each one a node
 * hears from its children before it tells its parent. Of the rounds `window` may be under way at the
 * same time, so their waves overlap: round k + window starts on a node after round k is finished on
 * all. A session of several exchanges back to back is one exchange here: its repetitions are rounds
 * that go on counting.
 *
 * Every exchange ends committed, failed (everywhere with the same error) or in doubt. */
#ifndef TORUSD_EXCHANGE_EXCHANGE_H
#define TORUSD_EXCHANGE_EXCHANGE_H

#include "daemon/exchange/interface/exchange_types.h"
#include "daemon/exchange/record/link_costs.h"
#include "daemon/exchange/record/missing.h"

/* Returns NULL with *e if there is no memory, or the storage cannot tell what is on record. */
struct exchanges *exchanges_new(const struct exchanges_setup *setup, struct error *e);
/* Ends all exchanges on this node without a word to the others (their links go down). */
void exchanges_free(struct exchanges *all);

/* The router's handler calls these. */
int exchanges_frame(struct exchanges *all, unsigned port, const struct peer_message *message,
                    const struct extents *body, uint32_t body_length, struct error *e);
struct outgoing *exchanges_next(struct exchanges *all, unsigned port);
void exchanges_topology(struct exchanges *all);

uint64_t exchanges_deadline(const struct exchanges *all);
void exchanges_tick(struct exchanges *all);

/* Asks for an exchange on all nodes, with this one as its root; it waits to be started. Returns it
 * (good until the client is told that it has ended) or NULL with *e if it is refused right here.
 * `spec` and `client` are copied. */
struct job *exchange_start(struct exchanges *all, const struct spec *spec,
                           const struct exchange_client *client, struct error *e);

/* Asks that it ends: it fails everywhere, unless it has already been decided to commit. The client
 * is told how it ended. */
void exchange_cancel(struct job *j);

/* The client has gone: the same, but it is not called again, and *j is no longer good. */
void exchange_abandon(struct job *j);

/* The client wants to hear nothing more of it: the job stays, and *j is no longer good. */
void exchange_release(struct job *j);

/* The same, and it fails everywhere for this reason, unless it has been decided to commit it. */
void exchange_give_up(struct job *j, const struct error *why);

/* Whether a barrier may have ended at other nodes, or a group may have been opened there, although it has failed at
 * this one. False is certain. */
bool exchange_may_have_gone(const struct job *j);

/* Whether it is certain that it has not been decided to commit it, nor will be if this node, its root, stops now. */
bool exchange_is_undecided(const struct job *j);

/* Good until the client is told, but it changes when the root retries because a node was
 * busy or a link went down. */
const char *exchange_id(const struct job *j);
void exchange_progress(const struct job *j, struct exchange_progress *progress);

/* Running ones first, then the last that ended, youngest first; at most `most`. Returns how many.
 */
size_t exchanges_list(const struct exchanges *all, struct exchange_info *info, size_t most);
/* What is on record, the youngest first; at most `most`. Returns how many. */
size_t exchanges_unconfirmed(const struct exchanges *all, struct exchange_unconfirmed *list,
                             size_t most);
unsigned exchanges_under_way(const struct exchanges *all); /* barriers and groups too */
uint64_t exchanges_reserved(const struct exchanges *all);

/* The schedules that clients have given to this node, or neighbours (schedules.h). */
struct schedules *exchanges_schedules(struct exchanges *all);

/* Whether everything that must hold between two events does: the invariant of every exchange's
 * state, and the sum of what they have reserved. Returns 0, or -1 with *e. */
int exchanges_check(const struct exchanges *all, struct error *e);

#endif
