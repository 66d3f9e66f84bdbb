/* The trees of this machine: implements daemon/torusd/copy/tree_store.h. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/torusd/copy/tree_store.h"
#include "daemon/torusd/disk/journal.h"
#include "daemon/torusd/disk/staging.h"

struct tree_files {
    /* What trees lie below. The caller may replace it at any time; it must not free an earlier set as long as there are
     * users, and must look for them after it has replaced the set. */
    const struct roots *_Atomic roots;
    _Atomic mode_t
        output_mode; /* of folders that are made above targets; the caller may change it */
    uint32_t
        patience_ms; /* how long a copy waits for another one to the same target, which may have been
                             cancelled and not be closed yet; the caller may change it at first */
    struct made_folders made; /* above targets, those of exchanges of files among them */
    atomic_uint users;        /* open readers and writers */
    const char *state_folder; /* where documents are kept, in files without a name */
    struct journal copies;    /* targets that may have a staging */
    char copies_path[PATH_MAX];
    struct tree_store store;
};

/* `state_folder` is a path, and `roots` the first set; both must outlive *files. */
void tree_files_init(struct tree_files *files, const char *state_folder, const struct roots *roots);

/* Opens the list of copies in the state folder, which must exist. Returns 0, or -1 with *e. */
int tree_files_open(struct tree_files *files, struct error *e);

/* To be called when nobody uses *files any more. */
void tree_files_free(struct tree_files *files);

/* Returns the functions for copies; they may be called as long as *files lives. */
const struct tree_store *tree_files_store(struct tree_files *files);

/* Whether no reader or writer is open. */
bool tree_files_are_unused(struct tree_files *files);

/* Become, and cease to be, a user. The roots stay valid between these. */
const struct roots *tree_files_enter(struct tree_files *files);
void tree_files_leave(struct tree_files *files);

/* Whether the caller shall stop: then *e says so. `progress` may be NULL. */
bool tree_stopped(const struct tree_progress *progress, struct error *e);

/* Makes an empty file without a name in the state folder. Returns its descriptor, or -1 with *e. */
int tree_files_temporary(const struct tree_files *files, struct error *e);
/* Fills *e: reading or writing such a file has failed with errno; 0: it is too short. Returns -1. */
int tree_files_temporary_failed(struct error *e);

/* Completes or removes, when the daemon starts, the copies that the previous daemon left unfinished. */

#define RECOVER_AGE                                                                                \
    (24 * 3600) /* seconds after which what an interrupted copy has left is removed */

/* Puts complete copies in place, and removes what copies of more than a day ago left behind. Logs what it does, and
 * what fails: that stays listed for the next start. Blocks: to be called in a job. */
void tree_files_recover(struct tree_files *files);

/* Numbers that tell whether a folder at one node is the same as one at another node, because the nodes share a file
 * system. They are computed from what the file system says of the folder: its inode number, and the time when it was
 * made or, if that is not known, those of its last changes. Folders of two file systems practically never have the same
 * number; a folder that changes meanwhile may get another one. */

#define PLACE_SOURCE                                                                               \
    1u /* the lowest bit of a number that a reader tells: this is a source, not a folder above one */

/* Returns the number of the file or folder with this absolute path; its lowest bit is 0. 0: there is none. */
uint64_t location_id(const char *path);

/* Adds the numbers of a source and of the folders above it to a list of at most TREE_PLACES_MOST, each once. Returns
 * its new length. */
uint32_t location_ids_add_source(uint64_t *list, uint32_t count, const char *path);

/* How a target lies to sources of a list, on a file system that both have. */
enum location_relation {
    PLACE_APART,
    PLACE_EQUAL, /* the target is a source */
    PLACE_ABOVE, /* a source is below the target */
    PLACE_INSIDE /* the target is below a source */
};
enum location_relation location_ids_compare(const uint64_t *list, uint32_t count,
                                            const char *target);

/* Paths in errors. */

#define SHOWN_PATH 200 /* room for a path, with its end */

struct shown_path {
    char text[SHOWN_PATH];
};

/* Makes a path printable: `above`, and a path below it unless that is "". If it is too long, its end is shown. The
 * result lives as long as *out. */
const char *show_path(struct shown_path *out, const char *above, const char *below);

/* --- the two halves of the store: reader.c, writer.c --- */

/* Set the functions; store->context must be a struct tree_files. */
void tree_reader_add(struct tree_store *store);
void tree_writer_add(struct tree_store *store);
