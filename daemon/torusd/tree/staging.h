/* The folder beside a target in which a copy gathers what arrives, until it can be put in place: `.NAME.torus-copy`. A
 * target that is a mount point or a data root has it inside, as `.torus-copy`, because files cannot be renamed to another
 * file system. It belongs to the daemon's user, nobody else may enter it, and it is locked while a copy uses it.
 *
 *     manifest         of the copy whose files are here
 *     manifest.new     being received
 *     arrived          which files, and parts of them, are here (arrivals.h); arrived.synced: that are on the disk
 *     stamps           what says that whole files are still as they arrived (arrivals.h)
 *     holder           which copy of which daemon uses it
 *     reserve          room for the record when the disk is full
 *     f/XXXXX/XXXXXXX  new files, by the number of their entry
 *     tree, link       a new folder, a new link, before they are renamed to their place
 *     complete         everything is here and on the disk: what remains to be done is to put it in place
 *
 * The state folder lists stagings, so that the daemon completes or removes them when it starts. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/torusd/disk/journal.h"
#include "daemon/torusd/disk/staging.h"
#include "daemon/torusd/tree/at.h"

#define STAGING_MANIFEST "manifest"
#define STAGING_MANIFEST_NEW "manifest.new"
#define STAGING_ARRIVED "arrived"
#define STAGING_FILES "f"
#define STAGING_OLD_FILES "old" /* files with their numbers in an earlier manifest */
#define STAGING_TREE "tree"
#define STAGING_LINK "link"
#define STAGING_HOLDER "holder" /* which copy of which daemon uses it */
#define STAGING_NAME_SIZE 48u   /* bytes of the name of a file in a staging */

/* Finds the target of an absolute path. With `made`, missing folders above it are made, and noted there. Touches no
 * staging. Returns 0, or -1 with *e: the path is not below a data root, a folder on the way is a link, a name on the path is
 * that of a staging. The caller calls staging_close() in both cases. */
int staging_find(struct staging *s, const struct roots *roots, mode_t output_mode, const char *path,
                 struct made_folders *made, struct error *e);
/* Opens and locks the staging; with `make`, makes it, if it does not exist. Waits up to `patience_ms` for another copy that
 * uses it, and may be about to end. Returns 0; -1 with *e (ERROR_BUSY: another copy still uses it); or -1 with e->code == ERROR_NONE if it does not exist. */
int staging_open(struct staging *s, bool make, uint32_t patience_ms, struct error *e);
/* Checks that what is in an open staging are files and folders where torusd makes these. Returns 0, or -1 with *e, which
 * names what has to be removed. */
int staging_check(const struct staging *s, struct error *e);
/* Syncs the file system of the staging and the target. Returns 0, or -1 with *e. */
int staging_sync(const struct staging *s, struct error *e);
/* Fills *e: what has this path in the staging ("": the staging itself), and this mode, has to be removed. Returns -1. */
int staging_refuse(const struct staging *s, const char *path, mode_t mode, struct error *e);
/* Removes the staging with all that is in it. Returns 0, or -1 with *e; it can be repeated. */
int staging_remove(struct staging *s, struct error *e);
/* Removes the target, which has been found, from the list of copies, unless another copy has made a new staging meanwhile. */
void staging_forget(const struct staging *s, const struct journal *copies);
/* Removes a file or folder in the staging with everything in it, if it exists. Returns 0, or -1 with *e. */
int staging_clear(const struct staging *s, const char *name, struct error *e);

/* Writes the name, in the staging, of the new file of an entry. Returns `out`. */
const char *staging_file(uint64_t index, char out[STAGING_NAME_SIZE]);
/* Opens the new file of an entry for writing, whatever its mode, and makes it if it does not exist; `empty`: without its
 * old contents. Returns the descriptor or -errno. */
int staging_open_file(const struct staging *s, uint64_t index, bool empty);
/* Makes the new file of an entry with this mode, less the umask, in place of one that may be there. Nobody else can enter
 * the staging, so that files may have their modes from the start. Returns the descriptor or -errno. */
int staging_make_file(const struct staging *s, uint64_t index, mode_t mode);

/* Fills *e: "the new files of PATH cannot be `done`: ...". Returns -1. */
int staging_failed(const struct staging *s, const char *done, int error, struct error *e);

/* --- the marker of a complete copy --- */

/* The marker of a staging in which everything is here and on the disk. What remains to be done is to put it in place, with
 * the rules that the marker has; it is done again until it succeeds, whatever crashes. */

#define COMPLETE_NAME "complete"
#define COMPLETE_MOST (64u * 1024u) /* bytes of patterns */

struct complete {
    bool into, delete, as_it_comes;
    char **pattern;
    uint32_t patterns;
};

/* Writes the marker, durably. Returns 0, or -1 with *e. */
int complete_write(const struct staging *s, const struct complete *c, struct error *e);
/* Reads the marker. Returns 1 with *c, which the caller gives to complete_free(); 0 if there is none or it is damaged; or
 * -1 with *e. */
int complete_read(const struct staging *s, struct complete *c, struct error *e);
/* Removes the marker: the staging becomes that of an interrupted copy. */
int complete_withdraw(const struct staging *s, struct error *e);
void complete_free(struct complete *c);
