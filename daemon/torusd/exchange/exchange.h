/* The exchanges of one node: from a client's request until every node has its blocks.
 *
 * A job is what a client asks for, or enters (a barrier or group; job.h). A job has one attempt after
 * another until an attempt is not withdrawn:
 *
 *     WAITING <--> ENTERED      at its root; at any other node, or not the root yet
 *         ^           ^
 *         v           v         begun by the root; prepared by the root
 *         UNDER_WAY ------> ENDED
 *
 * An attempt is one try to carry the job out on all nodes. A node where no client has asked for it has no job.
 *
 *             STARTING                                  at the root: no other node knows of it
 *                |
 *        prepare v
 *    (sizes   OPENING            sizes: sizes go up
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
 *                |        \------> COMMITTED       nothing to keep, at the root
 *                v
 *      DONE / DECIDING (root)
 *                |   commit comes down
 *                v
 *           COMMITTING ----------> COMMITTED       confirm goes to the root
 *
 * An attempt can fail in every state except DECIDING and COMMITTING: a node sends the root a nack and is
 * FAILING, the root decides for all nodes and sends its abort, and the attempt is FAILED. A node that is DONE
 * and hears nothing more becomes IN_DOUBT and asks the root. The root can withdraw an attempt (abort.c)
 * until it decides to commit, or, for a barrier, until it sends `go`; it can withdraw a group's attempt at any
 * time. The job then waits for its next attempt. If there is none, a WITHDRAWN attempt becomes FAILED.
 * states.c has these transitions as tables; dispatch.c says which message may arrive in which state.
 *
 * Waves run over the spanning tree of the exchange's root (schedule/tree.h); in each wave a node hears from its
 * children before it tells its parent. Up to `window` rounds overlap, so their waves overlap too: a node starts
 * round k + window after round k is finished on all nodes. Several exchanges back to back are one exchange
 * here: their rounds are counted through all repetitions.
 *
 * Every exchange ends committed, failed (everywhere with the same error) or in doubt. */
#pragma once

#include "daemon/torusd/exchange/exchange_types.h"
#include "daemon/torusd/exchange/link_costs.h"

/* Creates the exchanges of this node; exchanges_free() frees them. Returns NULL with *e if there is no memory,
 * or if the storage cannot tell what is on record. */
struct exchanges *exchanges_new(const struct exchanges_setup *setup, struct error *e);
/* Ends all exchanges on this node without telling other nodes: the caller takes their links down. */
void exchanges_free(struct exchanges *exchanges);

/* The next four functions are for the router's handler. Handles a frame from the neighbour at this port. Returns
 * 0, or -1 with *e if the neighbour is to blame. */
int exchanges_frame(struct exchanges *exchanges, unsigned port, const struct peer_message *message,
                    const struct extents *body, uint32_t body_length, struct error *e);
/* As router_handler.places. */
void exchanges_places(struct exchanges *exchanges, unsigned port,
                      const struct peer_message *message, uint32_t body_length, uint32_t offset,
                      struct places *places);

/* As router_handler.passes. */
int exchanges_passes(struct exchanges *exchanges, unsigned port,
                     const struct peer_message *message);
/* Returns the next frame of data to send through this port, or NULL. */
struct outgoing *exchanges_next(struct exchanges *exchanges, unsigned port);
/* Checks all jobs and attempts because links went down or came up. */
void exchanges_topology(struct exchanges *exchanges);

/* Returns when exchanges_tick() is due (as router_now()), or ROUTER_NEVER. */
uint64_t exchanges_deadline(const struct exchanges *exchanges);
/* Checks deadlines, starts jobs, and tells clients how their jobs ended. */
void exchanges_tick(struct exchanges *exchanges);

/* Asks for an exchange on all nodes, with this node as its root. The job waits in the start queue. `spec` and
 * `client` are copied. Returns the job, which is valid until the client is told that it has ended, or NULL with
 * *e if this node refuses it at once. */
