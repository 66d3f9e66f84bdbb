/* The copies of one node, for the files of this folder. */
#pragma once

#include "daemon/torusd/copy/agent.h"
#include "daemon/torusd/router/flood_limit.h"

#define COPY_ASKED_MOST 4u   /* copies that were asked for here */
#define COPY_AGENTS_MOST 16u /* copies that this node takes part in */

/* A copy that was asked for here. */
struct copy {
    struct copy *next;
    struct copies *copies;
    struct copy_client client;
    struct copy_request request;
    uint8_t *packed; /* the request */
    size_t packed_length;
    uint64_t id, began, deadline;
    uint64_t
        begun_at; /* when an attempt was last under way; at first, when the copy was asked for */
    uint32_t attempt, number; /* number: of calls */
    uint64_t call_at;         /* when to call again; ROUTER_NEVER: no attempt waits for nodes */
    uint64_t retry_at;        /* when to begin the next attempt; ROUTER_NEVER: one is under way */
    uint64_t pause;           /* before the next attempt */
    struct agent *agent;      /* of this attempt, or NULL */
    bool was_late;      /* an attempt has failed when nodes may have put their trees in place */
    char obstacle[100]; /* a node that cannot take part yet; "": none */
    struct copy_outcomes *outcomes; /* it is over */
    struct error error;             /* it has failed */
};

struct copies {
    struct copies_setup set;
    struct agent *agents;
    struct copy *asked;
    struct flood_limit calls;    /* that were heard */
    struct copies_counts counts; /* without under_way */
    bool due;
};

/* --- initiator.c --- */

struct agent *copies_find_agent(const struct copies *c, uint32_t initiator, uint64_t id);
unsigned copies_count_agents(const struct copies *c);
/* Makes an agent. Returns NULL with *e. */
struct agent *copies_add_agent(struct copies *c, const struct agent_setup *setup, struct error *e);

/* Frees a copy without telling its client. */
void initiator_free(struct copy *copy);
/* Tells the copy of an agent, if there is one, how far the agent is. */
void initiator_tell(struct agent *a);
/* Calls again, retries, ends what has taken too long. */
void initiator_tick(struct copy *copy, uint64_t now);
/* Tells the client of a copy that is over, and frees the copy. Returns false if it is not over. */
bool initiator_tell_client(struct copy *copy);
/* A node cannot take part. */
void initiator_refused(struct copies *c, const struct peer_copy_refusal *refusal);
uint64_t initiator_deadline(const struct copy *copy);

/* --- responder.c --- */

/* Tells the initiator why this node cannot take part in an attempt. */
void responder_refuse(struct copies *c, uint32_t initiator, uint64_t id, uint32_t attempt,
                      const struct error *why);
