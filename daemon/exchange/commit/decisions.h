/* The decisions of this node, as a root, that not every node has confirmed. */
#ifndef TORUSD_EXCHANGE_COMMIT_DECISIONS_H
#define TORUSD_EXCHANGE_COMMIT_DECISIONS_H

#include "daemon/exchange/record/exchange_record.h"
#include "daemon/exchange/record/id.h"

/* What this node, as a root, has decided to commit. */
struct decision {
    struct decision *next;
    struct exchange_id id;
    uint64_t remind_at;
    uint64_t reminded_at;    /* when the last round of reminders began; 0: there was none */
    uint32_t remind_next;    /* the node that it goes on with; 0: it is over */
    uint32_t confirmed;      /* nodes, with those that need not */
    uint32_t obstacle_at;    /* a node that could not yet, TORUS_NO_NODE: none is known */
    uint64_t obstacle_since; /* when that was heard */
    char obstacle[sizeof((struct error *)0)->text];
    uint8_t by[]; /* bit per rank */
};

static inline bool decision_has(const struct decision *d, uint32_t rank)
{
    return (d->by[rank / 8] & 1u << rank % 8) != 0;
}

/* What was on record when this node stopped. Returns 0, or -1 with *e. */
int decisions_load(struct exchanges *all, struct error *e);
void decisions_free(struct exchanges *all);
/* NULL: there is none about this id. */
struct decision *decision_find(struct exchanges *all, const struct exchange_id *id);
/* Nodes that have not confirmed are reminded from then on. NULL: no memory. */
struct decision *decision_add(struct exchanges *all, const struct exchange_id *id,
                              uint64_t remind_at);
void decision_drop(struct exchanges *all, struct decision *d);
unsigned decisions_count(const struct exchanges *all);
/* The disk has recorded it. */
bool decision_is_on_record(const struct exchanges *all, const struct decision *d);
/* This node has taken no part, and nothing to confirm. After a restart of the root that is forgotten; it
 * confirms then, when it is asked. */
void decision_excuse(struct decision *d, uint32_t rank);
/* These nodes confirm, or one says what is in the way ("": nothing): at the root into its record, else towards it. */
void decision_confirm(struct exchanges *all, const struct exchange_id *id, const uint32_t *rank,
                      size_t count, const char *obstacle);
/* The same of this node. */
void decision_confirm_own(struct exchanges *all, const struct exchange_id *id,
                          const char *obstacle);
/* Links have gone down or come up: nodes may have missed the decision, or their confirmation got lost. */
void decision_remind_soon(struct exchanges *all, struct decision *d);
void decisions_remind_soon(struct exchanges *all); /* the same of all decisions */

#endif
