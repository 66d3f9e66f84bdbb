/* Decisions to commit that this node has made as a root. A decision stays on record until every node has confirmed;
 * nodes that have not are reminded when they can be reached. */
#pragma once

#include "daemon/torusd/exchange/attempt.h"
#include "daemon/torusd/exchange/id.h"

/* A decision to commit that this node has made as a root. Times are nanoseconds of the router's clock. */
struct decision {
    struct decision *next;
    struct exchange_id id;
    uint64_t remind_at;
    uint64_t reminded_at; /* when the last round of reminders began; 0: there was none */
    uint32_t remind_next; /* rank of the node to remind next; 0: all were reminded */
    uint32_t confirmed;   /* number of nodes that have confirmed or are excused */
    /* Rank of a node that could not put its output in place; TORUS_NO_NODE: none. */
    uint32_t obstacle_at;
    uint64_t obstacle_since; /* when this node heard of the obstacle */
    char obstacle[sizeof((struct error *)0)->text];
    uint8_t confirmed_by[]; /* a bit for each rank that has confirmed or is excused */
};

static inline bool decision_has(const struct decision *d, uint32_t rank)
{
    return (d->confirmed_by[rank / 8] & 1u << rank % 8) != 0;
}

/* Loads the decisions and doubts that were on record when this node stopped. Returns 0, or -1 with *e. */
int decisions_load(struct exchanges *exchanges, struct error *e);
/* Frees all decisions and doubts; they stay on record on disk. */
void decisions_free(struct exchanges *exchanges);
/* Returns the decision about this exchange, or NULL if there is none. */
struct decision *decision_find(struct exchanges *exchanges, const struct exchange_id *id);
/* Adds a decision; nodes that have not confirmed are reminded from `remind_at` on. The list owns the decision.
 * Returns NULL if there is no memory. */
struct decision *decision_add(struct exchanges *exchanges, const struct exchange_id *id,
                              uint64_t remind_at);
/* Removes and frees a decision. Nodes are no longer reminded of it. */
void decision_drop(struct exchanges *exchanges, struct decision *d);
/* Returns the number of decisions that some nodes have not confirmed. */
unsigned decisions_count(const struct exchanges *exchanges);
/* Whether the disk has recorded the decision, so that other nodes may hear of it. */
bool decision_is_on_record(const struct exchanges *exchanges, const struct decision *d);
/* Notes that a node has confirmed, or is excused, because it took no part. The record on disk does not say so: after a
 * restart of the root such a node is reminded, and then confirms. */
void decision_note(struct decision *d, uint32_t rank);
/* These nodes confirm, or one of them names an obstacle (obstacle "": none). At the root this goes into the
 * decision; any other node sends it towards the root. */
void decision_confirm(struct exchanges *exchanges, const struct exchange_id *id,
                      const uint32_t *rank, size_t count, const char *obstacle);
/* Confirms, or names the obstacle, for this node. */
void decision_confirm_own(struct exchanges *exchanges, const struct exchange_id *id,
                          const char *obstacle);
/* Reminds nodes soon, because links went down or came up: a node may have missed the decision, or its
 * confirmation was lost. */
void decision_remind_soon(struct exchanges *exchanges, struct decision *d);
/* Applies decision_remind_soon() to all decisions. */
void decisions_remind_soon(struct exchanges *exchanges);

/* --- doubts: finished outputs of this node whose outcome is unknown or cannot be carried out yet --- */

/* Adds a doubt about this attempt's output, and takes x->doubt over, which was allocated in advance, so that
 * this cannot fail. `decided`: the exchange is known to be committed, but its output could not be put in place. */
void in_doubt_add(struct attempt *x, bool decided);
/* Carries out a known outcome: puts the output in place or removes it. Returns false if there is no doubt with
 * this id. */
bool in_doubt_resolve(struct exchanges *exchanges, const struct exchange_id *id, bool committed);
/* Returns the number of doubts about exchanges of this root. */
unsigned in_doubt_about(const struct exchanges *exchanges, uint32_t root);
