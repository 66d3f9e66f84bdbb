/* Which folders of this daemon's data roots exist only because a copy or an exchange needs them above its target. Several
 * may use such a folder, and none of them knows whether it ends as the last one; so all of them enter here, and whoever
 * leaves as the last one without a result removes what was made, whoever has made it.
 *
 * All functions may be called from any thread, and touch no disk. */
#pragma once

#include <pthread.h>

#include "daemon/torusd/disk/roots.h"

struct made_use; /* one target's use of the folders above it */

struct made_folders {
    pthread_mutex_t lock;
    struct made_use *uses;
    struct made_folder *folders;
};

void made_folders_init(struct made_folders *m);
/* Frees what users that never left have noted. */
void made_folders_free(struct made_folders *m);

/* Begins to use the folder at a place and all folders above it, whether they exist or not; to be called before they are
 * looked for. Returns NULL if there is no memory. */
struct made_use *made_folders_enter(struct made_folders *m, const struct roots *roots,
                                    const struct place *place);
/* Notes that the folder with this path below the user's root has been made; `path` is that of the place, or a beginning of
 * it. Without memory it is not noted, and stays. */
void made_folders_add(struct made_folders *m, const struct made_use *use, const char *path);
/* Whether the folder with this path below the user's root was made, and has no other user. */
bool made_folders_unused(struct made_folders *m, const struct made_use *use, const char *path);
/* Ends the use, and frees *use, which may be NULL. `keep`: there is a result, so the folders above it stay. */
void made_folders_leave(struct made_folders *m, struct made_use *use, bool keep);