struct job *exchange_start(struct exchanges *exchanges, const struct spec *spec,
                           const struct exchange_client *client, struct error *e);

/* Cancels a job: it fails on all nodes unless it is already decided to commit. The client is told how it ended. */
void exchange_cancel(struct job *j);

/* Cancels a job whose client is gone. The client is not called again, and *j is no longer valid. */
void exchange_abandon(struct job *j);

/* Lets a job continue without its client. The client is not called again, and *j is no longer valid. */
void exchange_release(struct job *j);

/* Releases a job, and fails it on all nodes for this reason unless it is already decided to commit. *j is no
 * longer valid. */
void exchange_give_up(struct job *j, const struct error *why);

/* Whether all nodes may have entered the barrier or group, so that it may have ended or been opened at other
 * nodes although it failed here. False is certain; true is not. */
bool exchange_all_may_have_entered(const struct job *j);

/* Returns the number of nodes that have not entered, and writes their ranks to `list` ("3, 7"), as many as fit
 * into `size` (at least 32) bytes. Covers the branches below this node that have not reported completely. At
 * node 0 that is the whole torus; another node that has not heard from node 0 names only node 0. With spec.wait, the root
 * names the nodes that it cannot reach, as long as it waits for them. */
uint32_t exchange_missing(const struct job *j, char *list, size_t size);

/* Whether the exchange is certainly not decided, and will not be if this node, its root, stops now. */
bool exchange_is_undecided(const struct job *j);

/* Returns the id of the job's attempt, valid until the client is told that the job has ended. The id changes
 * when the root retries. */
const char *exchange_id(const struct job *j);
/* Sets *progress to the job's state, and to what has been delivered at this node. */
void exchange_progress(const struct job *j, struct exchange_progress *progress);

/* Fills *counts with how many exchanges there are and have been at this node. */
void exchanges_count(const struct exchanges *exchanges, struct exchange_counts *counts);

/* Lists exchanges: first those under way, then the latest that ended, youngest first. Returns how many entries
 * were written, at most `most`. */
size_t exchanges_list(const struct exchanges *exchanges, struct exchange_info *info, size_t most);
/* Lists the decisions of this node that some nodes have not confirmed, youngest first. Returns how many entries
 * were written, at most `most`. */
size_t exchanges_unconfirmed(const struct exchanges *exchanges, struct exchange_unconfirmed *list,
                             size_t most);
/* Raises the memory budget to this many bytes, for the attempts that are prepared from now on. A lower budget changes
 * nothing, because the memory may be reserved. */
void exchanges_raise_memory(struct exchanges *exchanges, uint64_t budget);
/* To be called when a node has stated what its links carry. */
void exchanges_rates_heard(struct exchanges *exchanges);
/* To be called when the nominal rates of ports (router_set_nominal()) have been set or changed. link_mbit: nominal rate of
 * the others, in Mbit/s; 0: unknown. */
void exchanges_rates_changed(struct exchanges *exchanges, double link_mbit);
/* Returns how many jobs wait and attempts are under way at this node, including barriers and groups. */
unsigned exchanges_under_way(const struct exchanges *exchanges);
/* Returns the bytes that this job has reserved at this node. */
uint64_t exchange_reserved(const struct job *j);
/* Returns the bytes that exchanges and groups have reserved at this node. */
uint64_t exchanges_reserved(const struct exchanges *exchanges);

/* Returns the trace that has begun last at this node, or NULL; borrowed until exchanges are called again. */
const struct trace *exchanges_last_trace(const struct exchanges *exchanges);

/* Returns the schedules that clients or neighbours have given to this node (planning/schedule_store.h); borrowed. */
struct schedules *exchanges_schedules(struct exchanges *exchanges);

/* Checks what must hold between two events: the invariant of each exchange's state, and the sum of reserved
 * memory. Returns 0, or -1 with *e. */
int exchanges_check(const struct exchanges *exchanges, struct error *e);
