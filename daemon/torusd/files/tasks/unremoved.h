/* Outputs that could not be removed completely, for instance for lack of descriptors. Whenever a sink has
 * been closed, the removal is tried again. */
#pragma once

struct folders;

/* Adds an exchange whose output could not be removed. */
void unremoved_add(struct folders *folders, const char *id);

/* To be called when an output has been closed: tries again to remove the outputs that no longer have a
 * sink. */
void unremoved_retry(struct folders *folders);

/* Frees the list; the next start of the daemon finds these outputs. */
void unremoved_free(struct folders *folders);
