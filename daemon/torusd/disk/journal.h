/* Files in the state folder, from which a node learns after a crash what it was doing:
 *
 *     committed-ID    this node, as the root, decided to commit; until every node has confirmed
 *     exchange-ID     an output of this node that does not have its final name yet
 *     calibration     lines of text (outcomes.h)
 *     copies/DIGEST   path of a target that may have a staging (tree/staging.h), by the digest of that path
 *
 * The steps of an output (target.h), each on the disk before the next begins:
 *
 *     1. entry "preparing"                    crash: nothing to remove but the entry
 *     2. missing folders above the target     crash from here on: the start removes the temporary
 *     3. temporary folder                       folder, the made folders that are empty, the entry
 *     4. files written
 *     5. files, temporary folder, folder above it synced
 *     6. entry "finished", with what tells    crash from here on: in doubt; the root is asked
 *        whether the files are still the same
 *     7. the root: committed-ID                 crash before: not committed, all is removed
 *     8. renamed, the folder above synced     crash: the temporary folder is gone, so the output is
 *     9. entry removed                          in place whatever the root answers: only the entry
 *    10. the root: committed-ID removed         is removed
 *
 * If an old result is replaced, step 8 is:
 *
 *     8a. entry with both inode numbers       crash: the temporary name tells by its number whether
 *     8b. the folders change places, synced     it is the new folder's or the old one's
 *     8c. the old one removed, synced
 *
 * If the exchange is retried between 4. and 7. with kept output (target_rename()):
 *
 *     a. entry of the next id, "preparing"    crash: the start finds both entries, and removes the folder by
 *     b. renamed, the folder above synced       the entry that has the folder's name
 *     c. the former entry removed
 *
 * If the exchange is not committed, the temporary folder and the made folders are removed, the removal is
 * synced, and then the entry is removed.
 *
 * The functions block: they are called in jobs, several at once for different ids, or at the start of the
 * daemon. */
#pragma once

#include "daemon/torusd/disk/file_system.h"
#include "proto/error.h"

struct journal {
    const struct file_system *files;
    const char *path; /* path of the state folder */
    int folder;       /* its descriptor, locked; -1: not open */
};

struct journal_entry {
    bool finished;         /* the output is complete and synced; only the outcome is missing */
    unsigned made;         /* number of folders above the target that are made for it */
    char folder[PATH_MAX]; /* the folder above the target */
    char temporary[NAME_MAX + 1];
    char final[NAME_MAX + 1];
    uint64_t
        contents; /* of a finished output: target_contents(); 0: from a release that did not record it */
    bool replaces; /* an old result under the final name may be replaced */
    /* Inode numbers of the new and the old folder, recorded before the two change places: after a crash
     * they tell which folder has which name. 0: the folders have not changed places. */
    uint64_t new_number, old_number;
};

/* Creates the state folder if it is missing (its parent must exist), locks it, and removes files that a
 * crash left half written. `path` must outlive the journal. Returns 0, or -1 with *e: the folder cannot be
 * written, or another daemon uses it. */
int journal_open(struct journal *j, const struct file_system *files, const char *path,
                 struct error *e);
/* Closes and so unlocks the state folder. */
void journal_close(struct journal *j);

/* Replaces the file NAME of the state folder by these bytes: a crash leaves the old or the new bytes, and
 * so does a power failure if `sync`. Returns 0, or -1 with *e. */
int journal_replace(const struct journal *j, const char *name, const void *bytes, size_t length,
                    bool sync, struct error *e);

/* Reads at most `most` bytes of the file NAME of the state folder. Returns their number, -1 with *e, or -1
 * with e->code == ERROR_NONE if there is no such file. */
ssize_t journal_fetch(const struct journal *j, const char *name, void *bytes, size_t most,
                      struct error *e);

/* Whether an exchange's id can be part of a file name. */
bool journal_id_is_valid(const char *id);

/* Writes an output's entry, durably. Returns 0, or -1 with *e. */
int journal_write(const struct journal *j, const char *id, const struct journal_entry *entry,
                  struct error *e);

/* Reads an output's entry. Returns 0 with *entry, -1 with *e (ERROR_DAMAGED, or it cannot be read), or -1
 * with e->code == ERROR_NONE if there is none. */
int journal_read(const struct journal *j, const char *id, struct journal_entry *entry,
                 struct error *e);

/* Removes an output's entry. A failure is logged; the next start then finds the entry. */
void journal_remove(const struct journal *j, const char *id);

/* Calls each() with the id of every output's entry. each() may remove entries. Returns 0, or -1 with *e if
 * the folder could not be read completely; then each() has not been called. */
int journal_each(const struct journal *j, void (*each)(void *context, const char *id),
                 void *context, struct error *e);

/* Records the decision to commit, durably. Returns 0, or -1 with *e and no record. */
int journal_record_commit(const struct journal *j, const char *id, struct error *e);
/* Removes the record of a decision. A failure is logged. */
void journal_forget_commit(const struct journal *j, const char *id);

/* Calls each() with the id of every decision; otherwise like journal_each(). */
int journal_each_committed(const struct journal *j, void (*each)(void *context, const char *id),
                           void *context, struct error *e);

/* --- targets that may have a staging, for the start of the daemon --- */

/* Opens the list, a folder of the state folder, and makes it if it is missing. `path` gets its path, and must outlive
 * it. Returns 0, or -1 with *e. journal_close() closes it. */
int journal_open_copies(struct journal *list, char path[PATH_MAX], const char *state_folder,
                        struct error *e);
/* Lists a target; `sync`: durably. A copy lists its target before it makes the staging, in case it crashes, and again
 * when it has the staging: another copy may have removed its own staging, and the entry, meanwhile. It is synced before
 * a copy becomes complete: for interrupted copies, two syncs at the beginning of each copy would cost more than they
 * are worth. Returns 0, or -1 with *e. */
int journal_add_copy(const struct journal *list, const char *path, bool sync, struct error *e);
/* Removes a target from the list, unless is_there() says that another copy has made a new staging meanwhile. A failure
 * is logged; the next start finds the entry, and no staging. */
void journal_remove_copy(const struct journal *list, const char *path,
                         bool (*is_there)(const void *context), const void *context);
/* Calls each() with every target in the list, and removes entries that are damaged. Returns 0, or -1 with *e: the list
 * could not be read. */
int journal_each_copy(const struct journal *list, void (*each)(void *context, const char *path),
                      void *context, struct error *e);
