/* The messages of one kind that a node has heard lately, and that it passes on to all other neighbours: finds those that
 * it has passed on already, and limits how many it passes on, for each port and for each initiator. Answers go back the
 * way on which the message came, a limited number for each. */
#pragma once

#include "daemon/lib/base/allowance.h"
#include "daemon/lib/schedule/torus.h"

struct flood_rules {
    unsigned kept;      /* messages, for each port; the next one replaces the oldest of its port */
    unsigned rate;      /* costs of the messages that are taken from a port in a second, */
    unsigned burst;     /* and at once after a pause */
    unsigned initiator; /* costs of the messages of one initiator that are taken in a second */
};

struct flooded {
    uint64_t id;
    uint64_t at;           /* when it was heard; 0: there is none */
    uint64_t answers_left; /* that may still be passed on */
    uint32_t initiator;
    uint32_t number; /* messages of an initiator with one id may have different numbers */
    unsigned cost;
    unsigned port;   /* where it was heard first: the way to the initiator */
    unsigned kind;   /* of the message, for who uses this */
    bool unanswered; /* this node has not answered yet */
};

struct flood_limit {
    const struct flood_rules *rules;
    unsigned ports;
    struct flooded *message; /* rules->kept for each port */
    unsigned next[TORUS_MAX_PORTS];
    struct allowance allowance[TORUS_MAX_PORTS];
};

/* Returns 0, or -1 without memory. flood_limit_free() frees what *f holds. The rules must outlive it. */
int flood_limit_init(struct flood_limit *f, const struct flood_rules *rules, unsigned ports);
void flood_limit_free(struct flood_limit *f);

/* Notes a message: `id`, `initiator`, `number`, `cost` and what its user wants to know later are set. Returns it; or
 * NULL if it has been heard lately, or there are too many: then it is to be dropped. */
struct flooded *flood_limit_take(struct flood_limit *f, unsigned port,
                                 const struct flooded *message, uint64_t now);

/* Returns a message of that initiator, with that id, for which one more answer may be passed on, and counts the answer;
 * NULL: there is none. */
struct flooded *flood_limit_answer(struct flood_limit *f, uint32_t initiator, uint64_t id);
