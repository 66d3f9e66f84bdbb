/* Folders beside a target in which its new contents gather until they are put in place: `.NAME.torusd-ID-RANK` for the output
 * of an exchange (files/target.h), `.NAME.torus-copy` for what arrives for a copy (tree/staging.h). Only the daemon's user may
 * enter such a folder, and its daemon keeps it open and locked: a folder that nobody has locked was left over by a daemon that
 * ended. Any user who may write to the folder above can rename a staging and put another one in its place, so the folder under
 * the name is compared with the open one before it is renamed or removed.
 *
 * `above` is the descriptor of the folder that has the target. Functions return 0 or -errno unless they say otherwise. */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "daemon/torusd/disk/file_system.h"
#include "proto/error.h"

#define STAGING_COPY ".torus-copy"

/* Writes the name of the staging of copies to a target with this name; ".": inside the target. */
void staging_name_copy(const char *target, char out[NAME_MAX + 1]);

/* Whether a name is that of a staging of copies: such names are left alone in targets, and are no content of sources. */
bool staging_is_name(const char *name);
/* Whether one of the names on a path is that of a staging of copies. */
bool staging_is_path(const char *path);

/* Opens and locks the folder with this name. Returns its descriptor; -EWOULDBLOCK if somebody has locked it; -ESTALE if
 * it was removed or replaced meanwhile; or another -errno. */
int staging_folder_open(const struct file_system *files, int above, const char *name);
/* Checks that the folder with this name is the open one; -ESTALE if it is not. */
int staging_folder_check(const struct file_system *files, int above, const char *name, int folder);
/* Removes the open folder, which must be empty; -ESTALE if the name is that of another one. */
int staging_folder_remove(const struct file_system *files, int above, const char *name, int folder);

/* A staging that was made and locked just now, and its target. */
struct staging_claim {
    const struct file_system *files;
    int above;
    const char *target, *own; /* names of the target and of the staging */
    const char *path;         /* of the target, for errors */
    const char *id;           /* of the exchange; NULL: a copy */
    /* Exchanges: whether the staging `name` of another exchange is complete, and waits for its outcome. */
    bool (*in_doubt)(const void *context, const char *id_and_rank, const char *name);
    const void *context;
};

/* Checks that no other copy or exchange writes to the target. If two begin at the same time, at least one of them sees the
 * other. Returns 0, or -1 with *e. */
int staging_check_rivals(const struct staging_claim *claim, struct error *e);

/* Fill *e: "WHO is writing to PATH ..."; another node of the same exchange has this target. Return -1. */
int staging_rival(const char *who, const char *path, struct error *e);
int staging_shared(const char *path, struct error *e);
