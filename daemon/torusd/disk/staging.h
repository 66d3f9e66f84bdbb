/* The target of an exchange or a copy, and the folder beside it in which its new contents gather until they are put in place:
 * `.NAME.torusd-ID-RANK` for the output of an exchange (files/target.h), `.NAME.torus-copy` for what arrives for a copy
 * (tree/staging.h). Only the daemon's user may enter such a folder, and its daemon keeps it open and locked: a folder that
 * nobody has locked was left over by a daemon that ended. Any user who may write to the folder above can rename a staging and
 * put another one in its place, so the folder under the name is compared with the open one before it is renamed or removed.
 *
 * Some folders above a target exist only because a copy or an exchange needs them. Several copies and exchanges may use such
 * a folder, and none of them knows whether it will be the last to end. So all of them say that they use it; if the last one
 * ends without a result, it removes the folders that were made, whichever of them made the folders.
 *
 * Functions return 0 or -errno unless they say otherwise. Those that touch the disk block. */
#pragma once

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>

#include "daemon/torusd/disk/roots.h"
#include "proto/error.h"

#define STAGING_COPY ".torus-copy"

struct made_use; /* one target's use of the folders above it */

/* The folders that were made above targets, and who uses them. Any thread may use it. */
struct made_folders {
    pthread_mutex_t lock;
    struct made_use *uses;
    struct made_folder *folders;
};

void made_folders_init(struct made_folders *m);
/* Frees what users that never left have noted. */
void made_folders_free(struct made_folders *m);

struct staging {
    const struct roots *roots; /* borrowed */
    struct made_folders *made; /* borrowed; NULL: no folders are made above the target */
    struct made_use
        *use; /* of the folders down to `above`; NULL: none, or as from before a restart */
    mode_t output_mode; /* of folders that are made for the target */
    /* Unless NULL, called before folders are made, when s->above is the deepest one that exists: `missing` are to be made.
     * Returns 0, or -1 with *e. */
    int (*check_above)(struct staging *s, unsigned missing, struct error *e);
    struct location place;     /* of the folder that has the staging and the target; */
    int above;                 /* its descriptor; -1: it does not exist (yet) */
    int folder;                /* the staging; -1: it does not exist, or is not open */
    char target[NAME_MAX + 1]; /* name of the target in `above`; ".": it is `above` itself */
    char name[NAME_MAX + 1];   /* of the staging */
    char path[PATH_MAX + NAME_MAX + 2]; /* absolute path of the target */
    char printable[160];                /* the same for people, cut if it is long */
    char shown[2 * PATH_MAX];           /* absolute path of the staging */
    /* of copies only: see tree/staging.h */
    bool resumed;   /* the staging was there already */
    const char *id; /* of the copy, borrowed; NULL: none */
    bool is_root;   /* the target is a data root itself */
    struct timespec
        before; /* time of the target, if the staging is inside it, before that was made */
};

/* Writes the name of the staging of copies to a target with this name; ".": inside the target. */
void staging_name_copy(const char *target, char out[NAME_MAX + 1]);

/* Whether a name is that of a staging of copies: such names are left alone in targets, and are no content of sources. */
bool staging_is_name(const char *name);
/* Whether one of the names on a path is that of a staging of copies. */
bool staging_is_path(const char *path);

/* Sets s->path and s->printable. */
void staging_set_path(struct staging *s, const char *path);
/* Sets s->name, and s->shown, which follows from it and from s->path and s->target. */
void staging_set_name(struct staging *s, const char *name);

/* Opens s->above, the folder s->place. If s->made is there, begins to use the folders down to it, and makes those that are
 * missing, with what they inherit, syncing the folder above each. Returns 0, -errno, or 1 with *e: check_above() has failed. */
int staging_open_above(struct staging *s, struct error *e);
/* Makes the staging; makes the folders above it again if somebody has removed them. Returns like staging_open_above(); -EEXIST
 * if its name is taken. */
int staging_make(struct staging *s, struct error *e);
/* Opens and locks the folder beside the target with this name. Returns its descriptor; -EWOULDBLOCK if somebody has locked it;
 * -ESTALE if it was removed or replaced meanwhile; or another -errno. */
int staging_lock(const struct staging *s, const char *name);
/* Checks that the folder with the name of the staging is the open one; -ESTALE if it is not. */
int staging_check_open(const struct staging *s);
/* Removes the open staging, which must be empty; -ESTALE if the name is that of another folder. */
int staging_remove_folder(const struct staging *s);
/* Removes the folders on the way to the target that were made and have no other user, as far as they are empty; if s->use is
 * NULL, because the daemon has been restarted since, the last `made` ones. s->above moves up to the deepest one that remains. */
void staging_remove_made(struct staging *s, unsigned made);
/* Ends the use of the folders above. `keep`: there is a result, so they stay. */
void staging_leave(struct staging *s, bool keep);
/* Leaves, and closes the descriptors; the disk stays as it is. */
void staging_close(struct staging *s);

/* Checks that no other copy or exchange writes to the target of a staging that was made and locked just now. If two begin at
 * the same time, at least one of them sees the other. `id`: of the exchange; NULL: a copy. For exchanges, in_doubt() says
 * whether the staging `name` of another exchange is complete, and waits for its outcome. Returns 0, or -1 with *e. */
int staging_check_rivals(const struct staging *s, const char *id,
                         bool (*in_doubt)(const struct staging *s, const char *id_and_rank,
                                          const char *name),
                         struct error *e);

/* Fill *e: "WHO is writing to PATH ..."; another node of the same exchange has this target. Return -1. */
int staging_rival(const char *who, const char *path, struct error *e);
int staging_shared(const char *path, struct error *e);
