/* What one node does in one attempt of a copy: see agent_record.h. */
#pragma once

#include "daemon/torusd/copy/agent_record.h"

struct agent_setup {
    const struct copies_setup
        *set; /* copied; what it points to must outlive the agent, or agent_detach() */
    bool *due;
    struct copy *copy;
    uint32_t asker, attempt;
    uint64_t id;
    const struct copy_request *request; /* copied */
};

/* Makes an agent, which reserves memory. Returns NULL with *e: no memory, ERROR_BUSY. */
struct agent *agent_new(const struct agent_setup *setup, struct error *e);
/* Continues as far as possible; opens the group in the first call. Not to be called from inside a function of
 * daemon/torusd/group. */
void agent_advance(struct agent *a);
/* Leaves the group when the step is STEP_OVER, and ends the agent. */
void agent_leave(struct agent *a);
/* Ends the agent: before its group is open, other nodes are not disturbed. *why becomes its error. */
void agent_give_up(struct agent *a, const struct error *why);
/* Whether the agent has ended, and everything is closed: agent_free() may be called. */
bool agent_is_gone(const struct agent *a);
/* Frees an agent that is gone. */
void agent_free(struct agent *a);
/* Ends the agent without its group and shares, which are about to be freed: its threads end later, and then it frees
 * itself. */
void agent_detach(struct agent *a);

void agent_progress(const struct agent *a, struct copy_progress *progress);

/* Writes the id of a copy for people. */
void copy_id_text(uint64_t id, char text[COPY_ID_SIZE]);
