/* What a node must know after a crash, in its state folder:
 *
 *     committed-ID    this node, as the root, decided to commit; until every node has confirmed
 *     exchange-ID     an output of this node that has not got its final name yet
 *     calibration     see calibration_file.h
 */
#ifndef TORUSD_FILES_JOURNAL_H
#define TORUSD_FILES_JOURNAL_H

#include <limits.h>

#include "daemon/base/error.h"

#include <stdbool.h>

struct journal_entry {
    bool finished; /* all is there and synced: only the outcome is missing */
    char temporary[PATH_MAX];
    char final[PATH_MAX];
};

/* Creates the state folder if it is missing. Returns 0, or -1 with *e. */
int journal_open(const char *folder, struct error *e);

/* Writes an output's entry; a finished one survives a crash. Returns 0, or -1 with *e. */
int journal_write(const char *folder, const char *id, const struct journal_entry *entry,
                  struct error *e);
int journal_read(const char *folder, const char *id, struct journal_entry *entry, struct error *e);
void journal_remove(const char *folder, const char *id);

/* Calls each() for every entry's id. */
void journal_each(const char *folder, void (*each)(void *context, const char *id), void *context);

/* The decision to commit; it survives a crash. Returns 0, or -1 with *e. */
int journal_record_commit(const char *folder, const char *id, struct error *e);
void journal_forget_commit(const char *folder, const char *id);
bool journal_was_committed(const char *folder, const char *id);

#endif
