/* Outputs that could not be removed completely, for instance because there were no descriptors. The removal
 * is tried again whenever an output has been closed. */
#ifndef TORUSD_FILES_TASKS_UNREMOVED_H
#define TORUSD_FILES_TASKS_UNREMOVED_H

struct folders;

/* Adds an exchange whose output could not be removed. */
void unremoved_add(struct folders *folders, const char *id);

/* To be called when an output has been closed: tries again to remove those outputs that have no sink any
 * more. */
void unremoved_retry(struct folders *folders);

/* Frees the list; the next start of the daemon finds these outputs. */
void unremoved_free(struct folders *folders);

#endif
