/* One round at one node: its blocks in memory, and the works that read or write them. */
#pragma once

#include "daemon/torusd/copy/agent_record.h"

/* Lays the agent's last computed round out in the slot's memory. Returns 0, or -1 without memory. */
int slot_fill(struct slot *s);
/* Starts works that read what this node sends. Returns how many; 0: there is nothing to read; -1 without memory. */
int slot_read(struct slot *s);
/* Checks the heads of the blocks that have arrived, and starts works that write them. Returns how many, or -1 with *e. */
int slot_write(struct slot *s, struct error *e);
/* Notes the errors of the works, which have ended, at their trees or ends. */
void slot_take_errors(struct slot *s);
/* Writes the heads of the blocks that this node sends. */
void slot_write_heads(struct slot *s);
/* The number of this node's end of a tree; COPY_EVERY_NODE: it has none. */
uint32_t slot_end_of(const struct agent *a, uint32_t tree);
void slot_free(struct slot *s);
