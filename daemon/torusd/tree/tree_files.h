/* The trees of this machine: implements daemon/torusd/copy/tree_store.h. */
#pragma once

#include <stdatomic.h>
#include <sys/types.h>

#include "daemon/torusd/copy/tree_store.h"
#include "daemon/torusd/disk/made_folders.h"

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
    struct tree_store store;
};

/* `state_folder` is a path, and `roots` the first set; both must outlive *files. */
void tree_files_init(struct tree_files *files, const char *state_folder, const struct roots *roots);

/* To be called when nobody uses *files any more. */
void tree_files_free(struct tree_files *files);

/* Returns the functions for copies; they may be called as long as *files lives. */
const struct tree_store *tree_files_store(struct tree_files *files);

/* Whether no reader or writer is open. */
bool tree_files_are_unused(struct tree_files *files);

/* Become, and cease to be, a user. The roots stay valid between these. */
const struct roots *tree_files_enter(struct tree_files *files);
void tree_files_leave(struct tree_files *files);

/* Makes an empty file without a name in the state folder. Returns its descriptor, or -1 with *e. */
int tree_files_temporary(const struct tree_files *files, struct error *e);
