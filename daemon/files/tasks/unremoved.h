/* Outputs of which not all could be removed, for want of descriptors, say: that is tried again whenever an output has
 * been closed. */
#ifndef TORUSD_FILES_TASKS_UNREMOVED_H
#define TORUSD_FILES_TASKS_UNREMOVED_H

struct folders;

/* The output of this exchange could not be removed. */
void unremoved_add(struct folders *folders, const char *id);

/* An output has been closed: tries again to remove those that have no sink any more. */
void unremoved_retry(struct folders *folders);

/* Forgets them: the next start finds them. */
void unremoved_free(struct folders *folders);

#endif
